// SPDX-License-Identifier: GPL-2.0-only
/*
 * worker.c - one thread: map, touch, unmap; or compute; or both in turn
 *
 * What: loops until it is told to stop and publishes its progress after each
 *       operation. Who reads the progress twice knows the rate in between. An owner
 *       (case 6) also notes how long munmap() took, nothing else of the operation.
 * Who:  sample.c.
 */
#include "peers.h"
#include "worker.h"

#include "../common/util.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096UL

/* Each unit is this many turns of four register instructions. */
#define UNIT_TURNS 1000UL

#define TURNS_PER_PAGE 16UL

static void turn_over(unsigned long turns)
{
	unsigned long a = turns;

	__asm__ volatile("1:	addq	%0, %1\n"
			 "	rolq	$7, %1\n"
			 "	decq	%0\n"
			 "	jnz	1b\n"
			 : "+r"(turns), "+r"(a)
			 :
			 : "cc");
}

/* With @buffer pages of the thread's own are read in between, one after the other. */
static void compute_unit(const char *buffer, unsigned int pages)
{
	static _Thread_local unsigned int page;

	if (!buffer) {
		turn_over(UNIT_TURNS);
		return;
	}
	for (unsigned long i = 0; i < UNIT_TURNS / TURNS_PER_PAGE; i++) {
		turn_over(TURNS_PER_PAGE);
		(void)*(const volatile char *)(buffer + page * PAGE);
		page = page + 1 < pages ? page + 1 : 0;
	}
}

/* What a thread that computes works on; NULL: registers only. */
static const char *make_buffer(const struct job *job)
{
	char *buffer;

	if (!job->options->buffer || (job->kind != KIND_COMPUTE && job->kind != KIND_MIXED))
		return NULL;
	buffer = mmap(NULL, job->options->buffer * PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (buffer == MAP_FAILED)
		die_errno("mmap");
	return buffer;
}

/* Threads do not share the open file: its counter is not what is measured. */
static int open_again(int fd, int flags)
{
	char path[40];
	int own;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	own = open(path, flags | O_CLOEXEC);
	if (own < 0)
		die_errno("cannot open %s", path);
	return own;
}

/*
 * Shared pages are written to by one thread only: a page that has another
 * version than it wrote last has lost a write, or got one of another place.
 */
static uint64_t choose_place(const struct job *job, uint64_t random)
{
	const struct options *options = job->options;
	uint64_t threads = options->threads * options->processes;

	if (options->access != ACCESS_SHARED_WRITE)
		return random % options->offsets;
	return random % (options->offsets / threads) * threads + job->index;
}

static bool write_shared(volatile uint64_t *word, uint32_t version)
{
	/* Written first here, too; what is behind it comes along. */
	uint64_t before = __atomic_exchange_n(&word[1], version + 1,
					      __ATOMIC_RELAXED);

	return before == version;
}

static void unmap(const struct job *job, char *p, size_t length)
{
	struct control *control = job->control;
	bool measured = job->kind == KIND_OWNER &&
			atomic_load_explicit(&control->measured, memory_order_relaxed);
	uint64_t start = measured ? now_ns() : 0;

	if (munmap(p, length))
		die_errno("munmap");
	if (measured)
		latency_add(&control->calls, now_ns() - start);
}

/* One operation: the whole reason of this program. */
static unsigned int map_touch_unmap(const struct job *job, int fd,
				    unsigned int file, uint64_t place)
{
	enum access access = job->options->access;
	size_t length = job->options->pages * PAGE;
	uint64_t first = place * job->options->pages;
	uint32_t *version = &job->data->versions[file * job->options->offsets +
						 place];
	int prot = access == ACCESS_READ ? PROT_READ : PROT_READ | PROT_WRITE;
	unsigned int wrong = 0;
	char *p;

	if (access == ACCESS_ANONYMOUS)
		fd = -1;
	p = mmap(NULL, length, prot, job->flags, fd, (off_t)(first * PAGE));
	if (p == MAP_FAILED)
		die_errno("mmap of %u pages", job->options->pages);
	for (unsigned int i = 0; i < job->options->pages; i++) {
		volatile uint64_t *word = (uint64_t *)(p + i * PAGE);
		bool right = true;

		/* Written first: what is read before would be mapped twice. */
		if (access == ACCESS_SHARED_WRITE)
			right = write_shared(word, *version);
		else if (access != ACCESS_READ)
			word[1] = first;
		wrong += !right || *word != (access == ACCESS_ANONYMOUS ?
					     0 : page_word(file, first + i));
	}
	if (access == ACCESS_SHARED_WRITE)
		(*version)++;
	if (job->kind == KIND_OWNER)
		peers_show(job, p, file, first);
	unmap(job, p, length);
	return job->data->checked ? wrong : 0;
}

void *worker_run(void *data)
{
	const struct job *job = data;
	const struct options *options = job->options;
	struct progress *progress = &job->control->progress[job->index];
	unsigned int file = job->index % job->data->count;
	uint64_t random = page_word(99, job->index) | 1;
	int fd = open_again(job->data->fds[file],
			    options->access == ACCESS_SHARED_WRITE ?
			    O_RDWR : O_RDONLY);
	const char *buffer = make_buffer(job);

	run_on_cpu(job->cpu);
	atomic_fetch_add(&job->control->ready, 1);
	if (job->kind == KIND_PEER)
		peers_read(job);
	while (!atomic_load_explicit(&job->control->stop,
				     memory_order_relaxed)) {
		unsigned int units = job->kind == KIND_MIXED ? options->units : 1;

		if (job->kind != KIND_COMPUTE) {
			unsigned int wrong;

			/* xorshift: cheap, and its own in each thread */
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			wrong = map_touch_unmap(job, fd, file,
						choose_place(job, random));
			bump(&progress->io, 1);
			if (wrong)
				bump(&progress->wrong, wrong);
		}
		if (job->kind == KIND_COMPUTE || job->kind == KIND_MIXED) {
			for (unsigned int i = 0; i < units; i++)
				compute_unit(buffer, options->buffer);
			bump(&progress->compute, units);
		}
	}
	if (job->kind == KIND_OWNER)
		peers_end();
	close(fd);
	return NULL;
}
