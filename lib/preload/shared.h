/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* shared.h - shared memory of a program becomes morsels; see shared.c. */
#ifndef CEASEFIRE_SHARED_H
#define CEASEFIRE_SHARED_H

#include <stdbool.h>
#include <stddef.h>

struct config;

/* Is this a mapping that may be one? */
bool shared_wanted(const struct config *config, const void *addr, size_t length, int prot,
		   int flags);
/* Its address, or a negative errno: it has to be mapped as ever. */
long shared_map(const struct config *config, size_t length, int prot, int flags);
/* Something else has been mapped there. */
void shared_replaced(const void *addr, size_t length);

#endif /* CEASEFIRE_SHARED_H */
