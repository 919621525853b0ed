/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * x86 TLB entries that all modes share: what walks ask
 */
#ifndef I386_SHARED_X86_H
#define I386_SHARED_X86_H

#include "hw/core/cpu.h"

/* What the TLB has for a page by an access of another mode; NULL: nothing. */
const CPUTLBEntryFull *x86_shared_find(CPUX86State *env, vaddr addr,
                                       int mmu_idx);

#endif /* I386_SHARED_X86_H */
