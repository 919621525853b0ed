/* SPDX-License-Identifier: GPL-2.0 */
/* The few types that the pure state machines of mm/ceasefire need. */
#ifndef _CEASEFIRE_TEST_TYPES_H
#define _CEASEFIRE_TEST_TYPES_H

#include <stdbool.h>
#include <stdint.h>

typedef uint32_t u32;
typedef uint64_t u64;

#endif
