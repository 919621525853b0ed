/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLB check: what the x86 target gives the checker
 */
#ifndef I386_TLB_CHECK_X86_H
#define I386_TLB_CHECK_X86_H

#include "exec/tlb-check.h"

extern const TLBCheckOps x86_tlb_check_ops;

/* What counts of upper entries; PG_NX_MASK is the other way round. */
#define X86_UPPER_RIGHTS (PG_NX_MASK | PG_USER_MASK | PG_RW_MASK)

/* See tlb_check_upper_walk() and so on. */
static inline int x86_upper_walk(CPUX86State *env, vaddr addr, int mmu_idx,
                                 uint64_t *pte, uint64_t *rights)
{
    return tlb_check_upper_walk(env_cpu(env), addr, mmu_idx, pte, rights);
}

static inline void x86_upper_add(CPUX86State *env, vaddr addr, int mmu_idx,
                                 int level, uint64_t pte, uint64_t rights)
{
    tlb_check_upper_add(env_cpu(env), addr, mmu_idx, level, pte,
                        rights & X86_UPPER_RIGHTS);
}

static inline void x86_upper_fault(CPUX86State *env, vaddr addr)
{
    tlb_check_upper_fault(env_cpu(env), addr);
}

/* If EAX names the leaf of the checker and there is one: do it. */
bool x86_tlb_check_cpuid(CPUX86State *env);

#endif /* I386_TLB_CHECK_X86_H */
