// SPDX-License-Identifier: GPL-2.0-only
/*
 * Does the same whatever the kernel does about shootdowns: maps and unmaps a
 * file a few times while another thread sleeps, so that there is something to
 * skip but nobody to wait for, as an idle CPU is not interrupted; and then
 * computes for a much longer time. For the tests of `ceasefire try`, which must
 * not find that one mode is faster.
 *
 *	steady FILE
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TIMES = 4, STEPS = 100 * 1000 * 1000 };

static pthread_mutex_t until_done = PTHREAD_MUTEX_INITIALIZER;
static atomic_int running;

static void *peer(void *unused)
{
	atomic_store(&running, 1);
	pthread_mutex_lock(&until_done);
	pthread_mutex_unlock(&until_done);
	return unused;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

int main(int argc, char **argv)
{
	volatile unsigned char *map;
	uint32_t state = 1;
	pthread_t thread;
	struct stat info;
	int fd, i;

	fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
	if (fd < 0 || fstat(fd, &info))
		die("steady FILE");
	pthread_mutex_lock(&until_done);
	if (pthread_create(&thread, NULL, peer, NULL))
		die("thread");
	while (!atomic_load(&running))
		;
	/* It goes to sleep meanwhile. */
	usleep(20 * 1000);
	for (i = 0; i < TIMES; i++) {
		map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (map == MAP_FAILED)
			die("mmap");
		state += map[0];
		if (munmap((void *)map, (size_t)info.st_size))
			die("munmap");
	}
	pthread_mutex_unlock(&until_done);
	pthread_join(thread, NULL);
	for (i = 0; i < STEPS; i++)
		state = state * 1664525 + 1013904223;
	printf("%u\n", state);
	return 0;
}
