/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLB check: commands of the guest; armed ranges and watched processes
 *
 * Both belong to an address space, see tlb-check-spaces.c. When the frame of its
 * root is given away its ranges and its registration go: the next process with
 * that root is another one.
 *
 * Threads: commands come from any vCPU. The lists change under
 * tlb_check->lock; the hot path looks at their length first. A vCPU that sees
 * an old length just before an arm takes effect on another vCPU is a use
 * before the arm.
 */
#include "qemu/osdep.h"
#include "qemu/lockable.h"
#include "exec/tlb-tags.h"
#include "tlb-check-internal.h"

/* User mode may use up the first number only: the rest is for the kernel. */
#define MAX_USER_RANGES 1024
#define MAX_RANGES 4096
#define MAX_USER_PROCESSES 256
#define MAX_PROCESSES 320
#define MAX_USER_MARKS 10000
#define PFN_SHIFT 12

typedef struct Range {
    hwaddr root;
    uint64_t start;
    uint64_t end;
    bool privileged;            /* armed at CPL 0, and only disarmed there */
} Range;

static Range ranges[MAX_RANGES];
static unsigned nranges;        /* atomic, written under the lock */
static hwaddr processes[MAX_PROCESSES];
static unsigned nprocesses;     /* the same */
static unsigned user_marks;     /* atomic */

bool tlb_check_armed(CPUState *cpu, vaddr addr)
{
    hwaddr root;

    if (!qatomic_read(&nranges) ||
        tlb_check_mutated(TLB_CHECK_RANGES_IGNORED)) {
        return false;
    }
    root = tlb_check_space(cpu);
    QEMU_LOCK_GUARD(&tlb_check->lock);
    for (unsigned i = 0; i < nranges; i++) {
        if (addr >= ranges[i].start && addr < ranges[i].end &&
            tlb_check_same_space(ranges[i].root, root)) {
            return true;
        }
    }
    return false;
}

bool tlb_check_process_watched(CPUState *cpu)
{
    hwaddr root;

    if (!qatomic_read(&nprocesses)) {
        return false;
    }
    root = tlb_check_space(cpu);
    QEMU_LOCK_GUARD(&tlb_check->lock);
    for (unsigned i = 0; i < nprocesses; i++) {
        if (tlb_check_same_space(processes[i], root)) {
            return true;
        }
    }
    return false;
}

/* Under the lock. */
static void remove_range(unsigned i)
{
    ranges[i] = ranges[nranges - 1];
    qatomic_set(&nranges, nranges - 1);
}

static int add_range(const Range *r)
{
    if (nranges >= (r->privileged ? MAX_RANGES : MAX_USER_RANGES)) {
        return ENOSPC;
    }
    ranges[nranges] = *r;
    qatomic_set(&nranges, nranges + 1);
    return 0;
}

/* Ranges of one owner that touch become one, so that no two ever touch. */
static int arm(CPUState *cpu, bool privileged, uint64_t start, uint64_t bytes)
{
    Range r = { tlb_check_space(cpu), start, start + bytes, privileged };

    if (!bytes || r.end < start) {
        return EINVAL;
    }
    QEMU_LOCK_GUARD(&tlb_check->lock);
    for (unsigned i = 0; i < nranges;) {
        if (ranges[i].start <= r.end && r.start <= ranges[i].end &&
            ranges[i].privileged == privileged &&
            tlb_check_same_space(ranges[i].root, r.root)) {
            r.start = MIN(r.start, ranges[i].start);
            r.end = MAX(r.end, ranges[i].end);
            remove_range(i);
        } else {
            i++;
        }
    }
    return add_range(&r);
}

/* What lies in the middle of a range leaves two, or without room its front. */
static int disarm(CPUState *cpu, bool privileged, uint64_t start,
                  uint64_t bytes, uint64_t *changed)
{
    hwaddr root = tlb_check_space(cpu);
    uint64_t end = start + bytes;
    int status = 0;

    *changed = 0;
    if (!bytes || end < start) {
        return EINVAL;
    }
    QEMU_LOCK_GUARD(&tlb_check->lock);
    for (unsigned i = 0; i < nranges;) {
        Range r = ranges[i];

        if (r.start >= end || start >= r.end ||
            !tlb_check_same_space(r.root, root) ||
            (r.privileged && !privileged &&
             !tlb_check_mutated(TLB_CHECK_CPL_IGNORED))) {
            i++;
            continue;
        }
        ++*changed;
        if (r.start >= start && r.end <= end) {
            remove_range(i);
            continue;
        }
        if (r.start < start) {
            ranges[i].end = start;
            r.start = end;
            if (r.end > end) {
                status = add_range(&r);
            }
        } else {
            ranges[i].start = end;
        }
        i++;
    }
    return *changed ? status : ENOENT;
}

static int watch(CPUState *cpu, bool privileged, bool on)
{
    hwaddr root = tlb_check_space(cpu);

    QEMU_LOCK_GUARD(&tlb_check->lock);
    for (unsigned i = 0; i < nprocesses; i++) {
        if (tlb_check_same_space(processes[i], root)) {
            if (!on) {
                processes[i] = processes[nprocesses - 1];
                qatomic_set(&nprocesses, nprocesses - 1);
            }
            return 0;
        }
    }
    if (!on) {
        return ENOENT;
    }
    if (nprocesses >= (privileged ? MAX_PROCESSES : MAX_USER_PROCESSES)) {
        return ENOSPC;
    }
    processes[nprocesses] = root;
    qatomic_set(&nprocesses, nprocesses + 1);
    return 0;
}

/* The address spaces with a root among these frames are gone. */
static void forget_roots(uint64_t pfn, uint64_t count)
{
    if (!qatomic_read(&nranges) && !qatomic_read(&nprocesses)) {
        return;
    }
    QEMU_LOCK_GUARD(&tlb_check->lock);
    for (unsigned i = 0; i < nranges;) {
        if ((ranges[i].root >> PFN_SHIFT) - pfn < count) {
            remove_range(i);
        } else {
            i++;
        }
    }
    for (unsigned i = 0; i < nprocesses;) {
        if ((processes[i] >> PFN_SHIFT) - pfn < count) {
            processes[i] = processes[nprocesses - 1];
            qatomic_set(&nprocesses, nprocesses - 1);
        } else {
            i++;
        }
    }
}

static int frames_event(CPUState *cpu, uint64_t pfn, uint64_t count,
                        uint64_t what)
{
    uint64_t *events = &tlb_check_vcpu(cpu)->counter[TLB_CHECK_N_EVENTS];
    uint64_t *not_ram = &tlb_check_vcpu(cpu)->counter[TLB_CHECK_N_NOT_RAM];
    uint64_t beyond;

    if (what < TLB_CHECK_FREED || what > TLB_CHECK_TABLE || !count) {
        return EINVAL;
    }
    if (tlb_check_mutated(TLB_CHECK_FRAMES_IGNORED) ||
        (what == TLB_CHECK_CACHE && !tlb_check->cache)) {
        return 0;
    }
    beyond = tlb_check_frames_event(pfn, count, what);
    qatomic_set(events, *events + count);
    qatomic_set(not_ram, *not_ram + beyond);
    forget_roots(pfn, count);
    tlb_check_spaces_forget(pfn, count);
    return 0;
}

static int flush_done(CPUState *cpu, uint64_t number)
{
    int status = tlb_check_flush_done(number);

    if (!status) {
        tlb_check_count(cpu, TLB_CHECK_N_FLUSHES);
    }
    return status;
}

static int counters_reset(void)
{
    uint64_t now[TLB_CHECK_COUNTERS];

    for (int i = 0; i < TLB_CHECK_COUNTERS; i++) {
        now[i] = tlb_check_counter_sum(i);
    }
    QEMU_LOCK_GUARD(&tlb_check->lock);
    for (int i = 0; i < TLB_CHECK_COUNTERS; i++) {
        tlb_check->baseline[i] += now[i];
    }
    return 0;
}

int tlb_check_command(CPUState *cpu, bool privileged, uint32_t command,
                      const uint64_t arg[3], uint64_t out[3])
{
    memset(out, 0, 3 * sizeof(out[0]));
    if (!tlb_check || !tlb_check_ops(cpu)) {
        return -1;
    }
    if (command >= TLB_CHECK_KERNEL && !privileged &&
        !tlb_check_mutated(TLB_CHECK_CPL_IGNORED)) {
        tlb_check_count(cpu, TLB_CHECK_N_REFUSED);
        return EPERM;
    }
    switch (command) {
    case TLB_CHECK_IDENTIFY:
        out[0] = TLB_CHECK_SIGNATURE_B;
        out[1] = TLB_CHECK_SIGNATURE_C;
        out[2] = TLB_CHECK_SIGNATURE_D;
        return 0;
    case TLB_CHECK_FEATURES:
        out[0] = TLB_CHECK_VERSION;
        out[1] = tlb_check_on |
                 (tlb_check->process ? TLB_CHECK_FEATURE_PROCESS : 0);
        out[2] = tlb_tags_sets;
        return 0;
    case TLB_CHECK_ARM:
        return arm(cpu, privileged, arg[0], arg[1]);
    case TLB_CHECK_DISARM:
        return disarm(cpu, privileged, arg[0], arg[1], &out[0]);
    case TLB_CHECK_WATCH:
        return watch(cpu, privileged, true);
    case TLB_CHECK_UNWATCH:
        return watch(cpu, privileged, false);
    case TLB_CHECK_MARK:
        /* Programs may not fill the disk of the host. */
        if (!privileged && qatomic_fetch_inc(&user_marks) >= MAX_USER_MARKS) {
            return ENOSPC;
        }
        tlb_check_log_mark(cpu, arg[0]);
        return 0;
    case TLB_CHECK_COUNTER:
        if (arg[0] >= TLB_CHECK_COUNTERS) {
            return EINVAL;
        }
        out[0] = tlb_check_counter_sum(arg[0]);
        return 0;
    case TLB_CHECK_FRAMES:
        return frames_event(cpu, arg[0], arg[1], arg[2]);
    case TLB_CHECK_FLUSH_BEGIN:
        return tlb_check_flush_begin(arg[0], arg[1], arg[2], &out[0]);
    case TLB_CHECK_FLUSH_DONE:
        return flush_done(cpu, arg[0]);
    case TLB_CHECK_ROOT:
        return tlb_check_spaces_join(arg[0], arg[1]);
    case TLB_CHECK_RESET:
        return counters_reset();
    case TLB_CHECK_TEXT:
        tlb_check_symbols_text(arg[0]);
        return 0;
    default:
        return EINVAL;
    }
}
