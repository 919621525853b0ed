/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* internal.h - what the files of libmorsel share */
#ifndef MORSEL_INTERNAL_H
#define MORSEL_INTERNAL_H

#include "morsel.h"

/* The first size of a new morsel; 0, or -1 with errno set. */
int morsel_lay_out(int fd, uint64_t size, const struct morsel_layout *layout);
/* A new morsel becomes a copy; its descriptor, or -1 with errno set, and it is closed. */
int morsel_become_copy(int fd, int origin);

#endif /* MORSEL_INTERNAL_H */
