/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A file system of one file in user space, spoken over /dev/fuse without a
 * library. What is read from that file is not copied: the server splices pages
 * of another file to the kernel and offers to give them away.
 */
#ifndef CEASEFIRE_SELFTEST_FUSE_SERVER_H
#define CEASEFIRE_SELFTEST_FUSE_SERVER_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Mount it in a mount namespace of the case, and fork the server. The file has
 * @pages pages, which come from the same place in @source.
 */
pid_t fuse_server_start(int source, size_t pages);

/* The file, in the namespace of the case. */
#define FUSE_SERVER_FILE	"/mnt/file"

#endif
