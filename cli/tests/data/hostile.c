// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program that does harm to who records it: hostile TRICK [FILE]. Then it sends some shootdowns
 * from unmap_some(), and ends with status 3.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIZE 16384
#define SOME 4
#define BURST 10
/* The recorder looks at the mappings several times a second; on a busy machine that is less often. */
#define LAST_LOOK_US 1000000

static volatile unsigned long turns;
static volatile int over;

static void *spin(void *unused)
{
	while (!over)
		turns++;
	return unused;
}

/* The C library has no frame, so the kernel does not see who calls munmap(). */
__attribute__((noinline)) void unmap_one(void)
{
	char *map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(map, 1, SIZE);
	munmap(map, SIZE);
	__asm__ volatile("");
}

__attribute__((noinline)) void unmap_some(int count)
{
	for (int i = 0; i < count; i++) {
		unsigned long before = turns;

		/* The other thread runs just now, or there is nobody to interrupt. Not for ever. */
		for (int wait = 0; turns == before && wait < 10000; wait++)
			usleep(100);
		for (int burst = 0; burst < BURST; burst++)
			unmap_one();
	}
}

static void run_on(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

static void shootdowns(int count)
{
	pthread_t thread;

	run_on(1);
	pthread_create(&thread, NULL, spin, NULL);
	run_on(0);
	/* Somebody has to look at the mappings meanwhile. */
	usleep(100000);
	unmap_some(count);
	over = 1;
	usleep(LAST_LOOK_US);
}

/* Put something else in the place of this program. */
static void replace(const char *self, const char *trick)
{
	if (unlink(self))
		perror(self);
	if (!strcmp(trick, "fifo"))
		mkfifo(self, 0777);
	else if (!strcmp(trick, "link") && symlink("/dev/tty", self))
		perror(self);
}

static void map_often(const char *self)
{
	int fd = open(self, O_RDONLY);

	for (int i = 0; i < 20000; i++)
		mmap(NULL, 4096, i % 2 ? PROT_READ | PROT_EXEC : PROT_READ, MAP_PRIVATE, fd, 0);
}

/* Each child starts the next one. */
static void fork_on(void)
{
	pid_t first = getpid();

	for (int i = 0; i < 500; i++) {
		pid_t pid = fork();

		if (pid > 0 && getpid() == first)
			break;
		if (pid != 0)
			_exit(0);
	}
	if (getpid() != first)
		_exit(0);
}

static void names(void)
{
	char name[16];

	for (int i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "\n => x%d", i);
		prctl(PR_SET_NAME, name);
		usleep(10);
	}
	prctl(PR_SET_NAME, "a\nb\x1b[2J\xff");
}

int main(int argc, char **argv)
{
	const char *trick = argc > 1 ? argv[1] : "";

	if (!strcmp(trick, "fifo") || !strcmp(trick, "link"))
		replace(argv[2], trick);
	else if (!strcmp(trick, "kill"))
		kill(getppid(), SIGKILL);
	else if (!strcmp(trick, "stop"))
		kill(getppid(), SIGSTOP);
	else if (!strcmp(trick, "close"))
		for (int i = 0; i < 4096; i++)
			close(i);
	else if (!strcmp(trick, "often"))
		map_often(argv[2]);
	else if (!strcmp(trick, "fork"))
		fork_on();
	else if (!strcmp(trick, "names"))
		names();
	else if (!strcmp(trick, "deaf")) {
		signal(SIGTERM, SIG_IGN);
		signal(SIGINT, SIG_IGN);
		signal(SIGHUP, SIG_IGN);
		puts("ready");
		fflush(stdout);
		for (;;)
			raise(SIGSTOP);
	} else if (!strcmp(trick, "flood")) {
		/* Events as fast as they can be made, until somebody ends it. */
		puts("ready");
		fflush(stdout);
		for (;;)
			munmap((void *)4096, 4096);
	} else if (!strcmp(trick, "exec")) {
		/* The name of the file is an argument, and as long as some lines. */
		execl(argv[2], argv[2], NULL);
		perror(argv[2]);
	}
	shootdowns(SOME);
	_exit(3);
}
