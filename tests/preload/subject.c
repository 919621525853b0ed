// SPDX-License-Identifier: GPL-2.0-only
/*
 * subject.c - the program that is run under the preload library
 *
 * What: `subject CASE [FILE]...` makes the mappings of one case and checks what
 *       a program can see of them. Exit status 0: as without the library.
 * Who:  test-preload.c, which looks at the calls from outside. The length of a
 *       mapping says which one it is: 70001, 70002, ...
 */
/* So that mmap and mmap64 are two names here. */
#undef _FILE_OFFSET_BITS

#include "tracer.h"

#include "../../lib/include/ceasefire.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MAP_SHARED_VALIDATE
#define MAP_SHARED_VALIDATE 0x03
#endif

#define FIRST_LENGTH 70001UL
#define ODD_ERRNO 4711

static int problems;

static void complain(const char *what)
{
	dprintf(STDERR_FILENO, "subject: %s: %s\n", what, strerror(errno));
	problems++;
}

static int open_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0) {
		complain(path);
		exit(1);
	}
	return fd;
}

static void *map(unsigned long length, int flags, int fd)
{
	void *p;

	errno = ODD_ERRNO;
	p = mmap(NULL, length, PROT_READ, flags, fd, 0);
	if (p == MAP_FAILED)
		complain("mmap");
	else if (errno != ODD_ERRNO)
		complain("errno changed by a mmap that worked");
	return p;
}

/* Each file once, private, read-only; then the contents. */
static void case_files(char **files)
{
	for (unsigned long i = 0; files[i]; i++) {
		int fd = open_file(files[i]);
		char *p = map(FIRST_LENGTH + i, MAP_PRIVATE, fd);
		char head[4] = "";

		if (read(fd, head, 4) != 4 || memcmp(head, p, 4) != 0)
			complain("the mapping shows other data than the file");
		close(fd);
	}
}

/* Every flag that matters, on one file. */
static void case_flags(char **files)
{
	static const int flags[] = {
		MAP_PRIVATE,
		MAP_SHARED,
		MAP_SHARED_VALIDATE,
		MAP_PRIVATE | MAP_POPULATE | MAP_NORESERVE,
		MAP_PRIVATE | MAP_FPR,
		MAP_PRIVATE | MAP_32BIT,
		MAP_PRIVATE | MAP_STACK,
		MAP_PRIVATE | MAP_ANONYMOUS,
		MAP_SHARED | MAP_ANONYMOUS,
	};
	int fd = open_file(files[0]);
	unsigned long i;
	char *place, *hinted;

	for (i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		map(FIRST_LENGTH + i, flags[i],
		    flags[i] & MAP_ANONYMOUS ? -1 : fd);

	place = map(1 << 20, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	if (mmap(place, FIRST_LENGTH + 20, PROT_READ, MAP_PRIVATE | MAP_FIXED,
		 fd, 0) != place)
		complain("MAP_FIXED");
	munmap(place, 1 << 20);
	if (mmap(place, FIRST_LENGTH + 21, PROT_READ,
		 MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0) != place)
		complain("MAP_FIXED_NOREPLACE");
	munmap(place, 1 << 20);
	hinted = mmap(place, FIRST_LENGTH + 22, PROT_READ, MAP_PRIVATE, fd, 0);
	if (hinted != place)
		complain("an address hint was not taken");
	if (mmap64(NULL, FIRST_LENGTH + 23, PROT_READ, MAP_SHARED, fd, 4096) ==
	    MAP_FAILED)
		complain("mmap64");
	/* Fail on any kernel that has no huge pages set aside; both are fine. */
	mmap(NULL, FIRST_LENGTH + 24, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_HUGETLB, fd, 0);
	mmap(NULL, FIRST_LENGTH + 25, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_GROWSDOWN, fd, 0);
}

static void expect_error(void *p, int error, const char *what)
{
	if (p != MAP_FAILED || errno != error)
		complain(what);
}

static void case_errors(char **files)
{
	int fd = open_file(files[0]);
	int read_only = open(files[0], O_RDONLY | O_CLOEXEC);
	int write_only = open(files[0], O_WRONLY | O_CLOEXEC);

	expect_error(mmap(NULL, FIRST_LENGTH, PROT_READ, MAP_PRIVATE, -1, 0),
		     EBADF, "descriptor -1");
	expect_error(mmap(NULL, FIRST_LENGTH + 1, PROT_READ, MAP_PRIVATE, 1000,
			  0), EBADF, "descriptor that is not open");
	expect_error(mmap(NULL, FIRST_LENGTH + 2, PROT_READ, MAP_PRIVATE, fd,
			  17), EINVAL, "odd offset");
	expect_error(mmap64(NULL, FIRST_LENGTH + 3, PROT_READ, MAP_PRIVATE, fd,
			    17), EINVAL, "odd offset, mmap64");
	expect_error(mmap(NULL, FIRST_LENGTH + 4, PROT_READ, 0, fd, 0), EINVAL,
		     "no type");
	expect_error(mmap(NULL, FIRST_LENGTH + 5, PROT_WRITE, MAP_SHARED,
			  read_only, 0), EACCES, "no right to write");
	expect_error(mmap(NULL, FIRST_LENGTH + 6, PROT_READ, MAP_PRIVATE,
			  write_only, 0), EACCES, "no right to read");
	expect_error(mmap(NULL, SIZE_MAX - 8191, PROT_READ, MAP_PRIVATE, fd,
			  0), ENOMEM, "too long");
	expect_error(mmap(NULL, 0, PROT_READ, MAP_PRIVATE, fd, 0), EINVAL,
		     "nothing");
}

static void case_memfd(char **files)
{
	int fd = memfd_create("some memory", MFD_CLOEXEC);

	(void)files;
	if (fd < 0 || ftruncate(fd, 1 << 20))
		complain("memfd");
	map(FIRST_LENGTH, MAP_SHARED, fd);
}

static void case_deleted(char **files)
{
	int fd = open_file(files[0]);

	if (unlink(files[0]))
		complain("unlink");
	map(FIRST_LENGTH, MAP_SHARED, fd);
}

/* The constructor of a library has mapped already; see early.c. */
extern int early_errors(void);

static void case_early(char **files)
{
	(void)files;
	if (early_errors())
		complain("mapping in a constructor");
}

/* What the program does to its environment later does not matter. */
static void case_environment(char **files)
{
	char *value = getenv("CEASEFIRE_PATHS");
	int fd = open_file(files[0]);

	if (value)
		memset(value, 'x', strlen(value));
	map(FIRST_LENGTH, MAP_PRIVATE, fd);
	clearenv();
	map(FIRST_LENGTH + 1, MAP_PRIVATE, fd);
}

/* Standard error has become a data file, or nobody reads it. */
static void case_reused_stderr(char **files)
{
	int fd = open_file(files[0]);

	if (dup2(fd, STDERR_FILENO) < 0)
		exit(1);
	map(FIRST_LENGTH, MAP_PRIVATE, fd);
}

static void case_fork(char **files)
{
	int fd = open_file(files[0]);
	int status;
	pid_t pid;

	map(FIRST_LENGTH, MAP_PRIVATE, fd);
	map(FIRST_LENGTH, MAP_PRIVATE, fd);
	pid = fork();
	if (!pid) {
		map(FIRST_LENGTH, MAP_PRIVATE, fd);
		exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		complain("child");
}

static char *busy_file;
static int stop;

static void *map_and_unmap(void *unused)
{
	int fd = open_file(busy_file);

	(void)unused;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		void *p = mmap(NULL, FIRST_LENGTH, PROT_READ, MAP_SHARED, fd, 0);

		if (p == MAP_FAILED || munmap(p, FIRST_LENGTH))
			complain("in a thread");
	}
	close(fd);
	return NULL;
}

/* Children of a program that is inside mmap() in every thread. */
static void case_fork_in_threads(char **files)
{
	pthread_t threads[4];
	int status;

	busy_file = files[0];
	syscall(MARK_SYSCALL, MARK_DETACH);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, map_and_unmap, NULL);
	for (int i = 0; i < 200; i++) {
		pid_t pid = fork();

		if (!pid) {
			int fd = open(busy_file, O_RDONLY);

			_exit(mmap(NULL, FIRST_LENGTH, PROT_READ, MAP_SHARED, fd,
				   0) == MAP_FAILED);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			complain("child of a threaded program");
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

/* How many instructions the second call takes; the tracer counts. */
static void case_instructions(char **files)
{
	int fd = open_file(files[0]);

	map(FIRST_LENGTH, MAP_PRIVATE, fd);
	syscall(MARK_SYSCALL, MARK_COUNT_ON);
	mmap(NULL, FIRST_LENGTH + 1, PROT_READ, MAP_PRIVATE, fd, 0);
	syscall(MARK_SYSCALL, MARK_COUNT_OFF);
}

static ucontext_t here, there;
static int stack_fd;

static void map_on_other_stack(void)
{
	mmap(NULL, FIRST_LENGTH, PROT_READ, MAP_PRIVATE, stack_fd, 0);
}

/* Bytes of stack that a call needs: signal handlers have little. */
static void case_stack(char **files)
{
	static unsigned char stack[65536];
	size_t untouched;

	stack_fd = open_file(files[0]);
	/* The first call also binds the symbol. */
	map_on_other_stack();
	memset(stack, 0xa5, sizeof(stack));
	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof(stack);
	there.uc_link = &here;
	makecontext(&there, map_on_other_stack, 0);
	swapcontext(&here, &there);
	for (untouched = 0; untouched < sizeof(stack); untouched++) {
		if (stack[untouched] != 0xa5)
			break;
	}
	dprintf(STDERR_FILENO, "stack %zu\n", sizeof(stack) - untouched);
}

/* Who we are now may not reach any folder, but always the own executable. */
static void case_secure(char **files)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	(void)files;
	dprintf(STDERR_FILENO, "secure %lu\n", getauxval(AT_SECURE));
	map(FIRST_LENGTH, MAP_PRIVATE, fd);
}

static const struct {
	const char *name;
	void (*run)(char **files);
} cases[] = {
	{ "files", case_files },
	{ "flags", case_flags },
	{ "errors", case_errors },
	{ "memfd", case_memfd },
	{ "deleted", case_deleted },
	{ "early", case_early },
	{ "environment", case_environment },
	{ "reused-stderr", case_reused_stderr },
	{ "fork", case_fork },
	{ "fork-in-threads", case_fork_in_threads },
	{ "instructions", case_instructions },
	{ "stack", case_stack },
	{ "secure", case_secure },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(argv[1], cases[i].name) == 0) {
			cases[i].run(argv + 2);
			return problems ? 1 : 0;
		}
	}
	fprintf(stderr, "usage: subject CASE [FILE]...\n");
	return 2;
}
