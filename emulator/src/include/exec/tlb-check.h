/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLB check: the hooks
 *
 * Everything that the rest of QEMU calls. While no tlb-check object exists,
 * each hook is a load and a branch that is never taken.
 *
 * Threads: the hooks of fills, uses and flushes run in the thread of their
 * vCPU. tlb_check_on and tlb_check_mutations are written once, under the BQL
 * and before the first vCPU runs.
 */
#ifndef EXEC_TLB_CHECK_H
#define EXEC_TLB_CHECK_H

#include "hw/core/cpu.h"
#include "exec/tlb-check-entry.h"

/* TLB_CHECK_FEATURE_*; 0: no checker. */
extern unsigned tlb_check_on;
/* Upper levels that a vCPU caches and walks from; 0: none. */
extern unsigned tlb_check_upper;
/* How many pages a fill is followed by; 0: none. */
extern unsigned tlb_check_ahead;
/* Entries that the TLB of a mode has; 0: as many as seem to be of use. */
extern unsigned tlb_check_entries;

/*
 * Mistakes to make on purpose, for the tests of the checker: property mutate.
 * The names and what each does are in tlb-check-mutations.c.
 */
typedef enum TLBCheckMutation {
    TLB_CHECK_CR3_NEVER_FLUSHES,
    TLB_CHECK_SWITCH_IGNORED,
    TLB_CHECK_INVLPG_IGNORED,
    TLB_CHECK_INVLPG_NOT_GLOBAL,
    TLB_CHECK_INVPCID_IGNORED,
    TLB_CHECK_LARGE_PARTLY,
    TLB_CHECK_FULL_KEEPS_TAGS,
    TLB_CHECK_EVICTION_KEEPS,
    TLB_CHECK_GLOBALS_DROPPED,
    TLB_CHECK_RESTORED_CLEAN,
    TLB_CHECK_WALK_IGNORED,
    TLB_CHECK_FETCH_IGNORED,
    TLB_CHECK_FRAMES_IGNORED,
    TLB_CHECK_TABLES_IGNORED,
    TLB_CHECK_RANGES_IGNORED,
    TLB_CHECK_ROOTS_IGNORED,
    TLB_CHECK_HALVES_IGNORED,
    TLB_CHECK_CPL_IGNORED,
    TLB_CHECK_SPACES_IGNORED,
    TLB_CHECK_ROOTS_UNKNOWN,
    TLB_CHECK_FLUSHES_IGNORED,
    TLB_CHECK_FLUSHES_WIDENED,
    TLB_CHECK_UPPER_IGNORED,
    TLB_CHECK_UPPER_KEPT,
    TLB_CHECK_UPPER_FAULTS_KEEP,
    TLB_CHECK_AHEAD_IGNORED,
    TLB_CHECK_AHEAD_WRITES,
    TLB_CHECK_MODES_APART,
    TLB_CHECK_MODES_WRITE,
    TLB_CHECK_MUTATIONS
} TLBCheckMutation;

extern uint32_t tlb_check_mutations;

static inline bool tlb_check_mutated(TLBCheckMutation which)
{
    return unlikely(tlb_check_mutations & (1u << which));
}

/* What the page tables say about an address now. */
typedef struct TLBCheckWalk {
    bool present;
    bool dirty;
    uint8_t prot;               /* PAGE_READ, _WRITE, _EXEC of this access */
    uint8_t level;              /* 1: the entry is one of a lowest table */
    uint8_t nlevels;            /* 4 or 5 */
    uint8_t ntables;
    uint32_t tables[TLB_CHECK_LEVELS];
    const uint64_t *host[TLB_CHECK_LEVELS];     /* the entries it read, */
    uint64_t value[TLB_CHECK_LEVELS];           /* as guest memory has them */
    hwaddr pa;                  /* of the page, if present */
    uint64_t pte;               /* the last entry that was read */
} TLBCheckWalk;

/* What the checker asks of a target; a target without cannot be checked. */
typedef struct TLBCheckOps {
    /* Is this a translation to watch? TLB_CHECK_FEATURE_*, or 0. */
    unsigned (*want)(CPUState *cpu, vaddr addr, int mmu_idx);
    /* Walk without side effects; false: cannot tell. */
    bool (*walk)(CPUState *cpu, vaddr addr, int mmu_idx, TLBCheckWalk *out);
    /* The guest's pc, @data from cpu_unwind_state_data() or NULL. */
    uint64_t (*pc)(CPUState *cpu, const uint64_t *data);
    /* The frame address of the page table root. */
    hwaddr (*root)(CPUState *cpu);
    /* The TLB tag (x86: PCID) of the current address space. */
    unsigned (*tag)(CPUState *cpu);
    /* What upper entries allow together, in the form of tlb_check_upper_add. */
    uint64_t (*rights)(CPUState *cpu, const uint64_t *entry, unsigned n);
    /* The frame of the table that an upper entry leads to. */
    uint32_t (*frame)(uint64_t pte);
} TLBCheckOps;

void tlb_check_fill_slow(CPUState *cpu, CPUTLBEntryFull *full, vaddr addr,
                         int mmu_idx);
void tlb_check_use_slow(CPUState *cpu, CPUTLBEntryFull *full, vaddr addr,
                        MMUAccessType type, int mmu_idx, uintptr_t ra);
bool tlb_check_fetch_slow(CPUState *cpu, vaddr pc, const TranslationBlock *tb);
/* Is there a free place for this page, and no entry? tlb-check.c.inc has it. */
bool tlb_check_has_room(CPUState *cpu, vaddr page, int mmu_idx);
void tlb_check_ahead_fill_slow(CPUState *cpu);
void tlb_check_ahead_any_slow(CPUState *cpu);
int tlb_check_upper_find(CPUState *cpu, vaddr addr, int mmu_idx, uint64_t *pte,
                         uint64_t *rights);
void tlb_check_upper_add_slow(CPUState *cpu, vaddr addr, int mmu_idx, int level,
                              uint64_t pte, uint64_t rights);
void tlb_check_upper_fault_slow(CPUState *cpu, vaddr addr);
void tlb_check_walks_drop_slow(CPUState *cpu, int tag);
void tlb_check_walks_drop_page_slow(CPUState *cpu, unsigned tag, vaddr addr);
void tlb_check_new_tag_slow(unsigned tag);
void tlb_check_count_tag_slow(CPUState *cpu, bool restored, bool evicted);

/* An entry is about to be put into the TLB. */
static inline void tlb_check_fill(CPUState *cpu, CPUTLBEntryFull *full,
                                  vaddr addr, int mmu_idx)
{
    if (unlikely(tlb_check_on)) {
        tlb_check_fill_slow(cpu, full, addr, mmu_idx);
    } else {
        full->check.watched = 0;
    }
}

/* An access has filled an entry, and has yet to look at it. */
static inline void tlb_check_ahead_fill(CPUState *cpu)
{
    if (unlikely(tlb_check_ahead)) {
        tlb_check_ahead_fill_slow(cpu);
    }
}

/*
 * A walk begins. Returns the level of the deepest upper entry that is cached for
 * the address, with that entry and the rights on the way to it; 0: from the root.
 */
static inline int tlb_check_upper_walk(CPUState *cpu, vaddr addr, int mmu_idx,
                                       uint64_t *pte, uint64_t *rights)
{
    return likely(!tlb_check_upper) ? 0 :
           tlb_check_upper_find(cpu, addr, mmu_idx, pte, rights);
}

/* A walk came by an upper entry in memory that leads to a table; A is set. */
static inline void tlb_check_upper_add(CPUState *cpu, vaddr addr, int mmu_idx,
                                       int level, uint64_t pte,
                                       uint64_t rights)
{
    if (unlikely(tlb_check_upper)) {
        tlb_check_upper_add_slow(cpu, addr, mmu_idx, level, pte, rights);
    }
}

/* A walk ends in a page fault. */
static inline void tlb_check_upper_fault(CPUState *cpu, vaddr addr)
{
    if (unlikely(tlb_check_upper)) {
        tlb_check_upper_fault_slow(cpu, addr);
    }
}

/* An entry is used; a fill before that was part of the same access counts. */
static inline void tlb_check_use(CPUState *cpu, CPUTLBEntryFull *full,
                                 vaddr addr, MMUAccessType type, int mmu_idx,
                                 uintptr_t ra)
{
    if (unlikely(full->check.watched)) {
        tlb_check_use_slow(cpu, full, addr, type, mmu_idx, ra);
    }
}

/* The jump cache has @tb for @pc; false: look again, in the TLB first. */
static inline bool tlb_check_fetch(CPUState *cpu, vaddr pc,
                                   const TranslationBlock *tb)
{
    if (likely(!tlb_check_on)) {
        return true;
    }
    if (tlb_check_ahead) {
        tlb_check_ahead_any_slow(cpu);
    }
    return tlb_check_fetch_slow(cpu, pc, tb);
}

/* The guest dropped what it had cached of page tables: of a tag, or all (-1) */
static inline void tlb_check_walks_drop(CPUState *cpu, int tag)
{
    if (unlikely(tlb_check_on)) {
        tlb_check_walks_drop_slow(cpu, tag);
    }
}

/* The same for one address. */
static inline void tlb_check_walks_drop_page(CPUState *cpu, unsigned tag,
                                             vaddr addr)
{
    if (unlikely(tlb_check_on)) {
        tlb_check_walks_drop_page_slow(cpu, tag, addr);
    }
}

/* The guest made a tag current. */
static inline void tlb_check_new_tag(CPUState *cpu, unsigned tag)
{
    if (unlikely(tlb_check_on)) {
        tlb_check_new_tag_slow(tag);
    }
}

/* Entries of tags changed places. */
static inline void tlb_check_count_tag(CPUState *cpu, bool restored,
                                       bool evicted)
{
    if (unlikely(tlb_check_on)) {
        tlb_check_count_tag_slow(cpu, restored, evicted);
    }
}

/**
 * tlb_check_command: a command of the guest
 * @cpu: the vCPU that gives it
 * @privileged: may it do what only a kernel may?
 * @command: enum tlb_check_command
 * @arg: three arguments
 * @out: three results
 *
 * Returns 0 or a positive errno value, -1 when there is no checker.
 */
int tlb_check_command(CPUState *cpu, bool privileged, uint32_t command,
                      const uint64_t arg[3], uint64_t out[3]);

/**
 * tlb_check_ram: the host address of guest memory, NULL if it is not RAM
 */
void *tlb_check_ram(hwaddr addr);

#endif /* EXEC_TLB_CHECK_H */
