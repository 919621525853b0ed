/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLB check: events of frames, and where guest RAM is on the host
 *
 * For each frame of guest RAM the last event is kept: its number, its kind
 * and its time. Events are numbered over all frames. An entry that was filled
 * before a frame's last event and is used after it reaches a frame that is
 * somebody else's.
 *
 * The number of the last event is taken by a fill *before* it reads the page
 * tables for the second time (tlb-check-use.c). So an event with a higher
 * number happened after the entry was known to be right, and a correct guest
 * is never accused.
 *
 * Callers: commands of the guest (events), fills and uses (questions); all in
 * vCPU threads. The map of the RAM changes under the BQL and is read under
 * RCU, in which vCPU threads run guest code.
 */
#include "qemu/osdep.h"
#include "qemu/rcu.h"
#include "qemu/timer.h"
#include "qapi/error.h"
#include "exec/memory.h"
#include "exec/address-spaces.h"
#include "tlb-check-internal.h"

#define PFN_SHIFT 12
#define EVENT_KIND_BITS 3

typedef struct Frame {
    uint64_t last;              /* number << EVENT_KIND_BITS | kind */
    uint64_t ticks;
} Frame;

typedef struct RAMRange {
    hwaddr start;
    hwaddr end;
    char *host;
} RAMRange;

typedef struct RAMMap {
    struct rcu_head rcu;
    unsigned n;
    RAMRange range[];
} RAMMap;

static Frame *frames;
static uint64_t nframes;
static uint64_t last_event;     /* atomic */
static RAMMap *ram_map;         /* RCU */
static GArray *ram_next;        /* RAMRange, between begin and commit */

static void ram_begin(MemoryListener *listener)
{
    g_array_set_size(ram_next, 0);
}

static void ram_region(MemoryListener *listener, MemoryRegionSection *section)
{
    RAMRange r;

    if (!memory_region_is_ram(section->mr) || section->readonly ||
        memory_region_is_romd(section->mr)) {
        return;
    }
    r.start = section->offset_within_address_space;
    r.end = r.start + int128_get64(section->size);
    r.host = (char *)memory_region_get_ram_ptr(section->mr) +
             section->offset_within_region;
    g_array_append_val(ram_next, r);
}

static gint larger_first(gconstpointer a, gconstpointer b)
{
    const RAMRange *x = a, *y = b;
    hwaddr sx = x->end - x->start, sy = y->end - y->start;

    return sx < sy ? 1 : sx > sy ? -1 : 0;
}

static void ram_commit(MemoryListener *listener)
{
    RAMMap *old = ram_map;
    RAMMap *new = g_malloc(sizeof(*new) + ram_next->len * sizeof(RAMRange));

    g_array_sort(ram_next, larger_first);
    new->n = ram_next->len;
    memcpy(new->range, ram_next->data, ram_next->len * sizeof(RAMRange));
    qatomic_rcu_set(&ram_map, new);
    if (old) {
        g_free_rcu(old, rcu);
    }
}

static MemoryListener ram_listener = {
    .name = "tlb-check",
    .begin = ram_begin,
    .region_add = ram_region,
    .region_nop = ram_region,
    .commit = ram_commit,
};

void *tlb_check_ram(hwaddr addr)
{
    const RAMMap *map = qatomic_rcu_read(&ram_map);

    for (unsigned i = 0; i < map->n; i++) {
        const RAMRange *r = &map->range[i];

        if (addr >= r->start && addr < r->end) {
            return r->host + (addr - r->start);
        }
    }
    return NULL;
}

/* The table spans all RAM that the machine has when the guest starts. */
bool tlb_check_frames_init(Error **errp)
{
    hwaddr top = 0;

    ram_next = g_array_new(false, false, sizeof(RAMRange));
    memory_listener_register(&ram_listener, &address_space_memory);
    for (unsigned i = 0; i < ram_map->n; i++) {
        top = MAX(top, ram_map->range[i].end);
    }
    nframes = top >> PFN_SHIFT;
    /* Zeroed by the host when it is touched: unused parts cost nothing. */
    frames = g_try_new0(Frame, nframes);
    if (!frames) {
        error_setg(errp, "tlb-check: no memory for the table of %" PRIu64
                   " frames", nframes);
        return false;
    }
    return true;
}

uint64_t tlb_check_frames_now(void)
{
    return qatomic_load_acquire(&last_event);
}

/* Was there an event of @pfn after number @seq? */
bool tlb_check_frames_since(hwaddr pfn, uint64_t seq, TLBCheckEvent *out)
{
    uint64_t last;

    if (pfn >= nframes) {
        return false;
    }
    /* Pairs with the release in tlb_check_frames_event: then ticks is set. */
    last = qatomic_load_acquire(&frames[pfn].last);
    if (last >> EVENT_KIND_BITS <= seq) {
        return false;
    }
    out->seq = last >> EVENT_KIND_BITS;
    out->what = last & ((1 << EVENT_KIND_BITS) - 1);
    out->ticks = qatomic_read(&frames[pfn].ticks);
    return true;
}

/*
 * Record an event; returns how many of the frames are not RAM. All frames of
 * a call have one number: they change hands together. Two vCPUs do not race
 * for one frame: who reports it owns it.
 */
uint64_t tlb_check_frames_event(uint64_t pfn, uint64_t count,
                                enum tlb_check_event what)
{
    uint64_t seq, now, end;

    if (pfn >= nframes) {
        return count;
    }
    end = pfn + MIN(count, nframes - pfn);
    seq = qatomic_add_fetch(&last_event, 1);
    now = cpu_get_host_ticks();
    for (uint64_t i = pfn; i < end; i++) {
        qatomic_set(&frames[i].ticks, now);
        qatomic_store_release(&frames[i].last, seq << EVENT_KIND_BITS | what);
    }
    return count - (end - pfn);
}
