/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLB check: mistakes on purpose
 *
 * A checker that reports nothing proves something only if it would have
 * reported. Each mutation breaks one thing, in the emulated TLB or in the
 * checker, and a test of emulator/tests has to fail under it. They are set
 * once, before the guest starts, and exist for those tests alone.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "tlb-check-internal.h"

uint32_t tlb_check_mutations;

static const char *const mutation_names[TLB_CHECK_MUTATIONS + 1] = {
    /* The TLB. */
    [TLB_CHECK_CR3_NEVER_FLUSHES] = "cr3-never-flushes",
    [TLB_CHECK_SWITCH_IGNORED] = "switch-ignored",
    [TLB_CHECK_INVLPG_IGNORED] = "invlpg-ignored",
    [TLB_CHECK_INVLPG_NOT_GLOBAL] = "invlpg-not-global",
    [TLB_CHECK_INVPCID_IGNORED] = "invpcid-ignored",
    [TLB_CHECK_LARGE_PARTLY] = "large-partly",
    [TLB_CHECK_FULL_KEEPS_TAGS] = "full-keeps-tags",
    [TLB_CHECK_EVICTION_KEEPS] = "eviction-keeps",
    [TLB_CHECK_GLOBALS_DROPPED] = "globals-dropped",
    [TLB_CHECK_RESTORED_CLEAN] = "restored-clean",
    [TLB_CHECK_UPPER_IGNORED] = "upper-ignored",
    [TLB_CHECK_UPPER_KEPT] = "upper-kept",
    [TLB_CHECK_UPPER_FAULTS_KEEP] = "upper-faults-keep",
    [TLB_CHECK_AHEAD_IGNORED] = "ahead-ignored",
    [TLB_CHECK_AHEAD_WRITES] = "ahead-writes",
    [TLB_CHECK_MODES_APART] = "modes-apart",
    [TLB_CHECK_MODES_WRITE] = "modes-write",
    /* The checker. */
    [TLB_CHECK_WALK_IGNORED] = "walk-ignored",
    [TLB_CHECK_FETCH_IGNORED] = "fetch-ignored",
    [TLB_CHECK_FRAMES_IGNORED] = "frames-ignored",
    [TLB_CHECK_TABLES_IGNORED] = "tables-ignored",
    [TLB_CHECK_RANGES_IGNORED] = "ranges-ignored",
    [TLB_CHECK_ROOTS_IGNORED] = "roots-ignored",
    [TLB_CHECK_HALVES_IGNORED] = "halves-ignored",
    [TLB_CHECK_CPL_IGNORED] = "cpl-ignored",
    [TLB_CHECK_SPACES_IGNORED] = "spaces-ignored",
    [TLB_CHECK_ROOTS_UNKNOWN] = "roots-unknown",
    [TLB_CHECK_FLUSHES_IGNORED] = "flushes-ignored",
    [TLB_CHECK_FLUSHES_WIDENED] = "flushes-widened",
};

/* @names: names with colons between them. */
bool tlb_check_mutations_set(const char *names, Error **errp)
{
    g_auto(GStrv) list = g_strsplit(names, ":", 0);
    uint32_t set = 0;

    for (char **name = list; *name; name++) {
        int i;

        for (i = 0; i < TLB_CHECK_MUTATIONS; i++) {
            if (!strcmp(*name, mutation_names[i])) {
                set |= 1u << i;
                break;
            }
        }
        if (i == TLB_CHECK_MUTATIONS) {
            g_autofree char *known = g_strjoinv(", ",
                                                (char **)mutation_names);

            error_setg(errp, "tlb-check: no mutation '%s'", *name);
            error_append_hint(errp, "There are: %s\n", known);
            return false;
        }
    }
    tlb_check_mutations = set;
    return true;
}
