/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLB check: page tables that a CPU may have cached
 *
 * Hardware keeps upper-level entries too (paging-structure caches), and may
 * start a walk from one: at a page table that the current upper level no
 * longer names. TCG always walks from the root, so a guest that frees a table
 * without the flush that drops those entries goes unpunished. Here each fill
 * records the tables it passed, per vCPU and tag, and asks whether one that
 * was recorded before, in the same region, has been given away since: that
 * one, hardware may have walked.
 *
 * Dropping follows the SDM, 4.10.4.1: INVLPG and MOV to CR3 drop all of the
 * current tag, INVPCID one address or a tag or all. Each tag has a number
 * that a drop counts up, so that dropping costs the same whatever is cached.
 *
 * The cache is direct mapped and bigger than a CPU's. A conflict loses a
 * record, which can hide a violation and never invents one.
 *
 * Own thread of the vCPU only.
 */
#include "qemu/osdep.h"
#include "qemu/timer.h"
#include "tlb-check-internal.h"

#define PAGE_SHIFT 12
#define LEVEL_BITS 9

/* The region that table @i of a walk covers: log2 of its size. */
static unsigned region_shift(unsigned nlevels, unsigned i)
{
    return PAGE_SHIFT + LEVEL_BITS * (nlevels - i);
}

static uint64_t walk_key(vaddr addr, unsigned shift)
{
    return (addr >> shift) << shift | shift;
}

static TLBCheckCachedWalk *walk_slot(TLBCheckVCPU *v, unsigned tag,
                                     uint64_t key)
{
    uint64_t h = (key ^ (uint64_t)tag << 52) * 0x9e3779b97f4a7c15ull;

    return &v->walks[h >> 54];
}

static bool slot_holds(const TLBCheckVCPU *v, const TLBCheckCachedWalk *w,
                       unsigned tag, uint64_t key)
{
    return w->key == key && w->tag == tag && w->drops == v->drops[tag] &&
           w->drops_all == v->drops_all;
}

void tlb_check_walks_fill(CPUState *cpu, vaddr addr, const TLBCheckWalk *walk,
                          uint64_t seq, int mmu_idx)
{
    TLBCheckVCPU *v = tlb_check_vcpu(cpu);
    unsigned tag = tlb_check_ops(cpu)->tag(cpu);

    QEMU_BUILD_BUG_ON(TLB_CHECK_CACHED_WALKS != 1 << 10); /* walk_slot */
    /* The root is in a register, not in a cache. */
    for (int i = walk->ntables - 1; i > 0; i--) {
        uint64_t key = walk_key(addr, region_shift(walk->nlevels, i));
        TLBCheckCachedWalk *w = walk_slot(v, tag, key);
        TLBCheckEvent event;

        if (slot_holds(v, w, tag, key) &&
            !tlb_check_mutated(TLB_CHECK_TABLES_IGNORED) &&
            tlb_check_frames_since(w->frame, w->seq, &event)) {
            TLBCheckReport r = {
                .class = "table",
                .kind = "walk",
                .addr = addr,
                .type = MMU_DATA_LOAD,
                .user = tlb_check_ops(cpu)->want(cpu, addr, mmu_idx) ==
                        TLB_CHECK_FEATURE_USER,
                .walk = walk,
                .event = &event,
                .table = (hwaddr)w->frame << PAGE_SHIFT,
                .filled = w->recorded,
            };

            tlb_check_count(cpu, TLB_CHECK_N_VIOLATIONS);
            tlb_check_count(cpu, TLB_CHECK_N_TABLE);
            tlb_check_report(cpu, &r);
        }
        *w = (TLBCheckCachedWalk) {
            .key = key,
            .seq = seq,
            .recorded = cpu_get_host_ticks(),
            .frame = walk->tables[i],
            .drops = v->drops[tag],
            .drops_all = v->drops_all,
            .tag = tag,
        };
    }
}

void tlb_check_walks_drop_slow(CPUState *cpu, int tag)
{
    TLBCheckVCPU *v = tlb_check_vcpu(cpu);

    if (tag < 0) {
        v->drops_all++;
    } else {
        v->drops[tag]++;
    }
}

void tlb_check_walks_drop_page_slow(CPUState *cpu, unsigned tag, vaddr addr)
{
    TLBCheckVCPU *v = tlb_check_vcpu(cpu);

    for (unsigned i = 1; i < TLB_CHECK_LEVELS; i++) {
        uint64_t key = walk_key(addr, region_shift(TLB_CHECK_LEVELS, i));
        TLBCheckCachedWalk *w = walk_slot(v, tag, key);

        if (slot_holds(v, w, tag, key)) {
            w->key = 0;
        }
    }
}
