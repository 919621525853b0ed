// SPDX-License-Identifier: GPL-2.0
/* The process that takes what was freed, see stranger.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env.h"
#include "ktap.h"
#include "map.h"
#include "stranger.h"

#define STRANGER_LIMIT_S	100

struct order {
	long (*call)(long argument);
	long argument;
};

/* With one call for all pages: each fault takes long on an emulated CPU. */
static void write_all(char *p, size_t length)
{
	/* Where there is no memory left, the write says so, or dies of it. */
	madvise(p, length, MADV_POPULATE_WRITE);
	memset(p, SECRET, length);
}

static long fill_anon(long mib)
{
	char *p = mmap(NULL, (size_t)mib * MIB, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return -1;
	/* Small pages: a frame that leaks is a single one. */
	madvise(p, (size_t)mib * MIB, MADV_NOHUGEPAGE);
	write_all(p, (size_t)mib * MIB);
	return 0;
}

/* Of the stranger: the frames that it is asked for; 0 at the end, and for those it has. */
static uint64_t *wanted;

/* How many of the wanted frames these pages have. */
static long strike_out(const char *p, size_t pages)
{
	static uint64_t frames[MIB / PAGE];
	size_t i, k;
	long found = 0;

	frames_of(p, pages, frames);
	for (i = 0; i < pages; i++)
		for (k = 0; k < STRANGER_FRAMES; k++)
			if (wanted[k] && wanted[k] == frames[i]) {
				wanted[k] = 0;
				found++;
			}
	return found;
}

/* One that somebody else has got meanwhile does not come any more. */
#define TAKE_IN_VAIN	4

static long take_frames(long mib)
{
	long left = 0, had, vain = 0;
	size_t k;

	for (k = 0; k < STRANGER_FRAMES; k++)
		left += !!wanted[k];
	for (had = 0; mib > 0 && left && vain < TAKE_IN_VAIN; mib--) {
		char *p = mmap(NULL, MIB, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		long found;

		if (p == MAP_FAILED)
			return -1;
		madvise(p, MIB, MADV_NOHUGEPAGE);
		write_all(p, MIB);
		found = strike_out(p, MIB / PAGE);
		had += found;
		left -= found;
		vain = found || !had ? 0 : vain + 1;
	}
	return had;
}

static long fill_file(long mib)
{
	static char block[PAGE];
	long i, fd = memfd_create("stranger", MFD_CLOEXEC);

	memset(block, SECRET, sizeof(block));
	for (i = 0; fd >= 0 && i < mib * (long)(MIB / PAGE); i++)
		if (write((int)fd, block, sizeof(block)) != sizeof(block))
			return -1;
	return fd < 0 ? -1 : 0;
}

static long fill_pipe(long mib)
{
	static char block[PAGE];
	long i, k;

	memset(block, SECRET, sizeof(block));
	for (i = 0; i < mib; i++) {
		int ends[2];

		if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) ||
		    fcntl(ends[1], F_SETPIPE_SZ, MIB) < 0)
			return -1;
		for (k = 0; k < (long)(MIB / PAGE); k++)
			if (write(ends[1], block, sizeof(block)) < 0)
				break;
	}
	return 0;
}

/* Each read of a page of its own 2 MiB costs a page table with one entry. */
static long fill_table(long mib)
{
	size_t tables = (size_t)mib * (MIB / PAGE), i;
	volatile char *p = mmap(NULL, tables * 2 * MIB, PROT_READ,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				-1, 0);

	if (p == MAP_FAILED)
		return -1;
	madvise((void *)p, tables * 2 * MIB, MADV_NOHUGEPAGE);
	for (i = 0; i < tables; i++)
		(void)p[i * 2 * MIB];
	return 0;
}

/* Messages of nearly a page each, in queues that die with the namespace. */
static long fill_slab(long mib)
{
	struct { long type; char text[4000]; } message = { .type = 1 };
	long i, k;

	memset(message.text, SECRET, sizeof(message.text));
	if (unshare(CLONE_NEWIPC))
		return -1;
	for (i = 0; i < mib * 64; i++) {
		int queue = msgget(IPC_PRIVATE, 0600);

		if (queue < 0)
			return -1;
		for (k = 0; k < 4; k++)
			if (msgsnd(queue, &message, sizeof(message.text),
				   IPC_NOWAIT))
				break;
	}
	return 0;
}

static long fill_huge(long mib)
{
	size_t length = (size_t)mib * MIB;
	char *p = mmap(NULL, length, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || madvise(p, length, MADV_HUGEPAGE))
		return -1;
	memset(p, SECRET, length);
	return 0;
}

static void serve(int link)
{
	struct order order;

	while (read(link, &order, sizeof(order)) == sizeof(order)) {
		long result = order.call(order.argument);

		if (write(link, &result, sizeof(result)) != sizeof(result))
			break;
	}
	_exit(0);
}

void stranger_start(struct stranger *s)
{
	int ends[2];

	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
	s->wanted = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ENSURE(s->wanted != MAP_FAILED, "mmap: %m");
	s->pid = (pid_t)MUST(fork());
	if (!s->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* Who takes all memory is the one to be killed for it. */
		write_text("/proc/self/oom_score_adj", "1000");
		close(ends[0]);
		wanted = s->wanted;
		serve(ends[1]);
	}
	close(ends[1]);
	s->link = ends[0];
}

/* False if the stranger died: it may be killed for memory also between orders. */
static bool order(struct stranger *s, long (*call)(long argument), long argument)
{
	struct order order = { .call = call, .argument = argument };

	return send(s->link, &order, sizeof(order), MSG_NOSIGNAL) ==
	       sizeof(order);
}

void stranger_ask(struct stranger *s, long (*call)(long argument),
		  long argument)
{
	ENSURE(order(s, call, argument), "the stranger died: %m");
}

/* False if the stranger died. */
static bool wait_for_answer(struct stranger *s, long *result)
{
	struct pollfd wait = { .fd = s->link, .events = POLLIN };

	ENSURE(poll(&wait, 1, STRANGER_LIMIT_S * 1000) == 1,
	       "the stranger does not answer");
	return read(s->link, result, sizeof(*result)) == sizeof(*result);
}

long stranger_answer(struct stranger *s)
{
	long result;

	ENSURE(wait_for_answer(s, &result), "the stranger died");
	return result;
}

long stranger_call(struct stranger *s, long (*call)(long argument),
		   long argument)
{
	stranger_ask(s, call, argument);
	return stranger_answer(s);
}

bool stranger_fill_or_die(struct stranger *s, enum fill kind, size_t mib)
{
	static long (*const calls[])(long) = {
		[FILL_ANON] = fill_anon, [FILL_FILE] = fill_file,
		[FILL_PIPE] = fill_pipe, [FILL_TABLE] = fill_table,
		[FILL_SLAB] = fill_slab, [FILL_HUGE] = fill_huge,
	};
	long result;

	if (!order(s, calls[kind], (long)mib) || !wait_for_answer(s, &result))
		return false;
	ENSURE(!result, "the stranger cannot take memory");
	return true;
}

void stranger_fill(struct stranger *s, enum fill kind, size_t mib)
{
	ENSURE(stranger_fill_or_die(s, kind, mib), "the stranger died");
}

size_t stranger_take(struct stranger *s, const uint64_t *frames, size_t count,
		     size_t mib)
{
	long had;

	ENSURE(count <= STRANGER_FRAMES, "too many frames to ask for");
	memset(s->wanted, 0, STRANGER_FRAMES * sizeof(*frames));
	memcpy(s->wanted, frames, count * sizeof(*frames));
	had = stranger_call(s, take_frames, (long)mib);
	ENSURE(had >= 0, "the stranger cannot take memory");
	return (size_t)had;
}

void stranger_stop(struct stranger *s)
{
	close(s->link);
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
}
