// SPDX-License-Identifier: GPL-2.0
/* A control group of our own, see group.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "env.h"
#include "group.h"
#include "ktap.h"

#define GENERATIONS	"/sys/kernel/debug/lru_gen"

static char root[64], group[96];

static char *in(const char *folder, const char *name)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

/* Outlives the case, however that ends, and takes everything away. */
static void clean_up_later(void)
{
	int alive[2], tries, fd;
	char byte;

	MUST(pipe2(alive, O_CLOEXEC));
	if (MUST(fork())) {
		close(alive[0]);
		return;
	}
	setsid();
	close(alive[1]);
	/* Who reads what the case prints waits for its end. */
	for (fd = 0; fd <= 2; fd++)
		close(fd);
	while (read(alive[0], &byte, 1) > 0)
		;
	/* Processes of the case may still be exiting. */
	for (tries = 0; tries < 100 && rmdir(group) && errno == EBUSY; tries++)
		sleep_ms(100);
	umount2(root, MNT_DETACH);
	rmdir(root);
	_exit(0);
}

void group_start(void)
{
	snprintf(root, sizeof(root), "/tmp/fpr-group-%d", (int)getpid());
	snprintf(group, sizeof(group), "%s/case-%d", root, (int)getpid());
	MUST(mkdir(root, 0700));
	MUST(mount("none", root, "cgroup2", 0, NULL));
	if (!write_text(in(root, "cgroup.subtree_control"), "+memory")) {
		umount2(root, MNT_DETACH);
		rmdir(root);
		ktap_skip("no memory control groups");
	}
	MUST(mkdir(group, 0700));
	clean_up_later();
	ENSURE(write_text(in(group, "cgroup.procs"), "0"), "%s: %m", group);
}

void group_leave(void)
{
	ENSURE(write_text(in(root, "cgroup.procs"), "0"), "%s: %m", root);
}

void group_reclaim(size_t bytes)
{
	char text[32];

	snprintf(text, sizeof(text), "%zu", bytes);
	if (!write_text(in(group, "memory.reclaim"), text))
		ENSURE(errno == EAGAIN || errno == EINTR, "memory.reclaim: %m");
}

long group_youngest(void)
{
	char line[256], path[64];
	long pages = 0, newest = 0;
	bool ours = false, found = false;
	FILE *f = fopen(GENERATIONS, "re");

	if (!f)
		ktap_skip("no " GENERATIONS);
	snprintf(path, sizeof(path), "/case-%d\n", (int)getpid());
	while (fgets(line, sizeof(line), f)) {
		unsigned long seq, age, anon, file;

		if (strstr(line, "memcg ")) {
			ours = strstr(line, path);
		} else if (strstr(line, "node ")) {
			newest = 0;
		} else if (ours && sscanf(line, " %lu %lu %lu%*[ x]%lu", &seq,
					  &age, &anon, &file) == 4) {
			/* The last line of each node is the youngest. */
			pages += (long)file - newest;
			newest = (long)file;
			found = true;
		}
	}
	fclose(f);
	ENSURE(found, GENERATIONS " does not have the group");
	return pages;
}
