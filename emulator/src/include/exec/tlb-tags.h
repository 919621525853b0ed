/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLB tags: entries of an address space survive while another is current
 *
 * For targets with address space tags in hardware (x86: PCID). The entries of
 * the current tag are in the TLB as always; those of other tags are kept
 * aside and put back. The target says which tag is current, so a reset or a
 * loaded snapshot needs nothing but the full flush that it does anyway.
 *
 * All functions run in the thread of the vCPU.
 */
#ifndef EXEC_TLB_TAGS_H
#define EXEC_TLB_TAGS_H

#include "hw/core/cpu.h"

/* How many tags have entries, the current one included: -accel tcg,tlb-tags */
extern uint32_t tlb_tags_sets;

/**
 * tlb_tags_switch: from now on another tag is current
 * @cpu: this vCPU
 * @from: the tag that was current
 * @to: the tag that is
 * @modes: the MMU indexes that tags apply to
 *
 * Global entries come along.
 */
void tlb_tags_switch(CPUState *cpu, unsigned from, unsigned to,
                     uint16_t modes);

/* Drop the entries of the current tag, but not the global ones. */
void tlb_tags_flush_current(CPUState *cpu, uint16_t modes);

/* Drop the entries of a tag that is not current; of all those (-1). */
void tlb_tags_flush_saved(CPUState *cpu, int tag);

/* The entries of one address to drop. */
typedef enum TLBTagsWhat {
    TLB_TAGS_ALL,
    TLB_TAGS_GLOBAL,
    TLB_TAGS_NOT_GLOBAL,
} TLBTagsWhat;

/**
 * tlb_tags_flush_page: drop the entries of one address of the current tag
 * @cpu: this vCPU
 * @addr: any address in the page
 * @what: which entries
 *
 * Of a large page all entries go, and no entry of other pages.
 */
void tlb_tags_flush_page(CPUState *cpu, vaddr addr, TLBTagsWhat what);

/* The same of a tag that is not current; of all those (-1). */
void tlb_tags_flush_page_saved(CPUState *cpu, int tag, vaddr addr,
                               TLBTagsWhat what);

/**
 * tlb_tags_find_page: an entry that another mode has for a page
 * @cpu: this vCPU
 * @page: address of the page
 * @modes: the MMU indexes to look at
 *
 * Returns: the entry, or NULL; good until the TLB changes.
 */
const CPUTLBEntryFull *tlb_tags_find_page(CPUState *cpu, vaddr page,
                                          uint16_t modes);

/* Say of each entry that is put into the TLB whether it is global. */
void tlb_tags_note_fill(CPUState *cpu, int mmu_idx, bool global);

#endif /* EXEC_TLB_TAGS_H */
