/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLB check: the interface between a guest and the checker
 *
 * A guest talks to the checker with the CPUID instruction, from user mode
 * too. Without the checker the leaf answers with something else, and
 * tlb_check_present() says so. Programs and kernels include this file as it
 * is; it depends on nothing but the compiler.
 *
 * In: EAX the leaf, ECX the command, RSI, RDI and RDX its arguments.
 * Out: EAX 0 or a positive errno value, RBX, RCX and RDX the results.
 */
#ifndef EXEC_TLB_CHECK_GUEST_H
#define EXEC_TLB_CHECK_GUEST_H

#define TLB_CHECK_LEAF          0x40544c42u
#define TLB_CHECK_VERSION       1

/* EBX, ECX, EDX of TLB_CHECK_IDENTIFY: "TLBcheckQEMU" */
#define TLB_CHECK_SIGNATURE_B   0x63424c54u
#define TLB_CHECK_SIGNATURE_C   0x6b636568u
#define TLB_CHECK_SIGNATURE_D   0x554d4551u

/* The commands. Those from TLB_CHECK_KERNEL on need CPL 0. */
enum tlb_check_command {
    TLB_CHECK_IDENTIFY = 0,     /* the signature */
    /* RBX: version, RCX: TLB_CHECK_FEATURE_*, RDX: tags with entries */
    TLB_CHECK_FEATURES = 1,
    TLB_CHECK_ARM = 2,          /* start, bytes: nothing may use these now */
    TLB_CHECK_DISARM = 3,       /* start, bytes; RBX: ranges that it changed */
    TLB_CHECK_WATCH = 4,        /* check this address space (process=on) */
    TLB_CHECK_UNWATCH = 5,
    TLB_CHECK_MARK = 6,         /* value: a line in the log */
    TLB_CHECK_COUNTER = 7,      /* enum tlb_check_counter: RBX: its value */
    TLB_CHECK_KERNEL = 0x100,
    TLB_CHECK_FRAMES = 0x100,   /* first pfn, count, enum tlb_check_event */
    TLB_CHECK_RESET = 0x101,    /* all counters to 0 */
    TLB_CHECK_TEXT = 0x102,     /* address of the symbol _text */
    /*
     * A flush begins: address of the root of the address space + log2 of the
     * stride, start, end (-1: all). RBX: its number, 0: nobody wants to know.
     */
    TLB_CHECK_FLUSH_BEGIN = 0x103,
    TLB_CHECK_FLUSH_DONE = 0x104,       /* number: that flush has returned */
    /* addresses of a root and of that which stands for its address space */
    TLB_CHECK_ROOT = 0x105,
};

#define TLB_CHECK_FEATURE_USER      1u  /* user=on */
#define TLB_CHECK_FEATURE_KERNEL    2u  /* kernel=on */
#define TLB_CHECK_FEATURE_FETCH     4u  /* fetch=on */
#define TLB_CHECK_FEATURE_PROCESS   8u  /* process=on */

/* What happens to frames. No translation from before may be used after. */
enum tlb_check_event {
    TLB_CHECK_FREED = 1,        /* goes to the page allocator */
    TLB_CHECK_OWNER = 2,        /* goes to somebody who may not see it */
    TLB_CHECK_CACHE = 3,        /* leaves the page cache */
    TLB_CHECK_TABLE = 4,        /* was a page table */
};

enum tlb_check_counter {
    TLB_CHECK_N_CHECKS,         /* uses of entries that were compared */
    TLB_CHECK_N_SKIPPED,        /* left out by sample= */
    TLB_CHECK_N_TRANSIENT,      /* stale, and nothing says that it is wrong */
    TLB_CHECK_N_DIRTY,          /* writes that did not set the dirty bit */
    TLB_CHECK_N_VIOLATIONS,     /* uses of the next six, SPACE or FLUSHED */
    TLB_CHECK_N_FREED,
    TLB_CHECK_N_OWNER,
    TLB_CHECK_N_CACHE,
    TLB_CHECK_N_TABLE,
    TLB_CHECK_N_ARMED,
    TLB_CHECK_N_OLD,
    TLB_CHECK_N_REFUSED,        /* commands from user mode that need CPL 0 */
    TLB_CHECK_N_EVENTS,         /* frames that TLB_CHECK_FRAMES named */
    TLB_CHECK_N_NOT_RAM,        /* of them outside the guest's memory */
    TLB_CHECK_N_REPORTS,        /* reports, printed or over max-reports */
    TLB_CHECK_N_SWITCHES,       /* changes of the TLB tag (PCID) */
    TLB_CHECK_N_RESTORED,       /* of them to a tag with entries kept */
    TLB_CHECK_N_EVICTED,        /* tags that lost their entries to others */
    TLB_CHECK_N_SPACE,
    TLB_CHECK_N_FLUSHED,
    TLB_CHECK_N_FLUSHES,        /* flushes that have returned */
    TLB_CHECK_N_UPPER,          /* walks that began at a cached upper level */
    TLB_CHECK_N_AHEAD,          /* entries that nobody asked for */
    TLB_CHECK_N_FILLS,          /* entries that were made, of what is checked */
    TLB_CHECK_COUNTERS
};

/* What tools call them. */
#define TLB_CHECK_COUNTER_NAMES {                   \
    [TLB_CHECK_N_CHECKS] = "checks",                \
    [TLB_CHECK_N_SKIPPED] = "skipped",              \
    [TLB_CHECK_N_TRANSIENT] = "transient",          \
    [TLB_CHECK_N_DIRTY] = "dirty",                  \
    [TLB_CHECK_N_VIOLATIONS] = "violations",        \
    [TLB_CHECK_N_FREED] = "freed",                  \
    [TLB_CHECK_N_OWNER] = "owner",                  \
    [TLB_CHECK_N_CACHE] = "cache",                  \
    [TLB_CHECK_N_TABLE] = "table",                  \
    [TLB_CHECK_N_ARMED] = "armed",                  \
    [TLB_CHECK_N_OLD] = "old",                      \
    [TLB_CHECK_N_REFUSED] = "refused",              \
    [TLB_CHECK_N_EVENTS] = "events",                \
    [TLB_CHECK_N_NOT_RAM] = "not_ram",              \
    [TLB_CHECK_N_REPORTS] = "reports",              \
    [TLB_CHECK_N_SWITCHES] = "switches",            \
    [TLB_CHECK_N_RESTORED] = "restored",            \
    [TLB_CHECK_N_EVICTED] = "evicted",              \
    [TLB_CHECK_N_SPACE] = "space",                  \
    [TLB_CHECK_N_FLUSHED] = "flushed",              \
    [TLB_CHECK_N_FLUSHES] = "flushes",              \
    [TLB_CHECK_N_UPPER] = "upper",                  \
    [TLB_CHECK_N_AHEAD] = "ahead",                  \
    [TLB_CHECK_N_FILLS] = "fills",                  \
}

#ifndef TLB_CHECK_HOST

#define TLB_CHECK_EPERM     1
#define TLB_CHECK_ENOENT    2
#define TLB_CHECK_EINVAL    22
#define TLB_CHECK_ENOSPC    28

typedef unsigned long long tlb_check_u64;

/**
 * tlb_check_call() - one command
 * @command: enum tlb_check_command
 * @a: first argument
 * @b: second argument
 * @c: third argument
 * @result: RBX, RCX and RDX afterwards, or NULL
 *
 * Return: 0, or a positive errno value. Without a checker: undefined.
 */
static inline unsigned int tlb_check_call(unsigned int command,
                                          tlb_check_u64 a, tlb_check_u64 b,
                                          tlb_check_u64 c,
                                          tlb_check_u64 *result)
{
    tlb_check_u64 ax = TLB_CHECK_LEAF, bx = 0, cx = command, dx = c;

    __asm__ volatile("cpuid"
                     : "+a" (ax), "+b" (bx), "+c" (cx), "+d" (dx)
                     : "S" (a), "D" (b) : "memory");
    if (result) {
        result[0] = bx;
        result[1] = cx;
        result[2] = dx;
    }
    return (unsigned int)ax;
}

/**
 * tlb_check_present() - does a checker run below this guest?
 *
 * Return: 1 if so, else 0. Ask before any other call.
 */
static inline int tlb_check_present(void)
{
    tlb_check_u64 r[3];

    return tlb_check_call(TLB_CHECK_IDENTIFY, 0, 0, 0, r) == 0 &&
           (unsigned int)r[0] == TLB_CHECK_SIGNATURE_B &&
           (unsigned int)r[1] == TLB_CHECK_SIGNATURE_C &&
           (unsigned int)r[2] == TLB_CHECK_SIGNATURE_D;
}

/**
 * tlb_check_arm() - from now on each use of a stale entry here is a violation
 * @start: first byte
 * @bytes: length
 *
 * For after a call that promises that nobody reaches the old page: munmap,
 * mprotect(PROT_NONE). Where access stays allowed the kernel may change the page
 * at any time (reclaim, migration, copy on write) and flush a little later, which
 * would be reported. Disarm before the range is mapped again. Holds for the
 * calling address space, until it is disarmed or goes away. Ranges that touch
 * count as one.
 *
 * Return: 0, or a positive errno value: no space for more ranges.
 */
static inline unsigned int tlb_check_arm(const void *start, unsigned long bytes)
{
    return tlb_check_call(TLB_CHECK_ARM, (tlb_check_u64)(unsigned long)start,
                          bytes, 0, 0);
}

/**
 * tlb_check_disarm() - take back tlb_check_arm()
 * @start: first byte
 * @bytes: length; armed or not, afterwards nothing of it is
 *
 * What CPL 0 armed only CPL 0 disarms.
 *
 * Return: 0, or a positive errno value: nothing of it was armed; no space for
 * what is left behind it.
 */
static inline unsigned int tlb_check_disarm(const void *start,
                                            unsigned long bytes)
{
    return tlb_check_call(TLB_CHECK_DISARM,
                          (tlb_check_u64)(unsigned long)start, bytes, 0, 0);
}

/**
 * tlb_check_counter() - read a counter
 * @which: enum tlb_check_counter
 *
 * Return: its value, summed over the vCPUs. Exact once they are quiet.
 */
static inline tlb_check_u64 tlb_check_counter(unsigned int which)
{
    tlb_check_u64 r[3] = { 0, 0, 0 };

    tlb_check_call(TLB_CHECK_COUNTER, which, 0, 0, r);
    return r[0];
}

/**
 * tlb_check_frames() - tell what happens to frames (CPL 0)
 * @pfn: the first
 * @count: how many
 * @event: enum tlb_check_event
 *
 * Call it when no entry may be used any more, before anybody else can get
 * the frames.
 */
static inline void tlb_check_frames(unsigned long pfn, unsigned long count,
                                    enum tlb_check_event event)
{
    tlb_check_call(TLB_CHECK_FRAMES, pfn, count, event, 0);
}

#endif /* !TLB_CHECK_HOST */
#endif /* EXEC_TLB_CHECK_GUEST_H */
