/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * x86 process-context identifiers: MOV to CR3, INVLPG and INVPCID
 *
 * With CR4.PCIDE, CR3[11:0] tags the entries that are filled, and those of
 * other tags stay. What is dropped when follows the SDM, 4.10.4.1, as exactly
 * as the TLB of TCG allows, because each entry that is dropped too much is a
 * missing flush of the guest that nobody sees:
 *
 *   MOV to CR3       the new tag's, without global entries; bit 63: nothing
 *   INVLPG           the page in the current tag, global entries everywhere
 *   INVPCID 0        the page in one tag, without global entries
 *   INVPCID 1        one tag, without global entries
 *   INVPCID 2        all
 *   INVPCID 3        all but global entries
 *
 * Without CR4.PCIDE everything is as before, except that with a checker
 * INVLPG does not take other pages along.
 *
 * Global entries move to the next tag with tlb_tags_switch(). Those that did
 * not find room there, and those of a tag that INVPCID drops while it is not
 * current, are lost: an early eviction.
 *
 * Not modelled: SVM. VMRUN and #VMEXIT flush everything (cpu_x86_update_cr3),
 * INVPCID has no intercept.
 */
#include "qemu/osdep.h"
#include "cpu.h"
#include "exec/helper-proto.h"
#include "exec/cpu_ldst.h"
#include "exec/cputlb.h"
#include "exec/log.h"
#include "exec/tlb-check.h"
#include "exec/tlb-tags.h"
#include "tcg/helper-tcg.h"
#include "pcid_helper.h"

#define CR3_NO_FLUSH (1ull << 63)
#define PCID_MASK 0xfffull
/* The modes that CR3 translates. */
#define CR3_MODES ((1 << MMU_PHYS_IDX) - 1)

static unsigned current_pcid(CPUX86State *env)
{
    return env->cr[4] & CR4_PCIDE_MASK ? env->cr[3] & PCID_MASK : 0;
}

void x86_check_cr0_pcid(CPUX86State *env, target_ulong new_cr0, uintptr_t ra)
{
    if (!(new_cr0 & CR0_PG_MASK) && (env->cr[4] & CR4_PCIDE_MASK)) {
        raise_exception_ra(env, EXCP0D_GPF, ra);
    }
}

void x86_check_cr4_pcid(CPUX86State *env, target_ulong new_cr4, uintptr_t ra)
{
    if ((new_cr4 & ~env->cr[4] & CR4_PCIDE_MASK) &&
        (!(env->features[FEAT_1_ECX] & CPUID_EXT_PCID) ||
         !(env->efer & MSR_EFER_LMA) || (env->cr[3] & PCID_MASK))) {
        raise_exception_ra(env, EXCP0D_GPF, ra);
    }
}

target_ulong x86_cr3_no_flush(CPUX86State *env, target_ulong new_cr3,
                              bool *no_flush, uintptr_t ra)
{
    *no_flush = new_cr3 & CR3_NO_FLUSH;
    if (*no_flush && !(env->cr[4] & CR4_PCIDE_MASK)) {
        raise_exception_ra(env, EXCP0D_GPF, ra);
    }
    return new_cr3 & ~CR3_NO_FLUSH;
}

void x86_load_cr3(CPUX86State *env, target_ulong new_cr3, bool no_flush)
{
    CPUState *cs = env_cpu(env);
    unsigned from = current_pcid(env);

    if (!(env->cr[4] & CR4_PCIDE_MASK)) {
        if (tlb_check_mutated(TLB_CHECK_CR3_NEVER_FLUSHES)) {
            env->cr[3] = new_cr3;
        } else {
            cpu_x86_update_cr3(env, new_cr3);
        }
        return;
    }
    qemu_log_mask(CPU_LOG_MMU, "CR3 update: CR3=" TARGET_FMT_lx "%s\n",
                  new_cr3, no_flush ? " (no flush)" : "");
    env->cr[3] = new_cr3;
    tlb_tags_switch(cs, from, current_pcid(env), CR3_MODES);
    tlb_check_new_tag(cs, current_pcid(env));
    if (!no_flush && !tlb_check_mutated(TLB_CHECK_CR3_NEVER_FLUSHES)) {
        tlb_tags_flush_current(cs, CR3_MODES);
        tlb_check_walks_drop(cs, current_pcid(env));
    }
}

void helper_flush_page(CPUX86State *env, target_ulong addr)
{
    CPUState *cs = env_cpu(env);

    if (tlb_check_mutated(TLB_CHECK_INVLPG_IGNORED)) {
        return;
    }
    tlb_check_walks_drop(cs, current_pcid(env));
    if (!(env->cr[4] & CR4_PCIDE_MASK) && !tlb_check_on) {
        tlb_flush_page(cs, addr);
        return;
    }
    tlb_tags_flush_page(cs, addr, TLB_TAGS_ALL);
    if (!tlb_check_mutated(TLB_CHECK_INVLPG_NOT_GLOBAL)) {
        tlb_tags_flush_page_saved(cs, -1, addr, TLB_TAGS_GLOBAL);
    }
}

static bool is_canonical(CPUX86State *env, uint64_t addr)
{
    int64_t high = (int64_t)addr >> (env->cr[4] & CR4_LA57_MASK ? 56 : 47);

    return high == 0 || high == -1;
}

void helper_invpcid(CPUX86State *env, target_ulong type, target_ulong desc)
{
    CPUState *cs = env_cpu(env);
    uint64_t pcid = cpu_ldq_le_data_ra(env, desc, GETPC());
    uint64_t addr = cpu_ldq_le_data_ra(env, desc + 8, GETPC());
    bool current = pcid == current_pcid(env);

    if (type > 3 || (pcid & ~PCID_MASK) ||
        (type < 2 && pcid && !(env->cr[4] & CR4_PCIDE_MASK)) ||
        (type == 0 && !is_canonical(env, addr))) {
        raise_exception_ra(env, EXCP0D_GPF, GETPC());
    }
    if (tlb_check_mutated(TLB_CHECK_INVPCID_IGNORED)) {
        return;
    }
    switch (type) {
    case 0:
        if (current) {
            tlb_tags_flush_page(cs, addr, TLB_TAGS_NOT_GLOBAL);
        } else {
            tlb_tags_flush_page_saved(cs, pcid, addr, TLB_TAGS_NOT_GLOBAL);
        }
        tlb_check_walks_drop_page(cs, pcid, addr);
        break;
    case 1:
        if (current) {
            tlb_tags_flush_current(cs, CR3_MODES);
        } else {
            tlb_tags_flush_saved(cs, pcid);
        }
        tlb_check_walks_drop(cs, pcid);
        break;
    case 2:
        tlb_flush(cs);
        break;
    case 3:
        tlb_tags_flush_saved(cs, -1);
        tlb_tags_flush_current(cs, CR3_MODES);
        tlb_check_walks_drop(cs, -1);
        break;
    }
}
