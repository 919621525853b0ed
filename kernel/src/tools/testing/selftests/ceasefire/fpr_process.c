// SPDX-License-Identifier: GPL-2.0
/*
 * What happens to a process that uses FPR: it forks, executes, dumps core,
 * is watched by userfaultfd or by a device that reads its page tables, and
 * others look into it.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checker.h"
#include "env.h"
#include "file.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "stranger.h"

#define PAGES		16
#define LENGTH		(PAGES * PAGE)
#define OWN		0x5a
#define NEW		0x42

static struct tfile file;

static void start(void)
{
	file_make(&file, ON_TMPFS, PAGES, OWN);
	peer_start(1);
	hold_debts();
}

static void wait_for(pid_t pid, const char *what)
{
	int status;

	MUST(waitpid(pid, &status, 0));
	ENSURE(!status, "%s: status %x", what, (unsigned int)status);
}

/* A fork flushes, so nothing is stale after it, and nothing gets parked. */
static void fork_settles(void)
{
	struct stranger child;
	size_t seen;
	long parks;
	char *p;

	start();
	p = leave_stale(&file, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
	stranger_start(&child);
	seen = peer_count(p, PAGES, WORD(OWN));
	ENSURE(!seen, "the peer reads %zu pages after a fork", seen);
	parks = vmstat("fpr_park");
	file_drop(&file);
	ENSURE(vmstat("fpr_park") == parks,
	       "%ld frames were parked that nobody can reach",
	       vmstat("fpr_park") - parks);
	stranger_stop(&child);
}

/* The child has the mappings, and a context of its own as soon as it maps. */
static void child_is_separate(void)
{
	char *p, *q;
	pid_t pid;

	start();
	p = fpr_map(&file, 0, PAGES, PROT_READ, MAP_SHARED);
	peer_touch(p, PAGES);
	q = leave_stale(&file, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
	pid = (pid_t)MUST(fork());
	if (!pid) {
		char *r;

		ENSURE(probe_read(p) == WORD(OWN), "the child's mapping");
		ENSURE(probe_read(q) == FAULTED, "nothing was mapped there");
		ENSURE(lazy() || smaps_has_flag(p, "fr"), "the child's flag");
		MUST(munmap(p, LENGTH));
		ENSURE(probe_read(p) == FAULTED, "still mapped");
		r = mmap(p, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE |
			 MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		ENSURE(r == p, "mmap in the child: %m");
		*r = NEW;
		r = fpr_map(&file, 0, PAGES, PROT_READ, MAP_SHARED);
		ENSURE(probe_read(r) == WORD(OWN), "the child's new mapping");
		ENSURE(fpr_sysfs("contexts") == 2, "%ld contexts, not 2",
		       fpr_sysfs("contexts"));
		MUST(munmap(r, LENGTH));
		_exit(0);
	}
	wait_for(pid, "the child");
	ENSURE(peer_count(p, PAGES, WORD(OWN)) == PAGES,
	       "the parent's mapping went with the child's");
	ENSURE(fpr_wait_sysfs_at_most("contexts", 1, 10),
	       "the child's context stays");
}

/* exec ends the context like exit does. */
static void exec_ends_context(void)
{
	pid_t pid;
	int ends[2];

	MUST(pipe2(ends, 0));
	pid = (pid_t)MUST(fork());
	if (!pid) {
		start();
		leave_stale(&file, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
		fpr_map(&file, 0, PAGES, PROT_READ, MAP_SHARED);
		dup2(ends[0], 0);
		close(ends[1]);
		/* Stays until its input ends. */
		execlp("cat", "cat", NULL);
		_exit(1);
	}
	close(ends[0]);
	sleep_ms(500);
	ENSURE(fpr_wait_sysfs_at_most("contexts", 0, LEFT_LIMIT_S),
	       "the context survives exec");
	close(ends[1]);
	wait_for(pid, "the program");
}

/* Looking up the page table at a stale address finds nothing. */
static void pinning_fails(void)
{
	struct iovec iov = { .iov_len = PAGE };
	struct iovec local = { .iov_len = PAGE };
	static char buffer[PAGE];
	int ends[2];
	ssize_t n;
	char *p;

	start();
	p = leave_stale(&file, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
	MUST(pipe2(ends, O_CLOEXEC | O_NONBLOCK));
	iov.iov_base = p;
	n = vmsplice(ends[1], &iov, 1, 0);
	ENSURE(n < 0 && errno == EFAULT, "vmsplice of a stale address: %zd", n);
	local.iov_base = buffer;
	n = process_vm_readv(getpid(), &local, 1, &iov, 1, 0);
	ENSURE(n < 0 && errno == EFAULT,
	       "process_vm_readv of a stale address: %zd", n);
	ENSURE(peer_count(p, PAGES, WORD(OWN)) > 0, "the peer held nothing");
}

static void *map_and_crash(void *unused)
{
	int i;

	(void)unused;
	for (i = 0;; i++) {
		char *p = mmap(NULL, LENGTH, PROT_READ, MAP_SHARED | MAP_FPR,
			       file.fd, 0);

		if (p == MAP_FAILED)
			return NULL;
		*(volatile char *)p;
		munmap(p, LENGTH);
	}
	return NULL;
}

/* The dump walks mappings that another thread is just taking away. */
static void core_dump(void)
{
	char dir[512];
	int round;

	snprintf(dir, sizeof(dir), "/tmp/ceasefire-core.XXXXXX");
	ENSURE(mkdtemp(dir), "%s: %m", dir);
	for (round = 0; round < 10; round++) {
		pid_t pid = (pid_t)MUST(fork());
		struct dirent *entry;
		int status;
		DIR *d;

		if (!pid) {
			struct rlimit all = { 64 * MIB, 64 * MIB };
			pthread_t t;

			file_make(&file, ON_TMPFS, PAGES, OWN);
			MUST(chdir(dir));
			setrlimit(RLIMIT_CORE, &all);
			signal(SIGSEGV, SIG_DFL);
			pthread_create(&t, NULL, map_and_crash, NULL);
			pthread_create(&t, NULL, map_and_crash, NULL);
			sleep_ms(50 + (unsigned int)round * 7);
			raise(SIGSEGV);
			_exit(1);
		}
		MUST(waitpid(pid, &status, 0));
		d = opendir(dir);
		while (d && (entry = readdir(d)))
			if (entry->d_name[0] != '.')
				unlinkat(dirfd(d), entry->d_name, 0);
		if (d)
			closedir(d);
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV) {
			rmdir(dir);
			ktap_fail("round %d: status %x", round,
				  (unsigned int)status);
		}
		if (!round)
			ktap_note("core was %sdumped",
				  WCOREDUMP(status) ? "" : "not ");
	}
	rmdir(dir);
}

static struct {
	int fd;
	uint64_t start, end;
	bool seen;
} watcher;

/* Somebody who wants to know about munmap; it waits for him. */
static void *watch_unmaps(void *unused)
{
	struct pollfd wait = { .fd = watcher.fd, .events = POLLIN };
	struct uffd_msg message;

	(void)unused;
	while (poll(&wait, 1, 60000) == 1) {
		if (read(watcher.fd, &message, sizeof(message)) !=
		    sizeof(message))
			continue;
		if (message.event != UFFD_EVENT_UNMAP)
			continue;
		watcher.start = message.arg.remove.start;
		watcher.end = message.arg.remove.end;
		__atomic_store_n(&watcher.seen, true, __ATOMIC_RELEASE);
		return NULL;
	}
	return NULL;
}

static void userfault_unmap(void)
{
	struct uffdio_api api = {
		.api = UFFD_API, .features = UFFD_FEATURE_EVENT_UNMAP,
	};
	struct uffdio_register reg = {
		.mode = UFFDIO_REGISTER_MODE_MISSING,
		.range.len = LENGTH,
	};
	pthread_t t;
	double end;
	char *p;

	start();
	watcher.fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (watcher.fd < 0)
		ktap_skip("no userfaultfd");
	MUST(ioctl(watcher.fd, UFFDIO_API, &api));
	leave_stale(&file, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
	p = fpr_map(&file, 0, PAGES, PROT_READ, MAP_SHARED);
	peer_touch(p, PAGES);
	reg.range.start = (uintptr_t)p;
	if (ioctl(watcher.fd, UFFDIO_REGISTER, &reg)) {
		ENSURE(errno == EINVAL || errno == EPERM,
		       "UFFDIO_REGISTER: %m");
		ktap_skip("a read-only mapping cannot be registered");
	}
	ENSURE(!pthread_create(&t, NULL, watch_unmaps, NULL), "no thread");
	MUST(munmap(p, LENGTH));
	end = seconds() + 5;
	while (!__atomic_load_n(&watcher.seen, __ATOMIC_ACQUIRE)) {
		ENSURE(seconds() < end, "no event for the munmap");
		sleep_ms(1);
	}
	ENSURE(watcher.start == (uintptr_t)p &&
	       watcher.end == (uintptr_t)p + LENGTH,
	       "an event for [%llx, %llx)", (unsigned long long)watcher.start,
	       (unsigned long long)watcher.end);
}

/* What is locked is counted, and what is gone is not. */
static void locked_is_counted(void)
{
	long before = read_kb("/proc/self/status", "VmLck");
	char *p;

	start();
	leave_stale(&file, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
	p = fpr_map(&file, 0, PAGES, PROT_READ, MAP_SHARED | MAP_LOCKED);
	ENSURE(read_kb("/proc/self/status", "VmLck") ==
	       before + (long)(LENGTH / 1024), "the mapping is not locked");
	MUST(munmap(p, LENGTH));
	ENSURE(read_kb("/proc/self/status", "VmLck") == before,
	       "%ld kB are still locked after the munmap",
	       read_kb("/proc/self/status", "VmLck") - before);
}

/* A sealed mapping cannot be unmapped. */
static void sealed_stays(void)
{
	char *p;

	start();
	leave_stale(&file, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
	p = fpr_map(&file, 0, PAGES, PROT_READ, MAP_SHARED);
	if (syscall(462 /* mseal */, p, LENGTH, 0))
		ktap_skip("no mseal: %s", strerror(errno));
	ENSURE(munmap(p, LENGTH) == -1 && errno == EPERM,
	       "a sealed mapping was unmapped");
	ENSURE(probe_read(p) == WORD(OWN), "the sealed mapping is gone");
}

/*
 * A device that mirrors the page tables hears of invalidations from the flush:
 * while there is one, every munmap flushes.
 */
static void secondary_mmu(void)
{
	long before, notified;
	size_t seen;
	char *p;
	int fd;

	start();
	leave_stale(&file, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
	fd = open("/dev/hmm_dmirror0", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		ktap_skip("no /dev/hmm_dmirror0: boot the debug kernel");
	before = vmstat("fpr_skip");
	notified = vmstat("fpr_flush_notifier");
	p = fpr_map(&file, 0, PAGES, PROT_READ, MAP_SHARED);
	peer_touch(p, PAGES);
	MUST(munmap(p, LENGTH));
	checker_forbid(p, PAGES);
	seen = peer_count(p, PAGES, WORD(OWN));
	ENSURE(!seen, "the peer reads %zu pages after the munmap", seen);
	ENSURE(vmstat("fpr_skip") == before, "skipped behind a device's back");
	ENSURE(vmstat("fpr_flush_notifier") > notified, "not counted");
	close(fd);
}

static void *exit_soon(void *unused)
{
	char *p;

	(void)unused;
	p = mmap(NULL, LENGTH, PROT_READ, MAP_SHARED | MAP_FPR, file.fd, 0);
	if (p != MAP_FAILED) {
		*(volatile char *)p;
		munmap(p, LENGTH);
	}
	return NULL;
}

/* Threads come and go; the process and its stale translations stay. */
static void threads_come_and_go(void)
{
	struct stranger stranger;
	size_t secrets;
	pthread_t t;
	int i;
	char *p;

	stranger_start(&stranger);
	start();
	p = leave_stale(&file, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
	for (i = 0; i < 50; i++) {
		ENSURE(!pthread_create(&t, NULL, exit_soon, NULL), "no thread");
		pthread_join(t, NULL);
	}
	file_drop(&file);
	stranger_fill(&stranger, FILL_ANON, 16);
	secrets = peer_count(p, PAGES, WORD(SECRET));
	ENSURE(!secrets, "%zu of %d pages of another process are readable",
	       secrets, PAGES);
	stranger_stop(&stranger);
}

/* Many short processes with a context each. */
static void many_processes(void)
{
	int i, status;

	fpr_skip_local();
	file_make(&file, ON_TMPFS, PAGES, OWN);
	for (i = 0; i < 100; i++) {
		pid_t pid = (pid_t)MUST(fork());

		if (!pid) {
			char *p = mmap(NULL, LENGTH, PROT_READ,
				       MAP_SHARED | MAP_FPR, file.fd, 0);

			if (p == MAP_FAILED || *(uint64_t *)p != WORD(OWN))
				_exit(1);
			munmap(p, LENGTH);
			_exit(0);
		}
		MUST(waitpid(pid, &status, 0));
		ENSURE(!status, "process %d: status %x", i,
		       (unsigned int)status);
	}
	ENSURE(fpr_wait_sysfs_at_most("contexts", 0, 10), "%ld contexts stay",
	       fpr_sysfs("contexts"));
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "fork_settles", fork_settles, 0 },
		{ "child_is_separate", child_is_separate, 0 },
		{ "exec_ends_context", exec_ends_context, 0 },
		{ "pinning_fails", pinning_fails, 0 },
		{ "core_dump", core_dump, 0 },
		{ "userfault_unmap", userfault_unmap, 0 },
		{ "locked_is_counted", locked_is_counted, 0 },
		{ "sealed_stays", sealed_stays, 0 },
		{ "secondary_mmu", secondary_mmu, 0 },
		{ "threads_come_and_go", threads_come_and_go, 0 },
		{ "many_processes", many_processes, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
