/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLB check: fills and uses of entries, and what is a violation
 *
 * A use of an entry is compared with the page tables as they are now. If they
 * disagree the entry is stale, which by itself is legal: between the change
 * of a page table and the flush, any CPU may use the old translation. It is a
 * violation when something says that the flush should be over:
 *
 *   freed, owner, cache  the frame was given away after the fill
 *   space                it was filled in another address space: the CPU left
 *                        that and dropped nothing
 *   table                a page table on the way was given away (agreeing or
 *                        not)
 *   flushed              a flush of the address that began after the fill has
 *                        returned
 *   armed                the guest armed the address in this address space
 *   old                  stale for old-ms: a guess, hosts can stall
 *
 * The order is that of strength, and the strongest names the report; every
 * class that holds is counted.
 *
 * The race with other vCPUs that change page tables: the comparison reads
 * each table entry once, atomically. A change in between can make a walk see
 * neither the old nor the new state, so a mismatch counts only if a second
 * walk finds one too. A change after the walk is a later change.
 */
#include "qemu/osdep.h"
#include "qemu/timer.h"
#include "exec/page-protection.h"
#include "exec/target_page.h"
#include "tlb-check-internal.h"

#define PFN_SHIFT 12

enum {
    RANK_TRANSIENT, RANK_OLD, RANK_ARMED, RANK_TABLE, RANK_FLUSHED, RANK_SPACE,
    RANK_FRAME
};

static const char *const event_names[] = {
    [TLB_CHECK_FREED] = "freed",
    [TLB_CHECK_OWNER] = "owner",
    [TLB_CHECK_CACHE] = "cache",
    [TLB_CHECK_TABLE] = "table",
};

static const enum tlb_check_counter event_counters[] = {
    [TLB_CHECK_FREED] = TLB_CHECK_N_FREED,
    [TLB_CHECK_OWNER] = TLB_CHECK_N_OWNER,
    [TLB_CHECK_CACHE] = TLB_CHECK_N_CACHE,
    [TLB_CHECK_TABLE] = TLB_CHECK_N_TABLE,
};

void tlb_check_fill_slow(CPUState *cpu, CPUTLBEntryFull *full, vaddr addr,
                         int mmu_idx)
{
    const TLBCheckOps *ops = tlb_check_ops(cpu);
    TLBCheckEntry *e = &full->check;
    vaddr page = addr & TARGET_PAGE_MASK;
    TLBCheckWalk walk;
    /* An access of another mode has read it, and it is as old as that. */
    bool shared = e->watched;
    unsigned watched;

    e->watched = 0;
    if (!ops || page < tlb_check->start || page >= tlb_check->end) {
        return;
    }
    watched = ops->want(cpu, page, mmu_idx);
    if (!(watched & tlb_check_on) ||
        (tlb_check->process && !tlb_check_process_watched(cpu))) {
        return;
    }
    if (shared) {
        e->watched = watched;
        e->fresh = 0;
        return;
    }
    tlb_check_count(cpu, TLB_CHECK_N_FILLS);
    /* The entry has been read from the page tables: now the number. */
    e->flush_seq = tlb_check_flushes_now();
    e->upper_shift = 0;
    /*
     * First the number, then the walk: if the walk finds this entry right,
     * an event with a higher number came later than the entry.
     */
    e->seq = e->tables_seq = tlb_check_frames_now();
    if (!ops->walk(cpu, page, mmu_idx, &walk)) {
        return;
    }
    if (!walk.present || walk.pa != (full->phys_addr & TARGET_PAGE_MASK)) {
        /*
         * The tables changed since the translation. The entry is stale from
         * birth, and nothing is known about the way it came; what happens to
         * frames from now on still counts.
         */
        e->seq = tlb_check_frames_now();
        walk.ntables = 0;
    }
    e->watched = watched;
    e->fresh = !tlb_check_vcpu(cpu)->running_ahead;
    e->reported = 0;
    e->ntables = walk.ntables;
    memcpy(e->tables, walk.tables, sizeof(e->tables));
    e->stale = 0;
    e->filled = e->right = cpu_get_host_ticks();
    tlb_check_walks_fill(cpu, page, &walk, e->seq, mmu_idx);
    /* What comes by a wrong way is looked at from the first use on. */
    if (tlb_check_upper_stale(cpu, e)) {
        e->fresh = 0;
    }
    e->space = tlb_check_space_of((hwaddr)e->tables[0] << PFN_SHIFT) >> PFN_SHIFT;
    tlb_check_ahead_note(cpu, page, mmu_idx);
}

/* How an entry and the page tables disagree, NULL if they do not. */
static const char *disagreement(const CPUTLBEntryFull *full,
                                const TLBCheckWalk *walk, MMUAccessType type)
{
    if (!walk->present) {
        return "unmapped";
    }
    if (walk->pa != full->phys_addr) {
        return "frame";
    }
    if (!(walk->prot & (1 << type))) {
        return "rights";
    }
    if (type == MMU_DATA_STORE && !walk->dirty) {
        return "dirty";
    }
    return NULL;
}

/*
 * Walks are the cost of a check. If each page table entry on the way is what
 * it was when this entry was found right for this kind of access, under the
 * same root, a walk would find the same again. A set accessed or dirty bit is
 * a change like any other: the next walk remembers it. Host addresses stay
 * good as long as the entry: a change of the memory map flushes everything.
 */
static TLBCheckPath *path_of(TLBCheckVCPU *v, vaddr page, int mmu_idx)
{
    return &v->paths[(page >> TARGET_PAGE_BITS ^ mmu_idx << 8) %
                     TLB_CHECK_PATHS];
}

static bool path_is_same(CPUState *cpu, const TLBCheckPath *path,
                         const TLBCheckEntry *e, vaddr page,
                         MMUAccessType type, int mmu_idx)
{
    if (path->filled != e->filled || path->page != page ||
        path->mmu_idx != mmu_idx || !(path->right & (1 << type)) ||
        path->root != tlb_check_ops(cpu)->root(cpu)) {
        return false;
    }
    for (unsigned i = 0; i < path->n; i++) {
        if (qatomic_read(path->host[i]) != path->value[i]) {
            return false;
        }
    }
    return true;
}

static void path_remember(CPUState *cpu, TLBCheckPath *path,
                          const TLBCheckEntry *e, vaddr page,
                          MMUAccessType type, int mmu_idx,
                          const TLBCheckWalk *walk)
{
    bool same = path->filled == e->filled && path->page == page &&
                path->mmu_idx == mmu_idx && path->n == walk->ntables &&
                !memcmp(path->host, walk->host, sizeof(path->host)) &&
                !memcmp(path->value, walk->value, sizeof(path->value));

    path->right = (same ? path->right : 0) | 1 << type;
    path->filled = e->filled;
    path->page = page;
    path->mmu_idx = mmu_idx;
    path->root = tlb_check_ops(cpu)->root(cpu);
    path->n = walk->ntables;
    memcpy(path->host, walk->host, sizeof(path->host));
    memcpy(path->value, walk->value, sizeof(path->value));
}

/*
 * When a use was right. Reading the clock costs as much as the comparison, so
 * only the first use of an entry does, and each so many of this vCPU: the time
 * may be that of an earlier one. It is only said that the page table has changed
 * since.
 */
static void note_right(TLBCheckVCPU *v, TLBCheckEntry *e)
{
    if (e->right == e->filled || !v->until_clock) {
        v->until_clock = TLB_CHECK_CLOCK_USES;
        v->clock = cpu_get_host_ticks();
    }
    v->until_clock--;
    e->right = MAX(e->right, v->clock);
}

/* Was a page table on the way to this entry given away? */
static bool table_given_away(TLBCheckEntry *e, TLBCheckEvent *event,
                             hwaddr *table)
{
    uint64_t now = tlb_check_frames_now();

    if (tlb_check_mutated(TLB_CHECK_TABLES_IGNORED)) {
        return false;
    }
    for (unsigned i = 0; i < e->ntables; i++) {
        if (tlb_check_frames_since(e->tables[i], e->seq, event)) {
            *table = (hwaddr)e->tables[i] << PFN_SHIFT;
            return true;
        }
    }
    e->tables_seq = now;
    return false;
}

static bool tables_unharmed(TLBCheckEntry *e)
{
    TLBCheckEvent event;
    hwaddr table;

    return e->tables_seq == tlb_check_frames_now() ||
           !table_given_away(e, &event, &table);
}

/* Does an entry belong to another address space? Global ones belong to all. */
static bool of_other_space(CPUState *cpu, const CPUTLBEntryFull *full)
{
    return full->check.ntables && !full->extra.x86.global &&
           full->check.space != tlb_check_space(cpu) >> PFN_SHIFT &&
           !tlb_check_mutated(TLB_CHECK_SPACES_IGNORED);
}

/*
 * A use that is not right at first sight: walk, and judge. Apart from the rest,
 * which is done for each use and has no room for what only this needs.
 */
static void __attribute__((noinline))
judge(CPUState *cpu, CPUTLBEntryFull *full, vaddr addr, MMUAccessType type,
      int mmu_idx, uintptr_t ra, TLBCheckPath *path)
{
    TLBCheckEntry *e = &full->check;
    TLBCheckReport r = { .table = 0 };
    TLBCheckEvent frame_event, table_event, flush_event;
    vaddr page = addr & TARGET_PAGE_MASK;
    TLBCheckWalk walk;
    const char *kind = NULL;
    int rank = RANK_TRANSIENT;
    unsigned reported;

    for (int i = 0; i < 2; i++) {
        if (!tlb_check_ops(cpu)->walk(cpu, addr, mmu_idx, &walk)) {
            return;
        }
        kind = disagreement(full, &walk, type);
        if (!kind || tlb_check_mutated(TLB_CHECK_WALK_IGNORED)) {
            kind = NULL;
            break;
        }
    }

    if (table_given_away(e, &table_event, &r.table)) {
        rank = RANK_TABLE;
        r.class = "table";
        r.event = &table_event;
        tlb_check_count(cpu, TLB_CHECK_N_TABLE);
    }
    if (!kind) {
        e->right = cpu_get_host_ticks();
        e->stale = 0;
        path_remember(cpu, path, e, page, type, mmu_idx, &walk);
        if (rank == RANK_TRANSIENT) {
            return;
        }
        kind = "walk";
    } else {
        if (!e->stale) {
            e->stale = cpu_get_host_ticks();
        }
        if (!strcmp(kind, "dirty")) {
            tlb_check_count(cpu, TLB_CHECK_N_DIRTY);
        }
        if (tlb_check_ns_since(e->stale) >= tlb_check->old_ms * SCALE_MS) {
            tlb_check_count(cpu, TLB_CHECK_N_OLD);
            if (rank < RANK_OLD) {
                rank = RANK_OLD;
                r.class = "old";
            }
        }
        if (tlb_check_armed(cpu, addr)) {
            tlb_check_count(cpu, TLB_CHECK_N_ARMED);
            if (rank < RANK_ARMED) {
                rank = RANK_ARMED;
                r.class = "armed";
            }
        }
        if (tlb_check_flushed(cpu, full, addr, &flush_event)) {
            tlb_check_count(cpu, TLB_CHECK_N_FLUSHED);
            rank = RANK_FLUSHED;
            r.class = "flushed";
            r.event = &flush_event;
            r.table = 0;
        }
        if (of_other_space(cpu, full)) {
            tlb_check_count(cpu, TLB_CHECK_N_SPACE);
            rank = RANK_SPACE;
            r.class = "space";
            r.event = NULL;
            r.table = 0;
        }
        if (tlb_check_frames_since(full->phys_addr >> PFN_SHIFT, e->seq,
                                   &frame_event)) {
            tlb_check_count(cpu, event_counters[frame_event.what]);
            rank = RANK_FRAME;
            r.class = event_names[frame_event.what];
            r.event = &frame_event;
            r.table = 0;
        }
        if (rank == RANK_TRANSIENT) {
            tlb_check_count(cpu, TLB_CHECK_N_TRANSIENT);
            return;
        }
    }
    tlb_check_count(cpu, TLB_CHECK_N_VIOLATIONS);
    reported = 1u << (rank == RANK_FRAME ? rank + frame_event.what : rank);
    if (e->reported & reported) {
        return;     /* this entry had its line */
    }
    e->reported |= reported;
    r.kind = kind;
    r.addr = addr;
    r.type = type;
    r.user = e->watched == TLB_CHECK_FEATURE_USER;
    r.ra = ra;
    r.cached = full->phys_addr;
    r.walk = &walk;
    r.filled = e->filled;
    r.right = e->right;
    r.stale = e->stale;
    tlb_check_report(cpu, &r);
}

void tlb_check_use_slow(CPUState *cpu, CPUTLBEntryFull *full, vaddr addr,
                        MMUAccessType type, int mmu_idx, uintptr_t ra)
{
    TLBCheckVCPU *v = tlb_check_vcpu(cpu);
    TLBCheckEntry *e = &full->check;
    vaddr page = addr & TARGET_PAGE_MASK;
    TLBCheckPath *path;

    if (e->fresh) {
        e->fresh = 0;
        return;
    }
    if (type == MMU_INST_FETCH &&
        (!(tlb_check_on & TLB_CHECK_FEATURE_FETCH) ||
         tlb_check_mutated(TLB_CHECK_FETCH_IGNORED))) {
        return;
    }
    if (v->until_sample) {
        v->until_sample--;
        tlb_check_count(cpu, TLB_CHECK_N_SKIPPED);
        return;
    }
    v->until_sample = tlb_check->sample - 1;
    tlb_check_count(cpu, TLB_CHECK_N_CHECKS);

    path = path_of(v, page, mmu_idx);
    if (!e->stale && path_is_same(cpu, path, e, page, type, mmu_idx) &&
        tables_unharmed(e)) {
        note_right(v, e);
        return;
    }
    judge(cpu, full, addr, type, mmu_idx, ra, path);
}

void tlb_check_count_tag_slow(CPUState *cpu, bool restored, bool evicted)
{
    tlb_check_count(cpu, TLB_CHECK_N_SWITCHES);
    if (restored) {
        tlb_check_count(cpu, TLB_CHECK_N_RESTORED);
    }
    if (evicted) {
        tlb_check_count(cpu, TLB_CHECK_N_EVICTED);
    }
}
