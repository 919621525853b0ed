/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLB check: compare each use of a TLB entry with the page tables
 *
 * For people who change when a guest kernel flushes. A missing flush leaves
 * translations behind that are wrong, and mostly nobody notices: they are
 * evicted, or the page is not used again. With an object of this type each
 * access that hits the TLB is compared with what the page tables say at that
 * moment, and a use that no correct kernel allows is written to a log.
 *
 * This file: the object, its properties, and the start. There can be one, and
 * it lives until QEMU exits: entries are forced to the slow path when they
 * are filled, and switching that on or off later would need a flush, which
 * destroys the evidence.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qemu/module.h"
#include "qemu/timer.h"
#include "qemu/host-utils.h"
#include "qemu/error-report.h"
#include "qom/object_interfaces.h"
#include "hw/boards.h"
#include "system/system.h"
#include "system/tcg.h"
#include "tlb-check-internal.h"

#define MAX_AHEAD 64
#define MIN_ENTRIES 64
#define MAX_ENTRIES 65536

#define TYPE_TLB_CHECK "tlb-check"
OBJECT_DECLARE_SIMPLE_TYPE(TLBCheck, TLB_CHECK)

unsigned tlb_check_on;
unsigned tlb_check_upper;
unsigned tlb_check_ahead;
unsigned tlb_check_entries;
TLBCheck *tlb_check;

static void tlb_check_exit(Notifier *n, void *unused)
{
    tlb_check_log_summary();
}

/* The machine has its memory and its vCPUs, and none of them has run. */
static void tlb_check_start(Notifier *n, void *unused)
{
    TLBCheck *s = container_of(n, TLBCheck, machine_done);

    if (!tcg_enabled()) {
        error_report("tlb-check: works with -accel tcg only");
        exit(EXIT_FAILURE);
    }
    s->nvcpus = current_machine->smp.max_cpus;
    s->vcpu = g_new0(TLBCheckVCPU, s->nvcpus);
    s->clock_ns = get_clock();
    s->clock_ticks = cpu_get_host_ticks();
    tlb_check = s;
    tlb_check_frames_init(&error_fatal);
    tlb_check_flushes_init(&error_fatal);
    tlb_check_spaces_init();
    tlb_check_ahead_init();
    tlb_check_on = (s->user ? TLB_CHECK_FEATURE_USER : 0) |
                   (s->kernel ? TLB_CHECK_FEATURE_KERNEL : 0) |
                   (s->fetch ? TLB_CHECK_FEATURE_FETCH : 0);
    tlb_check_upper = s->upper;
    tlb_check_ahead = s->ahead;
    /* Objects are destroyed before QEMU exits, the summary comes after. */
    object_ref(OBJECT(s));
    s->exit.notify = tlb_check_exit;
    qemu_add_exit_notifier(&s->exit);
}

static void tlb_check_complete(UserCreatable *uc, Error **errp)
{
    TLBCheck *s = TLB_CHECK(uc);
    static bool exists;

    if (exists || phase_check(PHASE_MACHINE_READY)) {
        error_setg(errp, "tlb-check: there can be one, from the start");
        return;
    }
    if (s->start >= s->end) {
        error_setg(errp, "tlb-check: start has to be below end");
        return;
    }
    if (!s->sample) {
        error_setg(errp, "tlb-check: sample has to be 1 or more");
        return;
    }
    if (s->upper > TLB_CHECK_CACHED_WALKS) {
        error_setg(errp, "tlb-check: upper has to be at most %d",
                   TLB_CHECK_CACHED_WALKS);
        return;
    }
    if (s->ahead > MAX_AHEAD) {
        error_setg(errp, "tlb-check: ahead has to be at most %d", MAX_AHEAD);
        return;
    }
    if (s->entries && (s->entries < MIN_ENTRIES || s->entries > MAX_ENTRIES ||
                       !is_power_of_2(s->entries))) {
        error_setg(errp, "tlb-check: entries has to be a power of two from %d "
                   "to %d", MIN_ENTRIES, MAX_ENTRIES);
        return;
    }
    if (strcmp(s->pti, "on") && strcmp(s->pti, "off") &&
        strcmp(s->pti, "auto")) {
        error_setg(errp, "tlb-check: pti is on, off or auto");
        return;
    }
    if ((s->mutate && !tlb_check_mutations_set(s->mutate, errp)) ||
        !tlb_check_symbols_load(s, errp) || !tlb_check_log_open(s, errp)) {
        return;
    }
    /* The TLBs of vCPUs are made after that. */
    tlb_check_entries = s->entries;
    exists = true;
    s->machine_done.notify = tlb_check_start;
    qemu_add_machine_init_done_notifier(&s->machine_done);
}

static bool tlb_check_can_be_deleted(UserCreatable *uc)
{
    return false;
}

static void tlb_check_init(Object *obj)
{
    TLBCheck *s = TLB_CHECK(obj);

    qemu_mutex_init(&s->lock);
    qemu_mutex_init(&s->log_lock);
    s->user = s->kernel = s->fetch = s->cache = true;
    s->end = UINT64_MAX;
    s->sample = 1;
    s->seed = 1;
    s->old_ms = 50;
    s->max_reports = 200;
    s->pti = g_strdup("auto");
}

/* Before it is complete it may go again. */
static void tlb_check_finalize(Object *obj)
{
    TLBCheck *s = TLB_CHECK(obj);

    qemu_mutex_destroy(&s->lock);
    qemu_mutex_destroy(&s->log_lock);
    g_free(s->pti);
    g_free(s->log_name);
    g_free(s->symbols_name);
    g_free(s->mutate);
}

#define BOOL_PROPERTY(field)                                            \
    static bool get_##field(Object *obj, Error **errp)                  \
    {                                                                   \
        return TLB_CHECK(obj)->field;                                   \
    }                                                                   \
    static void set_##field(Object *obj, bool value, Error **errp)      \
    {                                                                   \
        TLB_CHECK(obj)->field = value;                                  \
    }

BOOL_PROPERTY(user)
BOOL_PROPERTY(kernel)
BOOL_PROPERTY(fetch)
BOOL_PROPERTY(process)
BOOL_PROPERTY(cache)
BOOL_PROPERTY(flushes)

#define STRING_PROPERTY(field)                                          \
    static char *get_##field(Object *obj, Error **errp)                 \
    {                                                                   \
        return g_strdup(TLB_CHECK(obj)->field);                         \
    }                                                                   \
    static void set_##field(Object *obj, const char *value, Error **errp) \
    {                                                                   \
        g_free(TLB_CHECK(obj)->field);                                  \
        TLB_CHECK(obj)->field = g_strdup(value);                        \
    }

STRING_PROPERTY(pti)
STRING_PROPERTY(log_name)
STRING_PROPERTY(symbols_name)
STRING_PROPERTY(mutate)

static void visit_u64(Object *obj, Visitor *v, const char *name, void *opaque,
                      Error **errp)
{
    visit_type_uint64(v, name, (uint64_t *)((char *)obj + (size_t)opaque),
                      errp);
}

static void add_u64(ObjectClass *oc, const char *name, size_t offset,
                    const char *text)
{
    object_class_property_add(oc, name, "uint64", visit_u64, visit_u64, NULL,
                              (void *)offset);
    object_class_property_set_description(oc, name, text);
}

static void add_bool(ObjectClass *oc, const char *name,
                     bool (*get)(Object *, Error **),
                     void (*set)(Object *, bool, Error **), const char *text)
{
    object_class_property_add_bool(oc, name, get, set);
    object_class_property_set_description(oc, name, text);
}

static void add_string(ObjectClass *oc, const char *name,
                       char *(*get)(Object *, Error **),
                       void (*set)(Object *, const char *, Error **),
                       const char *text)
{
    object_class_property_add_str(oc, name, get, set);
    object_class_property_set_description(oc, name, text);
}

static void tlb_check_class_init(ObjectClass *oc, void *data)
{
    UserCreatableClass *ucc = USER_CREATABLE_CLASS(oc);

    ucc->complete = tlb_check_complete;
    ucc->can_be_deleted = tlb_check_can_be_deleted;

    add_bool(oc, "user", get_user, set_user,
             "Check accesses in user mode (default: on)");
    add_bool(oc, "kernel", get_kernel, set_kernel,
             "Check kernel accesses to user addresses (default: on)");
    add_bool(oc, "fetch", get_fetch, set_fetch,
             "Check instruction fetches (default: on)");
    add_bool(oc, "process", get_process, set_process,
             "Check only processes that asked for it (default: off)");
    add_bool(oc, "cache", get_cache, set_cache,
             "Is a frame that left the page cache given away? (default: on)");
    add_bool(oc, "flushes", get_flushes, set_flushes,
             "May nothing be used that a flush should have dropped? (default: "
             "off)");
    add_string(oc, "pti", get_pti, set_pti,
               "Does the guest isolate page tables: on, off, auto");
    add_string(oc, "log", get_log_name, set_log_name,
               "File for reports (default: standard error)");
    add_string(oc, "symbols", get_symbols_name, set_symbols_name,
               "Functions of the guest, as nm or System.map list them");
    add_string(oc, "mutate", get_mutate, set_mutate,
               "Mistakes to make on purpose, with colons between them");
    add_u64(oc, "start", offsetof(TLBCheck, start),
            "First address to check");
    add_u64(oc, "end", offsetof(TLBCheck, end),
            "First address after those to check");
    add_u64(oc, "sample", offsetof(TLBCheck, sample),
            "Check each Nth use (default: 1)");
    add_u64(oc, "upper", offsetof(TLBCheck, upper),
            "Entries of upper levels that a vCPU caches (default: 0)");
    add_u64(oc, "ahead", offsetof(TLBCheck, ahead),
            "Fills that nobody asked for, after each (default: 0)");
    add_u64(oc, "entries", offsetof(TLBCheck, entries),
            "Entries of the TLB of a mode (default: by use, as QEMU does)");
    add_u64(oc, "seed", offsetof(TLBCheck, seed),
            "Where the choice of those begins (default: 1)");
    add_u64(oc, "old-ms", offsetof(TLBCheck, old_ms),
            "Stale for longer is class old (default: 50)");
    add_u64(oc, "max-reports", offsetof(TLBCheck, max_reports),
            "Lines in the log (default: 200); counters count on");
}

static const TypeInfo tlb_check_info = {
    .name = TYPE_TLB_CHECK,
    .parent = TYPE_OBJECT,
    .instance_size = sizeof(TLBCheck),
    .instance_init = tlb_check_init,
    .instance_finalize = tlb_check_finalize,
    .class_init = tlb_check_class_init,
    .interfaces = (InterfaceInfo[]) {
        { TYPE_USER_CREATABLE },
        { }
    }
};

static void tlb_check_register(void)
{
    type_register_static(&tlb_check_info);
}

type_init(tlb_check_register);
