/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the attack tests see of the kernel: counters, settings, debug switches,
 * and facts about the own process. All of it without the heap, so that it can
 * be used while addresses and page tables are under attack.
 */
#ifndef CEASEFIRE_SELFTEST_ENV_H
#define CEASEFIRE_SELFTEST_ENV_H

#include <stdbool.h>
#include <stddef.h>

#define PAGE	4096UL
#define MIB	(1UL << 20)
#define GIB	(1UL << 30)

#ifndef MAP_FPR
#define MAP_FPR	0x800000
#endif

/*
 * The writable files of /sys/kernel/mm/ceasefire/fpr and its debugfs, and what
 * leave_free() takes.
 */
struct fpr_settings {
	long enabled, pool_limit, parked_limit, stale_limit, debt_age_ms, evict;
	long skip_local, flush_delay_us, tag_delay_us, skip_delay_us;
	long start_delay_us;
	long rewrite_delay_us;
	long abis_classes;
	long abis_flush_delay_us;
	long first_generation, arena_size, id_max, tickless_cpu;
	long fill_delay_us, send_delay_us, slots, clean_delay_us, mark_delay_us;
	long steal_delay_us;
	long copy_delay_us;
	long morsel_limit, lazy_limit;
	long settle_ms, late_ms, held_limit;
	bool always;
	char sharers[8];
	long placement;
	char abis[8];
	long hugepages;
};

/*
 * The mechanism under attack, as CEASEFIRE_TEST_MECHANISM says: fpr, or latr for
 * processes that are lazy. Then the mappings of map.h pass no flag, and what is
 * counted of munmap() under fpr_skip and fpr_flush_* is counted under latr_*.
 */
bool lazy(void);

bool fpr_supported(void);
void fpr_save_settings(struct fpr_settings *s);
void fpr_restore_settings(const struct fpr_settings *s);

/* A value of /sys/kernel/mm/ceasefire/fpr; -1: there is no such file. */
long fpr_sysfs(const char *name);
void fpr_set(const char *name, long value);
/* Seconds for what a process leaves behind: half a second is long. */
#define LEFT_LIMIT_S	8
/* The same of /sys/kernel/mm/ceasefire/latr. */
long latr_sysfs(const char *name);
void latr_set(const char *name, long value);
bool fpr_wait_sysfs_at_most(const char *name, long value, unsigned int seconds);

/* A counter of /proc/vmstat; a name that does not exist fails the case. */
long vmstat(const char *name);
/* The same for @count of them, in one read of the file, which is dear. */
void vmstat_read(const char *const names[], long values[], size_t count);
/* The sum of all counters that begin with @prefix. */
long vmstat_sum(const char *prefix);
bool wait_vmstat_above(const char *name, long value, unsigned int seconds);

/* Skip also when only this CPU runs the process; skips the case without it. */
void fpr_skip_local(void);
/* Size of the arena of processes that use FPR later; skips without it. */
void fpr_arena_size(unsigned long bytes);
/* Time between request and start of a flush of this process; likewise. */
void fpr_flush_delay(unsigned int ms);
/* Time that a munmap takes to note that a frame is shared; likewise. */
void fpr_tag_delay(unsigned int ms);
/* Time between clearing entries and tagging frames in a munmap; likewise. */
void fpr_skip_delay(unsigned int ms);
/* Time between reading an entry and writing it, where that is not one step; likewise. */
void fpr_rewrite_delay(unsigned int ms);
/* CPUs with entries of their own have one of so many classes; before there are any. */
void abis_classes(unsigned int number);
/* Each gather, and each fork(), of a process with ABIS waits before it flushes. */
void abis_flush_delay(unsigned int ms);
/* Time in a tick in which a debt is due no more and nobody awaits its end. */
void fpr_start_delay(unsigned int ms);
/* The newest identifier that a context can have; likewise. */
void fpr_id_max(unsigned long id);
/* A CPU whose tick pays no debts; likewise. */
void latr_tickless_cpu(int cpu);
/* Time between the two looks of a CPU that comes to a region; likewise. */
void sharers_fill_delay(unsigned int ms);
/* Time between a request to flush and the flush; likewise. */
void sharers_send_delay(unsigned int ms);
/* CPUs of a process that can have copies, of those that begin later; likewise. */
void sharers_slots(unsigned int count);
/* The next fork() of this process fails when its child has half of an address space. */
void next_fork_fails(void);
/* Who may have sharers: never, ask, always. Skips without them. */
void sharers_enable(const char *whom);
/* Whether small mappings of their threads lie apart; likewise. */
void sharers_placement(bool on);
/* Who may have ABIS: never, ask, always; and by which sources. Skips without it. */
void abis_enable(const char *whom);
void abis_sources(const char *sources);
/* The least generation of processes that use FPR later; likewise. */
void fpr_first_generation(unsigned long generation);

/* A number in any file; -1 when there is none. */
long read_number(const char *path);
/* Read all of a file, and forget it; fails the case. */
void read_whole(const char *path);
/* False with errno set when the file cannot be written. */
bool write_text(const char *path, const char *text);

/* A "Name:  123 kB" line of @path, e.g. VmPTE of /proc/self/status, in kB. */
long read_kb(const char *path, const char *name);
/* Is a word in a file, between spaces? */
bool has_word(const char *path, const char *word);
/* Whether the VmFlags of the mapping that begins at @addr have @code. */
bool smaps_has_flag(const void *addr, const char *code);
/* The mapping that /proc/self/maps calls @name. */
bool find_mapping(const char *name, unsigned long *start, unsigned long *end);

/*
 * Take memory that nobody can reclaim until about @mib MiB are free, or give back
 * of it: huge pages, which need not be written to. The runner gives back the rest.
 */
void leave_free(long mib);

void pin_to_cpu(int cpu);
int online_cpus(void);
/* Skips the case when there are fewer. */
void need_cpus(int count);

double seconds(void);
/* When something ends that goes on for CEASEFIRE_TEST_SECONDS, or for @usual seconds. */
double seconds_until_end(double usual);
void sleep_ms(unsigned int ms);

#endif
