/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The host of this machine, where it lets its guest ask: a virtio serial port
 * named ceasefire.monitor that leads to QEMU's monitor (QMP).
 */
#ifndef CEASEFIRE_SELFTEST_HOST_H
#define CEASEFIRE_SELFTEST_HOST_H

/* Memory that the machine was started with, in MiB. */
long host_memory(void);
/*
 * Ask for a balloon that leaves @mib MiB of it to us; skips the case without
 * one. The guest inflates it as fast as it finds memory.
 */
void host_leave(long mib);
/* MiB that are in the balloon. */
long host_balloon(void);
/* Wait until at least, or at most, @mib MiB are; fails after @limit seconds. */
void host_wait_inflated(long mib, unsigned int limit);
void host_wait_deflated(long mib, unsigned int limit);

#endif
