/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLB check: what the checker remembers in each TLB entry
 *
 * Part of CPUTLBEntryFull, so it moves with the entry (victim TLB, saved
 * tags). Written by the vCPU that owns the entry only.
 */
#ifndef EXEC_TLB_CHECK_ENTRY_H
#define EXEC_TLB_CHECK_ENTRY_H

/* Page table levels that a walk can have. */
#define TLB_CHECK_LEVELS 5

typedef struct TLBCheckEntry {
    /* TLB_CHECK_FEATURE_USER or _KERNEL; 0: uses are not compared. */
    uint8_t watched;
    /* Filled by the access that is about to use it: nothing to compare. */
    uint8_t fresh;
    /* How many of tables[] are valid. */
    uint8_t ntables;
    /* log2 of the region of a cached upper entry that was wrong, or 0. */
    uint8_t upper_shift;
    /* The classes that were reported for this entry, a bit each. */
    uint16_t reported;
    /* The frames of the page tables that led here, the root first. */
    uint32_t tables[TLB_CHECK_LEVELS];
    /* The frame that stands for the address space of that root. */
    uint32_t space;
    /* Number of the last frame event before the fill. */
    uint64_t seq;
    /* Up to this event the tables are known to be unharmed. */
    uint64_t tables_seq;
    /* Number of the last begin or return of a flush when it was loaded. */
    uint64_t flush_seq;
    /* Host ticks: fill, last use that was right, first one that was not. */
    uint64_t filled;
    uint64_t right;
    uint64_t stale;
} TLBCheckEntry;

#endif /* EXEC_TLB_CHECK_ENTRY_H */
