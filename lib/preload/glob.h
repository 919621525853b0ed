/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* glob.h - pattern matching for the preload library; see glob.c. */
#ifndef CEASEFIRE_GLOB_H
#define CEASEFIRE_GLOB_H

#include <stdbool.h>

bool glob_matches(const char *pattern, const char *string);
bool glob_matches_everything(const char *pattern);

#endif /* CEASEFIRE_GLOB_H */
