/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * x86 TLB entries that all modes share
 *
 * A CPU has one entry for a page, whoever has caused it: the kernel, by an access to
 * user memory, or a program. Rights are looked at when it is used. TCG has a table
 * for each mode, and the first access of each mode walks for itself: it sets an accessed
 * bit where a CPU would not, and finds a change that a CPU would not see.
 *
 * So before a walk the tables of the other modes are asked. What is in there is used
 * as it was read, if this access is allowed by it: with its dirty bit clear it allows
 * no write. Otherwise there is a walk; CPUs may do that, too, before they fault.
 *
 * Each entry has for that, beside what QEMU knows of it, the entry of the page table
 * and the rights of all levels together. It is for long mode, and not for nested paging.
 *
 * Own thread of the vCPU only.
 */
#include "qemu/osdep.h"
#include "cpu.h"
#include "exec/tlb-check.h"
#include "exec/tlb-tags.h"
#include "tcg/helper-tcg.h"
#include "shared_x86.h"
#include "tlb_check_x86.h"

/* The modes that CR3 translates. */
#define CR3_MODES ((1 << MMU_PHYS_IDX) - 1)

const CPUTLBEntryFull *x86_shared_find(CPUX86State *env, vaddr addr,
                                       int mmu_idx)
{
    const CPUTLBEntryFull *full;

    if (mmu_idx >= MMU_PHYS_IDX || !(env->hflags & HF_LMA_MASK) ||
        (env->hflags2 & HF2_NPT_MASK) ||
        tlb_check_mutated(TLB_CHECK_MODES_APART)) {
        return NULL;
    }
    full = tlb_tags_find_page(env_cpu(env), addr & TARGET_PAGE_MASK,
                              CR3_MODES & ~(1 << mmu_idx));
    /* How old one is that nobody has watched the checker cannot know. */
    if (!full || !full->extra.x86.pte ||
        (tlb_check_on && !full->check.watched &&
         x86_tlb_check_ops.want(env_cpu(env), addr, mmu_idx))) {
        return NULL;
    }
    return full;
}
