/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLB check: the log, the counters, the names of functions
 *
 * A report is one line of name=value pairs; docs of the project describe each
 * field. Names of functions come from a file in the format of nm(1), such as
 * System.map; a guest kernel that moved itself says where its _text is.
 *
 * Lines are written whole under log_lock, by vCPU threads and at exit. The
 * symbols are constant after the start; their slide is one atomic word.
 */
#include "qemu/osdep.h"
#include "qemu/cutils.h"
#include "qemu/timer.h"
#include "qapi/error.h"
#include "tcg/insn-start-words.h"
#include "exec/cpu-common.h"
#include "qemu/lockable.h"
#include "tlb-check-internal.h"

typedef struct Symbol {
    uint64_t addr;
    char *name;
} Symbol;

static GArray *symbols;
static uint64_t symbols_text;   /* address of _text in the file */
static uint64_t symbols_slide;  /* atomic */

static const char *const counter_names[] = TLB_CHECK_COUNTER_NAMES;

uint64_t tlb_check_counter_sum(enum tlb_check_counter which)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < tlb_check->nvcpus; i++) {
        sum += qatomic_read(&tlb_check->vcpu[i].counter[which]);
    }
    QEMU_LOCK_GUARD(&tlb_check->lock);
    return sum - tlb_check->baseline[which];
}

/* Host ticks are cheap to read and have no unit: measure it as it is needed */
typedef struct Now {
    uint64_t ticks;
    double ns_per_tick;
} Now;

static Now take_time(void)
{
    Now now = { .ticks = cpu_get_host_ticks() };
    uint64_t passed = now.ticks - tlb_check->clock_ticks;

    if (passed) {
        now.ns_per_tick = (double)(get_clock() - tlb_check->clock_ns) / passed;
    }
    return now;
}

static uint64_t ns_before(uint64_t ticks, const Now *now)
{
    return ticks && ticks < now->ticks ?
           (now->ticks - ticks) * now->ns_per_tick : 0;
}

uint64_t tlb_check_ns_since(uint64_t ticks)
{
    Now now = take_time();

    return ns_before(ticks, &now);
}

bool tlb_check_log_open(TLBCheck *s, Error **errp)
{
    s->log = s->log_name ? fopen(s->log_name, "w") : stderr;
    if (!s->log) {
        error_setg_file_open(errp, errno, s->log_name);
        return false;
    }
    setvbuf(s->log, NULL, _IOLBF, 0);
    return true;
}

static gint by_address(gconstpointer a, gconstpointer b)
{
    const Symbol *x = a, *y = b;

    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

bool tlb_check_symbols_load(TLBCheck *s, Error **errp)
{
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;
    g_autoptr(GError) gerr = NULL;

    if (!s->symbols_name) {
        return true;
    }
    if (!g_file_get_contents(s->symbols_name, &text, NULL, &gerr)) {
        error_setg(errp, "tlb-check: symbols: %s", gerr->message);
        return false;
    }
    symbols = g_array_new(false, false, sizeof(Symbol));
    lines = g_strsplit(text, "\n", 0);
    for (char **line = lines; *line; line++) {
        g_auto(GStrv) word = g_strsplit(*line, " ", 3);
        Symbol sym;

        if (g_strv_length(word) != 3 || !strchr("tTwW", word[1][0]) ||
            qemu_strtou64(word[0], NULL, 16, &sym.addr)) {
            continue;   /* data, undefined symbols */
        }
        sym.name = g_strdup(word[2]);
        if (!strcmp(sym.name, "_text")) {
            symbols_text = sym.addr;
        }
        g_array_append_val(symbols, sym);
    }
    if (!symbols->len) {
        error_setg(errp, "tlb-check: symbols: %s has no functions, expected "
                   "the format of nm or System.map", s->symbols_name);
        return false;
    }
    g_array_sort(symbols, by_address);
    return true;
}

void tlb_check_symbols_text(uint64_t text)
{
    if (symbols_text) {
        qatomic_set(&symbols_slide, text - symbols_text);
    }
}

/* NAME+0xOFFSET, or "?". */
static char *function_name(uint64_t pc)
{
    const Symbol *found = NULL;
    uint64_t addr;
    guint low = 0, high;

    /* The slide is that of the kernel, not of programs. */
    addr = pc - (pc >> 63 ? qatomic_read(&symbols_slide) : 0);
    high = symbols ? symbols->len : 0;
    while (low < high) {
        guint mid = (low + high) / 2;
        const Symbol *s = &g_array_index(symbols, Symbol, mid);

        if (s->addr <= addr) {
            found = s;
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    /* Too far away is in no function of this file. */
    if (!found || addr - found->addr > 1024 * 1024) {
        return g_strdup("?");
    }
    return g_strdup_printf("%s+0x%" PRIx64, found->name, addr - found->addr);
}

static void print_age(FILE *log, const char *name, uint64_t ticks,
                      const Now *now)
{
    if (ticks) {
        fprintf(log, " %s=%.1f", name, ns_before(ticks, now) / 1000.0);
    }
}

void tlb_check_report(CPUState *cpu, const TLBCheckReport *r)
{
    const TLBCheckOps *ops = tlb_check_ops(cpu);
    static const char *const access[] = {
        [MMU_DATA_LOAD] = "read",
        [MMU_DATA_STORE] = "write",
        [MMU_INST_FETCH] = "fetch",
    };
    uint64_t data[TARGET_INSN_START_WORDS];
    uint64_t pc;
    g_autofree char *function = NULL;
    FILE *log = tlb_check->log;
    Now now = take_time();

    tlb_check_count(cpu, TLB_CHECK_N_REPORTS);
    if (qatomic_fetch_inc(&tlb_check->reports) >= tlb_check->max_reports) {
        return;
    }
    if (r->type == MMU_INST_FETCH) {
        pc = r->addr;
    } else {
        bool found = r->ra && cpu_unwind_state_data(cpu, r->ra, data);

        pc = ops->pc(cpu, found ? data : NULL);
    }
    function = function_name(pc);

    QEMU_LOCK_GUARD(&tlb_check->log_lock);
    fprintf(log, "tlb-check: violation class=%s kind=%s cpu=%d mode=%s "
            "access=%s address=0x%" VADDR_PRIx,
            r->class, r->kind, cpu->cpu_index, r->user ? "user" : "kernel",
            access[r->type], r->addr);
    if (r->cached || !r->table) {
        fprintf(log, " used_frame=0x%" HWADDR_PRIx, r->cached >> 12);
    }
    if (r->walk->present) {
        fprintf(log, " mapped_frame=0x%" HWADDR_PRIx, r->walk->pa >> 12);
    } else {
        fprintf(log, " mapped_frame=none");
    }
    if (r->table) {
        fprintf(log, " table_frame=0x%" HWADDR_PRIx, r->table >> 12);
    }
    fprintf(log, " pte=0x%" PRIx64 " level=%d root=0x%" HWADDR_PRIx
            " tag=0x%x pc=0x%" PRIx64 " function=%s", r->walk->pte,
            r->walk->level, ops->root(cpu), ops->tag(cpu), pc, function);
    print_age(log, "us_since_event", r->event ? r->event->ticks : 0, &now);
    print_age(log, "us_since_fill", r->filled, &now);
    print_age(log, "us_since_right", r->right, &now);
    print_age(log, "us_since_stale", r->stale, &now);
    fputc('\n', log);
}

static void print_counters(FILE *log)
{
    for (int i = 0; i < TLB_CHECK_COUNTERS; i++) {
        fprintf(log, " %s=%" PRIu64, counter_names[i],
                tlb_check_counter_sum(i));
    }
    fputc('\n', log);
}

void tlb_check_log_mark(CPUState *cpu, uint64_t value)
{
    QEMU_LOCK_GUARD(&tlb_check->log_lock);
    fprintf(tlb_check->log, "tlb-check: mark value=0x%" PRIx64 " cpu=%d",
            value, cpu->cpu_index);
    print_counters(tlb_check->log);
}

void tlb_check_log_summary(void)
{
    QEMU_LOCK_GUARD(&tlb_check->log_lock);
    fprintf(tlb_check->log, "tlb-check: summary");
    print_counters(tlb_check->log);
    fflush(tlb_check->log);
}
