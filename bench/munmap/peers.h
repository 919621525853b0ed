/* SPDX-License-Identifier: GPL-2.0-only */
/* peers.h - threads that read what another one is about to unmap; see peers.c. */
#ifndef MUNMAP_PEERS_H
#define MUNMAP_PEERS_H

#include "worker.h"

#include <stdint.h>

/* Returns when all peers have read all pages of it. */
void peers_show(const struct job *job, const char *base, unsigned int file, uint64_t first);
/* The owner will show nothing any more. */
void peers_end(void);
/* Of a peer: until then. */
void peers_read(const struct job *job);

#endif /* MUNMAP_PEERS_H */
