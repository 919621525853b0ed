// SPDX-License-Identifier: GPL-2.0-only
/*
 * snapshot-bench.c - snapshots of a table while threads write to it
 *
 * What: a table in memory, to which a thread on each CPU but one writes all the time. The other one
 *       takes a snapshot now and then, has it looked at whole, and drops it. Ways:
 *         none        no snapshots: what the writers do alone
 *         morsel      FICLONE of a morsel; another process maps the copy and looks
 *         fork        fork(), with the table in anonymous memory; the child looks
 *       Each snapshot has to be the table at one moment: of each writer all writes up to one,
 *       and none that came later. Anything else ends the program.
 *       Counted are writes, how long a snapshot takes, the longest time of WRITES writes, page
 *       faults, and shootdowns that CPUs received.
 * Who:  `ceasefire bench morsel-snapshots`, see ceasefire-bench(1) and
 *       cli/ceasefire/bench/measure/snapshots.py.
 *
 * A writer has slots of its own, a power of two. Its write number N goes to slot N * STEP, which
 * is odd, so that each slot comes once in as many writes, in no order that caches know; what is
 * written is N. So the newest write of a snapshot says what each of its slots has to have.
 *
 * All ways are measured in each round, in an order that alternates. Ends with 77 where the kernel
 * has no morsels.
 */
#include "../../kernel/src/include/uapi/linux/morsel.h"
#include "../common/counters.h"
#include "../common/environment.h"
#include "../common/json.h"
#include "../common/options.h"
#include "../common/util.h"

#include <errno.h>
#include <linux/fs.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB		(1UL << 20)
#define GIB		(1UL << 30)
#define MAX_CPUS	64
/* A cache line each. */
#define SLOT		64UL
#define STEP		0x9e3779b97f4a7c15UL
/* Between two looks at the clock. */
#define WRITES		256
#define RECEIVED	"nr_tlb_remote_flush_received"

enum way { NONE, MORSEL, FORK, WAYS };

static const char *const ways[] = { "none", "morsel", "fork" };

struct options {
	unsigned long table_mib;
	unsigned int rounds, every_ms;
	double seconds;
};

struct writer {
	char *at;
	unsigned long slots;
	int cpu;
	uint64_t writes, longest;
	const atomic_bool *stop;
	pthread_t thread;
};

struct table {
	enum way way;
	int fd;
	char *at;
	unsigned long size, mapped;
	unsigned int writers;
	/* Of each. */
	unsigned long slots;
};

static volatile uint64_t *slot_of(char *at, unsigned long slots, uint64_t number)
{
	return (uint64_t *)(at + (number * STEP & (slots - 1)) * SLOT);
}

static void *writer_main(void *argument)
{
	struct writer *w = argument;
	uint64_t before, now;

	run_on_cpu(w->cpu);
	before = now_ns();
	while (!atomic_load(w->stop)) {
		for (unsigned int i = 0; i < WRITES; i++) {
			w->writes++;
			*slot_of(w->at, w->slots, w->writes) = w->writes;
		}
		now = now_ns();
		if (now - before > w->longest)
			w->longest = now - before;
		before = now;
	}
	return NULL;
}

/* Is what a writer has in a snapshot all that it had written up to one write? */
static bool is_moment(const char *at, unsigned long slots)
{
	uint64_t newest = 0, inverse = STEP;

	for (unsigned long i = 0; i < slots; i++) {
		uint64_t word = *(const uint64_t *)(at + i * SLOT);

		if (word > newest)
			newest = word;
	}
	/* Of an odd number modulo 2^64: each step doubles the bits that are right. */
	for (unsigned int i = 0; i < 6; i++)
		inverse *= 2 - STEP * inverse;
	for (unsigned long i = 0; i < slots; i++) {
		/* The last number up to the newest that goes to this slot. */
		uint64_t back = (newest - i * inverse) & (slots - 1);
		uint64_t wanted = back < newest ? newest - back : 0;

		if (*(const uint64_t *)(at + i * SLOT) != wanted)
			return false;
	}
	return true;
}

static bool is_snapshot(const struct table *t, const char *at)
{
	for (unsigned int i = 0; i < t->writers; i++)
		if (!is_moment(at + i * t->slots * SLOT, t->slots))
			return false;
	return true;
}

static void wrong(const struct table *t)
{
	die(EXIT_FAILED, "%s: a snapshot has a later write without an earlier one",
	    ways[t->way]);
}

static int make_morsel(unsigned long size)
{
	/* By which tables of pages are shared, and not page by page. */
	struct morsel_geometry geometry = { .unit = GIB, .base = 4096 };
	int fd = memfd_create("bench", MFD_MORSEL | MFD_CLOEXEC);

	if (fd >= 0 && size && (ioctl(fd, MORSEL_IOC_GEOMETRY, &geometry) ||
				ftruncate(fd, (off_t)size)))
		die_errno("a morsel of %lu", size);
	return fd;
}

/*
 * Who looks at copies: a process that has nothing else, started before there is a table. Each
 * order is a table, whose @fd is the copy; the answer is whether it is a snapshot.
 */
static int looker = -1;

union rights {
	char room[CMSG_SPACE(sizeof(int))];
	struct cmsghdr header;
};

static int receive(struct table *t)
{
	union rights rights;
	struct iovec what = { t, sizeof(*t) };
	struct msghdr message = {
		.msg_iov = &what, .msg_iovlen = 1,
		.msg_control = &rights, .msg_controllen = sizeof(rights),
	};
	int fd;

	/* The other side has ended, and with it the work. */
	if (recvmsg(looker, &message, MSG_CMSG_CLOEXEC) != sizeof(*t) ||
	    message.msg_controllen < sizeof(struct cmsghdr))
		_exit(0);
	memcpy(&fd, CMSG_DATA(&rights.header), sizeof(fd));
	return fd;
}

static void look_at_copies(void)
{
	struct table t;

	for (;;) {
		int fd = receive(&t);
		char *at = mmap(NULL, t.mapped, PROT_READ, MAP_SHARED, fd, 0);
		bool right = at != MAP_FAILED && is_snapshot(&t, at);

		if (at != MAP_FAILED)
			munmap(at, t.mapped);
		close(fd);
		if (write(looker, &right, sizeof(right)) != sizeof(right))
			_exit(1);
	}
}

static void start_looker(int cpu)
{
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		die_errno("socketpair");
	pid = fork();
	if (pid < 0)
		die_errno("fork");
	looker = ends[!pid];
	close(ends[!!pid]);
	if (!pid) {
		run_on_cpu(cpu);
		look_at_copies();
	}
}

static bool is_copy_right(const struct table *t, int copy)
{
	union rights rights = {
		.header = { .cmsg_len = CMSG_LEN(sizeof(int)),
			    .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS },
	};
	struct iovec what = { (void *)t, sizeof(*t) };
	struct msghdr message = {
		.msg_iov = &what, .msg_iovlen = 1,
		.msg_control = &rights, .msg_controllen = sizeof(rights),
	};
	bool right;

	memcpy(CMSG_DATA(&rights.header), &copy, sizeof(copy));
	if (sendmsg(looker, &message, 0) != sizeof(*t) ||
	    read(looker, &right, sizeof(right)) != sizeof(right))
		die(EXIT_FAILED, "the process that looks at copies has ended");
	return right;
}

/* Return how long it took to make one. */
static uint64_t snapshot_morsel(const struct table *t)
{
	int copy = make_morsel(0);
	uint64_t start = now_ns(), took;

	if (copy < 0 || ioctl(copy, FICLONE, t->fd))
		die_errno("FICLONE");
	took = now_ns() - start;
	if (!is_copy_right(t, copy))
		wrong(t);
	close(copy);
	return took;
}

static uint64_t snapshot_fork(const struct table *t)
{
	uint64_t start = now_ns(), took;
	pid_t pid = fork();
	int status;

	if (pid < 0)
		die_errno("fork");
	if (!pid)
		_exit(is_snapshot(t, t->at) ? 0 : 1);
	took = now_ns() - start;
	if (waitpid(pid, &status, 0) != pid)
		die_errno("waitpid");
	if (status)
		wrong(t);
	return took;
}

static void table_make(struct table *t, const struct options *o, enum way way,
		       unsigned int writers)
{
	*t = (struct table){ .way = way, .fd = -1, .writers = writers };
	t->size = o->table_mib * MIB;
	t->mapped = t->size;
	/* A power of two for each of them. */
	for (t->slots = 1; t->slots * 2 * writers * SLOT <= t->size; t->slots *= 2)
		;
	if (way == MORSEL) {
		t->mapped = (t->size + GIB - 1) / GIB * GIB;
		t->fd = make_morsel(t->size);
		if (t->fd < 0)
			die_errno("memfd_create");
	}
	t->at = mmap(NULL, t->mapped, PROT_READ | PROT_WRITE, t->fd < 0 ?
		     MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, t->fd, 0);
	if (t->at == MAP_FAILED)
		die_errno("a table of %lu", t->size);
	/* Pages, as a morsel has; and all of them, so that none has to be made. */
	if (way != MORSEL)
		madvise(t->at, t->size, MADV_NOHUGEPAGE);
	memset(t->at, 0, t->size);
}

static void table_end(const struct table *t)
{
	munmap(t->at, t->mapped);
	if (t->fd >= 0)
		close(t->fd);
}

static long faults_now(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage))
		die_errno("getrusage");
	return usage.ru_minflt;
}

static void measure(const struct options *o, enum way way, const int *cpu_of,
		    unsigned int cpus, unsigned int round)
{
	static struct counters before, after;
	static struct writer writers[MAX_CPUS];
	uint64_t start, took = 0, writes = 0, longest = 0, snapshots = 0;
	atomic_bool stop = false;
	struct table table;
	struct json json;
	long faults;

	table_make(&table, o, way, cpus - 1);
	run_on_cpu(cpu_of[0]);
	counters_read(&before);
	faults = faults_now();
	start = now_ns();
	for (unsigned int i = 0; i < table.writers; i++) {
		writers[i] = (struct writer){
			.at = table.at + i * table.slots * SLOT, .slots = table.slots,
			.cpu = cpu_of[i + 1], .stop = &stop,
		};
		if (pthread_create(&writers[i].thread, NULL, writer_main, &writers[i]))
			die(EXIT_FAILED, "no thread");
	}
	/* At least one, however long it takes. */
	do {
		sleep_ns(o->every_ms * 1000000UL);
		if (way == NONE)
			continue;
		took += way == MORSEL ? snapshot_morsel(&table) : snapshot_fork(&table);
		snapshots++;
	} while ((double)(now_ns() - start) < o->seconds * 1e9);
	start = now_ns() - start;
	atomic_store(&stop, true);
	for (unsigned int i = 0; i < table.writers; i++) {
		pthread_join(writers[i].thread, NULL);
		writes += writers[i].writes;
		if (writers[i].longest > longest)
			longest = writers[i].longest;
	}
	counters_read(&after);
	counters_subtract(&after, &before);
	if (!is_snapshot(&table, table.at))
		wrong(&table);

	json_begin(&json, stdout, "snapshots");
	json_string(&json, "way", ways[way]);
	json_unsigned(&json, "cpus", cpus);
	json_unsigned(&json, "round", round);
	json_unsigned(&json, "ns", start);
	json_unsigned(&json, "writes", writes);
	json_unsigned(&json, "snapshots", snapshots);
	json_unsigned(&json, "snapshot_ns", snapshots ? took / snapshots : 0);
	json_unsigned(&json, "longest_ns", longest);
	json_unsigned(&json, "faults", (unsigned long)(faults_now() - faults));
	json_signed(&json, "received", counters_get(&after, RECEIVED));
	counters_json(&json, &after);
	json_end(&json);
	table_end(&table);
}

static void options_parse(struct options *o, int argc, char **argv)
{
	static const struct program program = {
		"snapshot-bench [options]",
		"Takes snapshots of a table while threads write to it, and looks at all of them.",
		"It needs a kernel with morsels, and two CPUs."
	};
	const struct program_option list[] = {
		NUMBER("table", "MIB", &o->table_mib, 1, 1024, "size of the table (256)"),
		NUMBER("every", "MS", &o->every_ms, 1, 100000, "time between snapshots (100)"),
		NUMBER("rounds", "N", &o->rounds, 1, 10000, "of all ways (5)"),
		DURATION("seconds", &o->seconds, "length of a sample (2)"),
		{ 0 }
	};

	*o = (struct options){ .table_mib = 256, .every_ms = 100, .rounds = 5, .seconds = 2 };
	parse_options(&program, list, argc, argv);
}

int main(int argc, char **argv)
{
	static int cpu_of[MAX_CPUS];
	struct options options;
	unsigned int cpus;
	cpu_set_t set;
	int fd;

	set_program_name("snapshot-bench");
	options_parse(&options, argc, argv);
	if (sched_getaffinity(0, sizeof(set), &set))
		die_errno("sched_getaffinity");
	cpus = (unsigned int)CPU_COUNT(&set);
	if (cpus < 2 || cpus > MAX_CPUS)
		die(EXIT_USAGE, "%u CPUs: it needs 2 to %d", cpus, MAX_CPUS);
	fd = make_morsel(0);
	if (fd < 0 && errno == EINVAL)
		die(EXIT_NO_KERNEL_SUPPORT, "this kernel has no morsels");
	if (fd < 0)
		die_errno("memfd_create");
	close(fd);
	for (unsigned int cpu = 0; cpu < cpus; cpu++)
		cpu_of[cpu] = nth_cpu(cpu);
	start_looker(cpu_of[0]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	print_environment_json(stdout);
	for (unsigned int round = 1; round <= options.rounds; round++)
		for (unsigned int i = 0; i < WAYS; i++)
			measure(&options, round % 2 ? i : WAYS - 1 - i, cpu_of, cpus,
				round);
	return EXIT_OK;
}
