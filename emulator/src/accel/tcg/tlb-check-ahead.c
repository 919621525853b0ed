/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLB check: a walker that runs ahead
 *
 * A CPU may load a translation that nobody asked for: for a prefetch, or for an
 * access of a path that is not taken in the end (SDM, 4.10.2.3). TCG never does, so
 * a guest goes unpunished that takes "nobody has touched it" for "nobody has it".
 * With ahead=N
 *
 *   - each fill of a watched entry is followed by up to N more, of pages beside it,
 *   - and now and then, whatever runs, a page that was filled lately is filled
 *     again, or one beside it.
 *
 * It is what a read there would have filled: an accessed bit may be set on the way, a
 * dirty bit never; what is absent or not allowed stays out. It takes free places
 * only, and fills nothing that is there already: so no stale entry goes early.
 *
 * What it takes is chosen by a generator for each vCPU that starts from seed=. The
 * same accesses of a vCPU make the same choices; how vCPUs run beside each other
 * is no part of that.
 *
 * Own thread of the vCPU only, where a fill would be fine: after one, and before
 * translated code is looked up.
 */
#include "qemu/osdep.h"
#include "exec/target_page.h"
#include "tlb-check-internal.h"

/* One in so many lookups of code, on average. */
#define PAUSE 64
/* How far away, in pages, to both sides; one in so many is as many regions. */
#define REACH 16
#define REGIONS 8
#define REGION_SHIFT 21

static uint64_t next_random(TLBCheckVCPU *v)
{
    uint64_t x = v->random;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return v->random = x;
}

void tlb_check_ahead_init(void)
{
    for (unsigned i = 0; i < tlb_check->nvcpus; i++) {
        TLBCheckVCPU *v = &tlb_check->vcpu[i];

        /* Never 0, and far apart. */
        v->random = (tlb_check->seed * TLB_CHECK_RECENT + i + 1) *
                    0x9e3779b97f4a7c15ull | 1;
        v->pause = PAUSE;
    }
}

void tlb_check_ahead_note(CPUState *cpu, vaddr page, int mmu_idx)
{
    TLBCheckVCPU *v = tlb_check_vcpu(cpu);

    if (!tlb_check_ahead || v->running_ahead) {
        return;
    }
    v->recent[v->nrecent++ % TLB_CHECK_RECENT] = (TLBCheckRecent) {
        .page = page,
        .mmu_idx = mmu_idx,
    };
    v->filled = true;
}

static void fill(CPUState *cpu, vaddr page, int mmu_idx)
{
    TLBCheckVCPU *v = tlb_check_vcpu(cpu);
    MMUAccessType type = tlb_check_mutated(TLB_CHECK_AHEAD_WRITES) ?
                         MMU_DATA_STORE : MMU_DATA_LOAD;

    if (page < tlb_check->start || page >= tlb_check->end ||
        !(tlb_check_ops(cpu)->want(cpu, page, mmu_idx) & tlb_check_on) ||
        !tlb_check_has_room(cpu, page, mmu_idx) ||
        tlb_check_mutated(TLB_CHECK_AHEAD_IGNORED)) {
        return;
    }
    v->running_ahead = true;
    if (cpu->cc->tcg_ops->tlb_fill(cpu, page, 1, type, mmu_idx, true, 0)) {
        tlb_check_count(cpu, TLB_CHECK_N_AHEAD);
    }
    v->running_ahead = false;
}

static vaddr beside(TLBCheckVCPU *v, vaddr page)
{
    uint64_t r = next_random(v);
    int64_t distance = (int64_t)((r >> 32) % (2 * REACH + 1)) - REACH;

    return page + distance * (1ll << (r % REGIONS ? TARGET_PAGE_BITS :
                                      REGION_SHIFT));
}

void tlb_check_ahead_fill_slow(CPUState *cpu)
{
    TLBCheckVCPU *v = tlb_check_vcpu(cpu);
    TLBCheckRecent last;

    if (!v->filled || v->running_ahead) {
        return;
    }
    v->filled = false;
    last = v->recent[(v->nrecent - 1) % TLB_CHECK_RECENT];
    for (unsigned i = 0; i < tlb_check_ahead; i++) {
        fill(cpu, beside(v, last.page), last.mmu_idx);
    }
}

void tlb_check_ahead_any_slow(CPUState *cpu)
{
    TLBCheckVCPU *v = tlb_check_vcpu(cpu);
    TLBCheckRecent recent;
    uint64_t r;

    if (!v->nrecent || --v->pause) {
        return;
    }
    r = next_random(v);
    v->pause = 1 + (r >> 8) % (2 * PAUSE);
    recent = v->recent[(r >> 32) % MIN(v->nrecent, TLB_CHECK_RECENT)];
    fill(cpu, r & 1 ? recent.page : beside(v, recent.page), recent.mmu_idx);
}
