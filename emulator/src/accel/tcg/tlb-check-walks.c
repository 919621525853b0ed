/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLB check: page tables that a CPU may have cached
 *
 * Hardware keeps upper-level entries too (paging-structure caches), and may
 * start a walk from one: at a page table that the current upper level no
 * longer names. TCG always walks from the root, so a guest that frees a table
 * without the flush that drops those entries goes unpunished. Two remedies:
 *
 * - Without upper= each fill records the tables it passed, per vCPU and tag, and
 *   asks whether one that was recorded before, in the same region, has been given
 *   away since: that one, hardware may have walked.
 * - With upper=N there is such a cache, of N entries, and walks start from it. An
 *   entry of it is one that a walk read with its accessed bit set, and that leads to
 *   a table: the frame of that, and what the entries on the way allow together, as
 *   the SDM, 4.10.3.1, has it. An absent entry is never cached. A walk takes the
 *   deepest one that there is. When that is wrong by now, what it leads to
 *   is legal until a flush should have dropped it: the TLB entry that comes of it
 *   counts as loaded when the upper entry was.
 *
 * Dropping follows the SDM, 4.10.4.1: INVLPG and MOV to CR3 drop all of the
 * current tag, INVPCID one address or a tag or all, a page fault those of its
 * address. Each tag has a number that a drop counts up, so that dropping costs
 * the same whatever is cached.
 *
 * The cache is direct mapped and bigger than a CPU's. A conflict loses a
 * record, which can hide a violation and never invents one.
 *
 * Only what the checker watches is cached: the lower half.
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

static unsigned key_shift(uint64_t key)
{
    return key & ((1u << PAGE_SHIFT) - 1);
}

static TLBCheckCachedWalk *walk_slot(TLBCheckVCPU *v, unsigned tag,
                                     uint64_t key)
{
    uint64_t h = (key ^ (uint64_t)tag << 52) * 0x9e3779b97f4a7c15ull;
    unsigned n = tlb_check_upper ?: TLB_CHECK_CACHED_WALKS;

    /* By the upper bits, which the tag is in. */
    return &v->walks[(h >> 32) * n >> 32];
}

static bool slot_holds(const TLBCheckVCPU *v, const TLBCheckCachedWalk *w,
                       unsigned tag, uint64_t key)
{
    return w->key == key && w->tag == tag && w->drops == v->drops[tag] &&
           w->drops_all == v->drops_all;
}

static void report_table(CPUState *cpu, vaddr addr, const TLBCheckWalk *walk,
                         const TLBCheckCachedWalk *w,
                         const TLBCheckEvent *event, int mmu_idx)
{
    TLBCheckReport r = {
        .class = "table",
        .kind = "walk",
        .addr = addr,
        .type = MMU_DATA_LOAD,
        .user = tlb_check_ops(cpu)->want(cpu, addr, mmu_idx) ==
                TLB_CHECK_FEATURE_USER,
        .walk = walk,
        .event = event,
        .table = (hwaddr)w->frame << PAGE_SHIFT,
        .filled = w->recorded,
    };

    tlb_check_count(cpu, TLB_CHECK_N_VIOLATIONS);
    tlb_check_count(cpu, TLB_CHECK_N_TABLE);
    tlb_check_report(cpu, &r);
}

/* Has the table that an upper entry leads to been given away? */
static bool table_is_gone(const TLBCheckCachedWalk *w, TLBCheckEvent *event)
{
    return !tlb_check_mutated(TLB_CHECK_TABLES_IGNORED) &&
           tlb_check_frames_since(w->frame, w->seq, event);
}

void tlb_check_walks_fill(CPUState *cpu, vaddr addr, const TLBCheckWalk *walk,
                          uint64_t seq, int mmu_idx)
{
    TLBCheckVCPU *v = tlb_check_vcpu(cpu);
    unsigned tag = tlb_check_ops(cpu)->tag(cpu);
    TLBCheckEvent event;

    if (tlb_check_upper) {
        if (v->used.key && table_is_gone(&v->used, &event)) {
            report_table(cpu, addr, walk, &v->used, &event, mmu_idx);
        }
        return;
    }
    /* The root is in a register, not in a cache. */
    for (int i = walk->ntables - 1; i > 0; i--) {
        uint64_t key = walk_key(addr, region_shift(walk->nlevels, i));
        TLBCheckCachedWalk *w = walk_slot(v, tag, key);

        if (slot_holds(v, w, tag, key) && table_is_gone(w, &event)) {
            report_table(cpu, addr, walk, w, &event, mmu_idx);
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

/* Do the page tables lead another way than a cached entry? */
static bool is_stale(CPUState *cpu, vaddr addr, int mmu_idx,
                     const TLBCheckCachedWalk *w)
{
    const TLBCheckOps *ops = tlb_check_ops(cpu);
    TLBCheckWalk walk;
    unsigned i;

    if (!ops->walk(cpu, addr, mmu_idx, &walk)) {
        return false;
    }
    /* The table that it leads to, by its place in a walk from the root. */
    i = walk.nlevels - (key_shift(w->key) - PAGE_SHIFT) / LEVEL_BITS;
    return i >= walk.ntables || walk.tables[i] != w->frame ||
           ops->rights(cpu, walk.value, i) != w->rights;
}

int tlb_check_upper_find(CPUState *cpu, vaddr addr, int mmu_idx, uint64_t *pte,
                         uint64_t *rights)
{
    const TLBCheckOps *ops = tlb_check_ops(cpu);
    TLBCheckVCPU *v = tlb_check_vcpu(cpu);
    unsigned tag;

    v->used.key = 0;
    v->used_stale = false;
    if (tlb_check_mutated(TLB_CHECK_UPPER_IGNORED) ||
        !ops->want(cpu, addr, mmu_idx)) {
        return 0;
    }
    tag = ops->tag(cpu);
    for (int level = 2; level <= TLB_CHECK_LEVELS; level++) {
        uint64_t key = walk_key(addr, region_shift(level, 1));
        const TLBCheckCachedWalk *w = walk_slot(v, tag, key);

        if (slot_holds(v, w, tag, key)) {
            v->used = *w;
            v->used_stale = is_stale(cpu, addr, mmu_idx, w);
            *pte = w->pte;
            *rights = w->rights;
            tlb_check_count(cpu, TLB_CHECK_N_UPPER);
            return level;
        }
    }
    return 0;
}

/*
 * Read by way of an entry that is wrong, it is as old as that. Read by way of one that
 * is right it is new, however old that is.
 */
void tlb_check_upper_add_slow(CPUState *cpu, vaddr addr, int mmu_idx, int level,
                              uint64_t pte, uint64_t rights)
{
    const TLBCheckOps *ops = tlb_check_ops(cpu);
    TLBCheckVCPU *v = tlb_check_vcpu(cpu);
    unsigned tag;
    uint64_t key;

    if (!ops->want(cpu, addr, mmu_idx)) {
        return;
    }
    tag = ops->tag(cpu);
    key = walk_key(addr, region_shift(level, 1));
    *walk_slot(v, tag, key) = (TLBCheckCachedWalk) {
        .key = key,
        .seq = tlb_check_frames_now(),
        .flush_seq = v->used_stale ? v->used.flush_seq :
                     tlb_check_flushes_now(),
        .pte = pte,
        .rights = rights,
        .recorded = cpu_get_host_ticks(),
        .frame = ops->frame(pte),
        .root = v->used_stale ? v->used.root : ops->root(cpu) >> PAGE_SHIFT,
        .drops = v->drops[tag],
        .drops_all = v->drops_all,
        .tag = tag,
    };
}

bool tlb_check_upper_stale(CPUState *cpu, TLBCheckEntry *e)
{
    TLBCheckVCPU *v = tlb_check_vcpu(cpu);

    if (!tlb_check_upper || !v->used_stale) {
        return false;
    }
    e->upper_shift = key_shift(v->used.key);
    e->flush_seq = v->used.flush_seq;
    /* The tables that memory has now are not those of this entry. */
    e->tables[0] = v->used.root;
    e->tables[1] = v->used.frame;
    e->ntables = 2;
    return true;
}

void tlb_check_upper_fault_slow(CPUState *cpu, vaddr addr)
{
    /* What nobody asked for does not fault. */
    if (!tlb_check_vcpu(cpu)->running_ahead &&
        !tlb_check_mutated(TLB_CHECK_UPPER_FAULTS_KEEP)) {
        tlb_check_walks_drop_page_slow(cpu, tlb_check_ops(cpu)->tag(cpu), addr);
    }
}

void tlb_check_walks_drop_slow(CPUState *cpu, int tag)
{
    TLBCheckVCPU *v = tlb_check_vcpu(cpu);

    if (tlb_check_mutated(TLB_CHECK_UPPER_KEPT)) {
        return;
    }
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
