/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLB check: shared by the files tlb-check*.c, included by nobody else
 *
 * Which file does what:
 *   tlb-check.c            the object, its properties, start and end
 *   tlb-check-use.c        fills and uses of entries; what is a violation
 *   tlb-check-frames.c     events of frames; where guest RAM is on the host
 *   tlb-check-flushes.c    flushes of ranges that have returned
 *   tlb-check-walks.c      page tables that a CPU may have cached
 *   tlb-check-ahead.c      a walker that runs ahead
 *   tlb-check-guest.c      commands of the guest; armed ranges, processes
 *   tlb-check-spaces.c     which roots are of one address space
 *   tlb-check-report.c     the log, the counters, the names of functions
 *   tlb-check-mutations.c  mistakes on purpose
 *
 * Threads and locks. Counters, entries and cached walks of a vCPU are written
 * by its own thread only, without a lock; counters are read by others with
 * qatomic_read. Frame events come from all vCPUs and are atomic. The lists of
 * ranges, processes and roots change under tlb_check.lock and are read under it,
 * but only after an atomic look at their length. Flushes have a lock of their
 * own, inside tlb-check-flushes.c, and none is taken under it. The log has
 * tlb_check.log_lock, which is taken last.
 */
#ifndef ACCEL_TCG_TLB_CHECK_INTERNAL_H
#define ACCEL_TCG_TLB_CHECK_INTERNAL_H

#define TLB_CHECK_HOST
#include "exec/tlb-check.h"
#include "exec/tlb-check-guest.h"
#include "accel/tcg/cpu-ops.h"
#include "qom/object.h"
#include "qemu/notify.h"

/* A place that a paging-structure cache of the guest's CPU can fill. */
typedef struct TLBCheckCachedWalk {
    uint64_t key;               /* region and level; 0: unused */
    uint64_t seq;               /* last frame event when it was recorded */
    uint64_t flush_seq;         /* last number of a flush; with upper= this */
    uint64_t pte;               /* the entry, */
    uint64_t rights;            /* and what it and those above it allow */
    uint64_t recorded;          /* host ticks */
    uint32_t frame;             /* of the table that the entry points to */
    uint32_t root;              /* frame of the one that it came from */
    uint32_t drops;             /* of the tag at that time */
    uint32_t drops_all;
    uint16_t tag;
} TLBCheckCachedWalk;

#define TLB_CHECK_CACHED_WALKS  1024
#define TLB_CHECK_TAGS          4096

/* A page that was filled. */
typedef struct TLBCheckRecent {
    vaddr page;
    int mmu_idx;
} TLBCheckRecent;

#define TLB_CHECK_RECENT 64u

/* The page table entries that an entry of the TLB was found right with. */
typedef struct TLBCheckPath {
    uint64_t filled;            /* of the entry, which identifies it */
    vaddr page;
    hwaddr root;
    uint8_t mmu_idx;
    uint8_t n;
    uint8_t right;              /* access types: 1 << MMUAccessType */
    const uint64_t *host[TLB_CHECK_LEVELS];
    uint64_t value[TLB_CHECK_LEVELS];
} TLBCheckPath;

#define TLB_CHECK_PATHS 2048

/* Each so many uses the clock is read. */
#define TLB_CHECK_CLOCK_USES 32

typedef struct TLBCheckVCPU {
    uint64_t counter[TLB_CHECK_COUNTERS];
    uint64_t until_sample;
    uint64_t clock;             /* host ticks, read until_clock uses ago */
    unsigned until_clock;
    uint32_t drops_all;
    uint32_t drops[TLB_CHECK_TAGS];
    TLBCheckCachedWalk walks[TLB_CHECK_CACHED_WALKS];
    TLBCheckPath paths[TLB_CHECK_PATHS];
    TLBCheckCachedWalk used;    /* by the walk that goes on; key 0: none */
    bool used_stale;            /* it is not what memory has any more */
    bool filled;                /* since the walker ran ahead last */
    bool running_ahead;
    unsigned pause;
    unsigned nrecent;
    uint64_t random;
    TLBCheckRecent recent[TLB_CHECK_RECENT];
} TLBCheckVCPU;

typedef struct TLBCheck TLBCheck;

struct TLBCheck {
    Object parent;

    /* Properties, constant once complete. */
    bool user;
    bool kernel;
    bool fetch;
    bool process;
    bool cache;
    bool flushes;
    char *pti;                  /* on, off, auto */
    char *log_name;
    char *symbols_name;
    char *mutate;
    uint64_t start;
    uint64_t end;
    uint64_t sample;
    uint64_t upper;
    uint64_t entries;
    uint64_t ahead;
    uint64_t seed;
    uint64_t old_ms;
    uint64_t max_reports;

    Notifier machine_done;
    Notifier exit;
    TLBCheckVCPU *vcpu;
    unsigned nvcpus;
    QemuMutex lock;
    QemuMutex log_lock;
    FILE *log;
    uint64_t reports;           /* atomic */
    uint64_t baseline[TLB_CHECK_COUNTERS];  /* under lock */
    int64_t clock_ns;           /* the two clocks at the start */
    uint64_t clock_ticks;
};

/* The only one; NULL before machine init is done and without a checker. */
extern TLBCheck *tlb_check;

static inline TLBCheckVCPU *tlb_check_vcpu(CPUState *cpu)
{
    return &tlb_check->vcpu[cpu->cpu_index];
}

/* Only the vCPU's own thread counts: no atomic add, no lost count. */
static inline void tlb_check_count(CPUState *cpu, enum tlb_check_counter which)
{
    uint64_t *n = &tlb_check_vcpu(cpu)->counter[which];

    qatomic_set(n, *n + 1);
}

static inline const TLBCheckOps *tlb_check_ops(CPUState *cpu)
{
    return cpu->cc->tcg_ops->tlb_check;
}

/* tlb-check-frames.c */
typedef struct TLBCheckEvent {
    uint64_t seq;               /* 0: never */
    uint64_t ticks;
    enum tlb_check_event what;
} TLBCheckEvent;

bool tlb_check_frames_init(Error **errp);
uint64_t tlb_check_frames_now(void);
bool tlb_check_frames_since(hwaddr pfn, uint64_t seq, TLBCheckEvent *out);
uint64_t tlb_check_frames_event(uint64_t pfn, uint64_t count,
                                enum tlb_check_event what);

/* tlb-check-spaces.c */
void tlb_check_spaces_init(void);
/* Are these of one address space, as far as roots tell? */
bool tlb_check_same_space(hwaddr a, hwaddr b);
/* The root that stands for the current address space. */
hwaddr tlb_check_space_of(hwaddr root);
hwaddr tlb_check_space(CPUState *cpu);
int tlb_check_spaces_join(hwaddr root, hwaddr of);
void tlb_check_spaces_forget(uint64_t pfn, uint64_t count);

/* tlb-check-flushes.c */
bool tlb_check_flushes_init(Error **errp);
uint64_t tlb_check_flushes_now(void);
int tlb_check_flush_begin(uint64_t space, uint64_t start, uint64_t end,
                          uint64_t *number);
int tlb_check_flush_done(uint64_t number);
/* Has a flush returned that should have dropped this entry? */
bool tlb_check_flushed(CPUState *cpu, const CPUTLBEntryFull *full, vaddr addr,
                       TLBCheckEvent *event);

/* tlb-check-walks.c */
void tlb_check_walks_fill(CPUState *cpu, vaddr addr, const TLBCheckWalk *walk,
                          uint64_t seq, int mmu_idx);
/* An entry was filled by way of an upper entry that is wrong by now. */
bool tlb_check_upper_stale(CPUState *cpu, TLBCheckEntry *e);

/* tlb-check-ahead.c */
void tlb_check_ahead_init(void);
void tlb_check_ahead_note(CPUState *cpu, vaddr page, int mmu_idx);

/* tlb-check-guest.c */
void tlb_check_guest_init(void);
bool tlb_check_armed(CPUState *cpu, vaddr addr);
bool tlb_check_process_watched(CPUState *cpu);

/* tlb-check-report.c */
typedef struct TLBCheckReport {
    const char *class;          /* freed, owner, ...: tlb-check-use.c */
    const char *kind;           /* unmapped, frame, rights, dirty, walk */
    vaddr addr;
    MMUAccessType type;
    bool user;
    uintptr_t ra;
    hwaddr cached;
    const TLBCheckWalk *walk;
    const TLBCheckEvent *event; /* or NULL */
    hwaddr table;               /* for class table: which one, else 0 */
    uint64_t filled;            /* host ticks; 0: not known */
    uint64_t right;
    uint64_t stale;
} TLBCheckReport;

bool tlb_check_log_open(TLBCheck *s, Error **errp);
bool tlb_check_symbols_load(TLBCheck *s, Error **errp);
void tlb_check_symbols_text(uint64_t text);
void tlb_check_report(CPUState *cpu, const TLBCheckReport *r);
void tlb_check_log_mark(CPUState *cpu, uint64_t value);
void tlb_check_log_summary(void);
uint64_t tlb_check_counter_sum(enum tlb_check_counter which);
uint64_t tlb_check_ns_since(uint64_t ticks);

/* tlb-check-mutations.c */
bool tlb_check_mutations_set(const char *names, Error **errp);

#endif /* ACCEL_TCG_TLB_CHECK_INTERNAL_H */
