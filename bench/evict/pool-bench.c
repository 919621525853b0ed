// SPDX-License-Identifier: GPL-2.0-only
/*
 * pool-bench.c - a buffer pool that evicts all the time, by several ways
 *
 * What: an address for each page of a large table, of which some are in memory. A thread on each
 *       CPU, or with --processes a process that has mapped it itself, uses random pages.
 *       One that is not there is made, and filled as if it was read; where the pool is full,
 *       64 others are evicted first. Ways to evict:
 *         lazy        MORSEL_IOC_DEPOPULATE of a vector, with MORSEL_LAZY; pages are made
 *                     by MORSEL_IOC_POPULATE
 *         vector      the same without MORSEL_LAZY; pages are made by faults
 *         remove      MADV_REMOVE of other shared memory, a call a page; faults
 *         dontneed    MADV_DONTNEED of anonymous memory, a call a page; faults; one process only
 *       What users take to start and to end is in no sample: they wait for each other.
 *       Each use looks whether the page is the right one: a wrong one ends the program.
 *       Counted are uses, pages that were evicted, and shootdowns that CPUs received.
 * Who:  `ceasefire bench morsel-pool`, see ceasefire-bench(1) and
 *       cli/ceasefire/bench/measure/pool.py.
 *
 * Who uses a page has it alone: its state is BUSY meanwhile. All ways are measured in each round, in
 * an order that alternates. Ends with 77 where the kernel has no morsels that are lazy.
 */
#include "../../kernel/src/include/uapi/linux/morsel.h"
#include "../common/counters.h"
#include "../common/environment.h"
#include "../common/json.h"
#include "../common/options.h"
#include "../common/util.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE		4096UL
#define MIB		(1UL << 20)
#define MS		1000000ULL
#define MAX_CPUS	64
#define BATCH		64
#define RECEIVED	"nr_tlb_remote_flush_received"

enum way { LAZY, VECTOR, REMOVE, DONTNEED, WAYS };

static const char *const ways[] = { "lazy", "vector", "remove", "dontneed" };

enum state { OUT, IN, BUSY };

struct options {
	unsigned long table_mib, pool_mib;
	unsigned int rounds;
	double seconds;
	bool processes;
};

/* One pool. All of it is shared but @state's address, which is the same for all. */
struct pool {
	enum way way;
	int fd;
	unsigned int pages, room;
	atomic_uchar *state;
	atomic_uint resident;
	uint64_t deadline;
	/* Users that are there, and that have had their time; what they wait for. */
	atomic_uint ready, done, begun, ended;
};

struct user {
	struct pool *pool;
	/* Where it has the table. */
	char *at;
	int cpu;
	uint64_t random;
	uint64_t uses, evicted;
	pthread_t thread;
};

static unsigned int any_page(struct user *user)
{
	user->random ^= user->random << 13;
	user->random ^= user->random >> 7;
	user->random ^= user->random << 17;
	return (unsigned int)(user->random % user->pool->pages);
}

/* Have a page alone, if it is in this state. */
static bool seize(struct pool *pool, unsigned int page, unsigned char state)
{
	return atomic_compare_exchange_strong(&pool->state[page], &state, BUSY);
}

static void take(const struct user *user, const unsigned int *victims)
{
	const struct pool *pool = user->pool;
	struct morsel_range ranges[BATCH];
	struct morsel_vec vec = {
		.ranges = (uintptr_t)ranges, .nr = BATCH,
		.flags = pool->way == LAZY ? MORSEL_LAZY : 0,
	};
	int err = 0;

	for (unsigned int i = 0; i < BATCH && !err; i++) {
		ranges[i] = (struct morsel_range){ victims[i] * PAGE, PAGE };
		if (pool->way >= REMOVE)
			err = madvise(user->at + victims[i] * PAGE, PAGE,
				      pool->way == REMOVE ? MADV_REMOVE : MADV_DONTNEED);
	}
	if (pool->way < REMOVE)
		err = ioctl(pool->fd, MORSEL_IOC_DEPOPULATE, &vec);
	if (err)
		die_errno("%s", ways[pool->way]);
}

/* Room for one more page. */
static void make_room(struct user *user)
{
	struct pool *pool = user->pool;
	unsigned int victims[BATCH], found = 0;

	if (atomic_fetch_add(&pool->resident, 1) < pool->room)
		return;
	while (found < BATCH) {
		unsigned int page = any_page(user);

		if (seize(pool, page, IN))
			victims[found++] = page;
	}
	take(user, victims);
	for (unsigned int i = 0; i < BATCH; i++)
		atomic_store(&pool->state[victims[i]], OUT);
	atomic_fetch_sub(&pool->resident, BATCH);
	user->evicted += BATCH;
}

/* As if it was read from a disk. */
static void load(const struct user *user, unsigned int page)
{
	struct pool *pool = user->pool;
	struct morsel_range range = { page * PAGE, PAGE };
	struct morsel_vec vec = { .ranges = (uintptr_t)&range, .nr = 1 };
	uint64_t *words = (uint64_t *)(user->at + page * PAGE);

	/* Not by a fault: a CPU may still have what was there before. */
	if (pool->way == LAZY && ioctl(pool->fd, MORSEL_IOC_POPULATE, &vec))
		die_errno("populate");
	for (unsigned int i = 0; i < PAGE / sizeof(*words); i++)
		words[i] = page + 1;
}

static void use(struct user *user, unsigned int page)
{
	struct pool *pool = user->pool;
	const volatile uint64_t *words = (uint64_t *)(user->at + page * PAGE);

	if (words[0] != page + 1 || words[PAGE / sizeof(*words) - 1] != page + 1)
		die(EXIT_FAILED, "%s: page %u has the contents of another one",
		    ways[pool->way], page);
	user->uses++;
}

/* Without memory that comes and goes. */
static void wait_for(const atomic_uint *what)
{
	while (!atomic_load(what))
		sleep_ns(MS);
}

static void *user_main(void *argument)
{
	struct user *user = argument;
	struct pool *pool = user->pool;

	run_on_cpu(user->cpu);
	atomic_fetch_add(&pool->ready, 1);
	wait_for(&pool->begun);
	while (now_ns() < pool->deadline) {
		unsigned int page = any_page(user);

		if (seize(pool, page, OUT)) {
			make_room(user);
			load(user, page);
		} else if (!seize(pool, page, IN)) {
			/* Somebody else has it, and may be emulated on the same CPU. */
			sched_yield();
			continue;
		}
		use(user, page);
		atomic_store(&pool->state[page], IN);
	}
	atomic_fetch_add(&pool->done, 1);
	wait_for(&pool->ended);
	return NULL;
}

static int make_morsel(const struct options *o, bool lazy)
{
	struct morsel_geometry geometry = {
		.unit = 1UL << 30, .base = PAGE, .flags = lazy ? MORSEL_ALLOW_LAZY : 0,
	};
	int fd = memfd_create("bench", MFD_MORSEL | MFD_CLOEXEC);

	if (fd >= 0 && (ioctl(fd, MORSEL_IOC_GEOMETRY, &geometry) ||
			ftruncate(fd, (off_t)(o->table_mib * MIB)))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Of a mapping: whole units. */
static size_t length_of(const struct options *o)
{
	return ((o->table_mib + 1023) & ~1023UL) * MIB;
}

/* Memory that children have, too. */
static void *shared(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);

	if (at == MAP_FAILED)
		die_errno("no memory");
	return at;
}

static char *map_table(const struct pool *pool, const struct options *o)
{
	char *at = mmap(NULL, length_of(o), PROT_READ | PROT_WRITE,
			pool->fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE :
			MAP_SHARED, pool->fd, 0);

	if (at == MAP_FAILED)
		die_errno("no memory");
	/* Pages, as the others have. */
	if (pool->way >= REMOVE)
		madvise(at, length_of(o), MADV_NOHUGEPAGE);
	return at;
}

static void pool_make(struct pool *pool, const struct options *o, enum way way)
{
	*pool = (struct pool){ .way = way, .fd = -1 };
	pool->pages = (unsigned int)(o->table_mib * MIB / PAGE);
	pool->room = (unsigned int)(o->pool_mib * MIB / PAGE);
	if (way == REMOVE)
		pool->fd = memfd_create("bench", MFD_CLOEXEC);
	else if (way != DONTNEED)
		pool->fd = make_morsel(o, way == LAZY);
	if (way != DONTNEED && pool->fd < 0)
		die_errno("memfd");
	if (way == REMOVE && ftruncate(pool->fd, (off_t)length_of(o)))
		die_errno("ftruncate");
	pool->state = shared(pool->pages);
}

static void pool_end(struct pool *pool)
{
	if (pool->fd >= 0)
		close(pool->fd);
	munmap(pool->state, pool->pages);
}

/* A child that has inherited a mapping could not be waited for: it has its own. */
static pid_t start_process(struct user *user, const struct options *o)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		die_errno("fork");
	if (pid)
		return pid;
	/* Nobody would tell it to go on. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILED);
	user->at = map_table(user->pool, o);
	user_main(user);
	_exit(0);
}

static void end_process(pid_t pid, int options)
{
	int status = 0;
	pid_t found = waitpid(pid, &status, options);

	if (options ? found > 0 : found != pid || status)
		die(EXIT_FAILED, "a process of the pool has ended with status %#x", status);
}

/* None of them ends before it may. */
static void wait_for_users(const atomic_uint *what, unsigned int count)
{
	while (atomic_load(what) < count) {
		end_process(-1, WNOHANG);
		sleep_ns(MS);
	}
}

/* Let all users go until it is over; what the kernel has counted meanwhile, and how long it was. */
static uint64_t watch(struct pool *pool, unsigned int cpus, double seconds,
		      struct counters *counted)
{
	static struct counters before;
	uint64_t start;

	wait_for_users(&pool->ready, cpus);
	counters_read(&before);
	start = now_ns();
	pool->deadline = start + (uint64_t)(seconds * 1e9);
	atomic_store(&pool->begun, 1);
	wait_for_users(&pool->done, cpus);
	start = now_ns() - start;
	counters_read(counted);
	counters_subtract(counted, &before);
	atomic_store(&pool->ended, 1);
	return start;
}

/* @at: where threads have the table; NULL: there are processes. Returns how long it was, in ns. */
static uint64_t run(struct pool *pool, const struct options *o, char *at, const int *cpu_of,
		    unsigned int cpus, double seconds, struct user *sum,
		    struct counters *counted)
{
	struct user *users = shared(MAX_CPUS * sizeof(*users));
	pid_t pids[MAX_CPUS];
	uint64_t ns;

	*sum = (struct user){ 0 };
	pool->ready = pool->begun = pool->done = pool->ended = 0;
	for (unsigned int i = 0; i < cpus; i++) {
		users[i] = (struct user){ .pool = pool, .at = at, .cpu = cpu_of[i],
					  .random = 88172645463325252ULL + i };
		if (!at)
			pids[i] = start_process(&users[i], o);
		else if (pthread_create(&users[i].thread, NULL, user_main, &users[i]))
			die(EXIT_FAILED, "no thread");
	}
	ns = watch(pool, cpus, seconds, counted);
	for (unsigned int i = 0; i < cpus; i++) {
		if (!at)
			end_process(pids[i], 0);
		else
			pthread_join(users[i].thread, NULL);
		sum->uses += users[i].uses;
		sum->evicted += users[i].evicted;
	}
	munmap(users, MAX_CPUS * sizeof(*users));
	return ns;
}

static void measure(const struct options *o, enum way way, const int *cpu_of,
		    unsigned int cpus, unsigned int round)
{
	static struct counters counted;
	struct pool *pool = shared(sizeof(*pool));
	char *at;
	struct user sum;
	struct json json;
	uint64_t ns;

	pool_make(pool, o, way);
	at = o->processes ? NULL : map_table(pool, o);
	/* Until it is full, and a while longer. */
	do
		run(pool, o, at, cpu_of, cpus, o->seconds / 4, &sum, &counted);
	while (!sum.evicted);
	ns = run(pool, o, at, cpu_of, cpus, o->seconds, &sum, &counted);
	if (at)
		munmap(at, length_of(o));
	pool_end(pool);
	munmap(pool, sizeof(*pool));

	json_begin(&json, stdout, "pool");
	json_string(&json, "way", ways[way]);
	json_unsigned(&json, "cpus", cpus);
	json_unsigned(&json, "processes", o->processes ? cpus : 1);
	json_unsigned(&json, "round", round);
	json_unsigned(&json, "ns", ns);
	json_unsigned(&json, "uses", sum.uses);
	json_unsigned(&json, "evicted", sum.evicted);
	json_signed(&json, "received", counters_get(&counted, RECEIVED));
	counters_json(&json, &counted);
	json_end(&json);
}

static void options_parse(struct options *o, int argc, char **argv)
{
	static const struct program program = {
		"pool-bench [options]",
		"Uses random pages of a table through a pool that evicts all the time.",
		"It needs a kernel with morsels, and two CPUs."
	};
	const struct program_option list[] = {
		NUMBER("table", "MIB", &o->table_mib, 2, MIB, "size of the table (1024)"),
		NUMBER("pool", "MIB", &o->pool_mib, 1, MIB, "of it that is in memory (64)"),
		NUMBER("rounds", "N", &o->rounds, 1, 10000, "of all ways (5)"),
		DURATION("seconds", &o->seconds, "length of a sample (2)"),
		FLAG("processes", &o->processes, "processes in place of threads"),
		{ 0 }
	};

	*o = (struct options){ .table_mib = 1024, .pool_mib = 64, .rounds = 5, .seconds = 2 };
	parse_options(&program, list, argc, argv);
	if (o->pool_mib >= o->table_mib)
		die(EXIT_USAGE, "--pool %lu: all of the table is in memory, nothing is evicted",
		    o->pool_mib);
}

int main(int argc, char **argv)
{
	static int cpu_of[MAX_CPUS];
	struct options options;
	unsigned int cpus, count;
	cpu_set_t set;
	int fd;

	set_program_name("pool-bench");
	options_parse(&options, argc, argv);
	/* Anonymous memory is of one process. */
	count = options.processes ? DONTNEED : WAYS;
	if (sched_getaffinity(0, sizeof(set), &set))
		die_errno("sched_getaffinity");
	cpus = (unsigned int)CPU_COUNT(&set);
	if (cpus < 2 || cpus > MAX_CPUS)
		die(EXIT_USAGE, "%u CPUs: it needs 2 to %d", cpus, MAX_CPUS);
	fd = make_morsel(&options, true);
	if (fd < 0 && errno == EINVAL)
		die(EXIT_NO_KERNEL_SUPPORT, "this kernel has no morsels that are lazy");
	if (fd < 0)
		die_errno("memfd");
	close(fd);
	for (unsigned int cpu = 0; cpu < cpus; cpu++)
		cpu_of[cpu] = nth_cpu(cpu);
	setvbuf(stdout, NULL, _IOLBF, 0);
	print_environment_json(stdout);
	for (unsigned int round = 1; round <= options.rounds; round++)
		for (unsigned int i = 0; i < count; i++)
			measure(&options, round % 2 ? i : count - 1 - i, cpu_of, cpus,
				round);
	return EXIT_OK;
}
