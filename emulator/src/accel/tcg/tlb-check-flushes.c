/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLB check: flushes of ranges that have returned
 *
 * The kernel says when it begins to flush a range of an address space, on all CPUs
 * that may have used it, and when that has returned. From then on no CPU may use a
 * translation of the range that it loaded before the flush began, unless it is
 * what the page tables say now. Those that hold one may keep it: a CPU that is
 * away drops it when it comes back. This is exact: it asks for nothing but what
 * the caller of the flush relies on.
 *
 * Begins and returns are numbered together. A fill takes the number of the last one
 * *after* it has read the page tables, so:
 *
 *   number of the entry < number of the begin: it was loaded before that
 *
 * and the other way round but for a begin between the two reads of a fill, which
 * counts as one before it. A use is compared with the page tables first, and with
 * the flushes then; a flush that returns in between has asked the CPU of the use,
 * which cannot have answered in the middle of an access, or it did not ask it, which
 * is what this looks for.
 *
 * A flush has a stride: it names one address in so many, for entries of that size
 * or larger. A smaller entry beside these addresses is none of its own.
 *
 * Of what has returned the last MAX_DONE are kept. An older one is forgotten, which
 * can hide a violation and never invents one.
 *
 * Lock: flush_lock, for both tables; taken by commands and by uses that are stale.
 */
#include "qemu/osdep.h"
#include "qemu/lockable.h"
#include "qemu/timer.h"
#include "qapi/error.h"
#include "exec/target_page.h"
#include "tlb-check-internal.h"

#define SHIFT_MASK 0xfffull
#define MAX_SHIFT 47
#define MAX_BEGUN 4096
#define MAX_DONE (1u << 18)

typedef struct Flush {
    uint64_t begun;             /* numbers */
    uint64_t done;
    hwaddr root;                /* of the address space */
    uint64_t start;
    uint64_t end;
    uint64_t ticks;             /* when it returned */
    unsigned shift;             /* of the stride */
} Flush;

static QemuMutex flush_lock;
static Flush begun[MAX_BEGUN];
static unsigned nbegun;
static Flush *done;             /* a ring, in the order of done */
static uint64_t ndone;
static uint64_t last_number;    /* atomic, written under the lock */

bool tlb_check_flushes_init(Error **errp)
{
    qemu_mutex_init(&flush_lock);
    if (!tlb_check->flushes) {
        return true;
    }
    /* Zeroed by the host when it is touched: unused parts cost nothing. */
    done = g_try_new0(Flush, MAX_DONE);
    if (!done) {
        error_setg(errp, "tlb-check: no memory for the table of flushes");
        return false;
    }
    return true;
}

uint64_t tlb_check_flushes_now(void)
{
    return qatomic_load_acquire(&last_number);
}

/* @space: address of its root, with the shift of the stride in the low bits. */
int tlb_check_flush_begin(uint64_t space, uint64_t start, uint64_t end,
                          uint64_t *number)
{
    if (!tlb_check->flushes) {
        return 0;
    }
    if (start >= end || (space & SHIFT_MASK) > MAX_SHIFT) {
        return EINVAL;
    }
    QEMU_LOCK_GUARD(&flush_lock);
    if (nbegun >= MAX_BEGUN) {
        return ENOSPC;
    }
    *number = last_number + 1;
    qatomic_store_release(&last_number, *number);
    begun[nbegun++] = (Flush) {
        .begun = *number,
        .root = space & ~SHIFT_MASK,
        .shift = space & SHIFT_MASK,
        .start = start,
        .end = end,
    };
    return 0;
}

int tlb_check_flush_done(uint64_t number)
{
    QEMU_LOCK_GUARD(&flush_lock);
    for (unsigned i = 0; i < nbegun; i++) {
        if (begun[i].begun == number) {
            Flush *f = &done[ndone++ % MAX_DONE];

            *f = begun[i];
            begun[i] = begun[--nbegun];
            f->ticks = cpu_get_host_ticks();
            f->done = last_number + 1;
            qatomic_store_release(&last_number, f->done);
            return 0;
        }
    }
    return ENOENT;
}

/* Is one of the addresses that a flush names in this page? */
static bool names_page(const Flush *f, uint64_t page, uint64_t size)
{
    uint64_t at = f->start;

    if (tlb_check_mutated(TLB_CHECK_FLUSHES_WIDENED)) {
        return true;
    }
    if (page > at) {
        at += ROUND_UP(page - at, 1ull << f->shift);
    }
    return at < f->end && at - page < size;
}

/*
 * Does a flush meet the region of an upper entry that an entry came by? A flush of
 * any address there drops it, and is for each CPU that has it.
 */
static bool meets_region(const Flush *f, vaddr addr, unsigned shift)
{
    uint64_t region = addr & -(1ull << shift);

    return shift && f->start < region + (1ull << shift) && region < f->end;
}

bool tlb_check_flushed(CPUState *cpu, const CPUTLBEntryFull *full, vaddr addr,
                       TLBCheckEvent *event)
{
    const TLBCheckEntry *e = &full->check;
    uint64_t size = 1ull << MAX(full->lg_page_size, TARGET_PAGE_BITS);
    hwaddr space;

    if (!tlb_check->flushes || tlb_check_mutated(TLB_CHECK_FLUSHES_IGNORED)) {
        return false;
    }
    space = tlb_check_space(cpu);
    QEMU_LOCK_GUARD(&flush_lock);
    for (uint64_t i = ndone; i && ndone - i < MAX_DONE; i--) {
        const Flush *f = &done[(i - 1) % MAX_DONE];

        /* It began even earlier, and so did all before it return. */
        if (f->done <= e->flush_seq) {
            return false;
        }
        if (f->begun > e->flush_seq && tlb_check_same_space(f->root, space) &&
            (names_page(f, addr & -size, size) ||
             meets_region(f, addr, e->upper_shift))) {
            event->ticks = f->ticks;
            return true;
        }
    }
    return false;
}
