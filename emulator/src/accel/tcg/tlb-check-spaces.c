/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLB check: which page table roots are of one address space
 *
 * An address space is known by the frame of its page table root, but a kernel may
 * have more than one root for it:
 *
 *   - Linux with page table isolation has two roots a process, side by side, and
 *     a user program gives commands under the one that its kernel does not use:
 *     then bit 12 of the root does not count. Without isolation two processes may
 *     be neighbours, so it must count. pti=auto tells the two cases apart by the
 *     tags: Linux sets bit 11 of the PCID for the user half.
 *   - CPUs may have roots of their own. The kernel says of each one whose it is
 *     (TLB_CHECK_ROOT), until the frame of the root is given away; of two halves,
 *     the first one.
 *
 * Threads: any vCPU. The table of roots changes under tlb_check->lock and is read
 * under it; the hot path looks at its size first. A root is told before a CPU loads
 * it, which is after that for the CPU, too.
 */
#include "qemu/osdep.h"
#include "qemu/lockable.h"
#include "exec/tlb-tags.h"
#include "tlb-check-internal.h"

#define PFN_SHIFT 12
#define MAX_ROOTS 65536
#define PTI_ROOT_BIT 0x1000ull
#define PTI_TAG_BIT 0x800u

static GHashTable *roots;       /* frame of a root: frame of whose it is */
static unsigned nroots;         /* atomic, written under the lock */
static bool pti;                /* atomic; goes from false to true once */

void tlb_check_spaces_init(void)
{
    pti = !strcmp(tlb_check->pti, "on");
    roots = g_hash_table_new(NULL, NULL);
}

void tlb_check_new_tag_slow(unsigned tag)
{
    if ((tag & PTI_TAG_BIT) && !qatomic_read(&pti) &&
        !strcmp(tlb_check->pti, "auto")) {
        qatomic_set(&pti, true);
    }
}

/* The first of the halves. */
static hwaddr first_half(hwaddr root)
{
    bool halves = qatomic_read(&pti) &&
                  !tlb_check_mutated(TLB_CHECK_HALVES_IGNORED);

    return root & ~(halves ? PTI_ROOT_BIT : 0);
}

bool tlb_check_same_space(hwaddr a, hwaddr b)
{
    return first_half(a) == first_half(b) ||
           tlb_check_mutated(TLB_CHECK_ROOTS_IGNORED);
}

/* Of a root: that which stands for its address space. */
hwaddr tlb_check_space_of(hwaddr root)
{
    gpointer of;

    if (!qatomic_read(&nroots)) {
        return root;
    }
    QEMU_LOCK_GUARD(&tlb_check->lock);
    of = g_hash_table_lookup(roots, GSIZE_TO_POINTER(first_half(root) >>
                                                     PFN_SHIFT));
    return of ? (hwaddr)GPOINTER_TO_SIZE(of) << PFN_SHIFT : root;
}

hwaddr tlb_check_space(CPUState *cpu)
{
    return tlb_check_space_of(tlb_check_ops(cpu)->root(cpu));
}

int tlb_check_spaces_join(hwaddr root, hwaddr of)
{
    root >>= PFN_SHIFT;
    of >>= PFN_SHIFT;
    if (!root || !of || root == of) {
        return EINVAL;
    }
    if (tlb_check_mutated(TLB_CHECK_ROOTS_UNKNOWN)) {
        return 0;
    }
    QEMU_LOCK_GUARD(&tlb_check->lock);
    if (nroots >= MAX_ROOTS) {
        return ENOSPC;
    }
    g_hash_table_insert(roots, GSIZE_TO_POINTER(root), GSIZE_TO_POINTER(of));
    qatomic_set(&nroots, g_hash_table_size(roots));
    return 0;
}

void tlb_check_spaces_forget(uint64_t pfn, uint64_t count)
{
    if (!qatomic_read(&nroots)) {
        return;
    }
    QEMU_LOCK_GUARD(&tlb_check->lock);
    if (count <= nroots) {
        for (uint64_t i = 0; i < count; i++) {
            g_hash_table_remove(roots, GSIZE_TO_POINTER(pfn + i));
        }
    } else {
        GHashTableIter iter;
        gpointer root;

        g_hash_table_iter_init(&iter, roots);
        while (g_hash_table_iter_next(&iter, &root, NULL)) {
            if (GPOINTER_TO_SIZE(root) - pfn < count) {
                g_hash_table_iter_remove(&iter);
            }
        }
    }
    qatomic_set(&nroots, g_hash_table_size(roots));
}
