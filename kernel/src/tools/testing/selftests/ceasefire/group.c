// SPDX-License-Identifier: GPL-2.0
/* Control groups of our own, see group.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "env.h"
#include "group.h"
#include "ktap.h"

#define GENERATIONS	"/sys/kernel/debug/lru_gen"

/* As long as it takes to stop what runs in a group, times ten. */
#define FREEZE_S	20

static char root[64], groups[GROUPS][96];

static char *in(const char *folder, const char *name)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

/* Outlives the case, however that ends, and takes everything away. */
static void clean_up_later(void)
{
	int alive[2], tries, fd, g;
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
	/* Processes of the case may still be exiting; those below go first. */
	for (g = GROUPS; g--;)
		for (tries = 0; tries < 100 && rmdir(groups[g]) &&
		     errno == EBUSY; tries++)
			sleep_ms(100);
	umount2(root, MNT_DETACH);
	rmdir(root);
	_exit(0);
}

void group_start(void)
{
	snprintf(root, sizeof(root), "/tmp/fpr-group-%d", (int)getpid());
	snprintf(groups[GROUP_OWN], sizeof(groups[0]), "%s/case-%d", root,
		 (int)getpid());
	snprintf(groups[GROUP_BESIDE], sizeof(groups[0]), "%s/beside-%d", root,
		 (int)getpid());
	snprintf(groups[GROUP_BELOW], sizeof(groups[0]), "%s/case-%d/below",
		 root, (int)getpid());
	MUST(mkdir(root, 0700));
	MUST(mount("none", root, "cgroup2", 0, NULL));
	if (!write_text(in(root, "cgroup.subtree_control"), "+memory")) {
		umount2(root, MNT_DETACH);
		rmdir(root);
		ktap_skip("no memory control groups");
	}
	MUST(mkdir(groups[GROUP_OWN], 0700));
	clean_up_later();
	group_enter(GROUP_OWN);
}

void group_make(enum group g)
{
	if (g == GROUP_BELOW)
		ENSURE(write_text(in(groups[GROUP_OWN],
				     "cgroup.subtree_control"), "+memory"),
		       "%s: %m", groups[GROUP_OWN]);
	MUST(mkdir(groups[g], 0700));
}

void group_enter(enum group g)
{
	ENSURE(write_text(in(groups[g], "cgroup.procs"), "0"), "%s: %m",
	       groups[g]);
}

void group_remove(enum group g)
{
	int tries;

	for (tries = 0; rmdir(groups[g]); tries++) {
		ENSURE(errno == EBUSY && tries < 100, "%s: %m", groups[g]);
		sleep_ms(100);
	}
}

void group_set(enum group g, const char *name, long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", value);
	ENSURE(write_text(in(groups[g], name), text), "%s: %m", name);
}

long group_value(enum group g, const char *name)
{
	return read_number(in(groups[g], name));
}

/* A "name 123" line of a file; 0 without. */
static long line_of(const char *path, const char *name)
{
	size_t length = strlen(name);
	char line[128];
	long value = 0;
	FILE *f = fopen(path, "re");

	ENSURE(f, "%s: %m", path);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, name, length) && line[length] == ' ')
			value = atol(line + length);
	fclose(f);
	return value;
}

long group_line(enum group g, const char *file, const char *name)
{
	return line_of(in(groups[g], file), name);
}

long group_used(enum group g)
{
	return group_line(g, "memory.stat", "anon") +
	       group_line(g, "memory.stat", "file") +
	       group_line(g, "memory.stat", "kernel");
}

void group_freeze(enum group g, bool frozen)
{
	double end = seconds() + FREEZE_S;

	group_set(g, "cgroup.freeze", frozen);
	while (group_line(g, "cgroup.events", "frozen") != frozen) {
		ENSURE(seconds() < end, "the group does not freeze");
		sleep_ms(1);
	}
}

void group_leave(void)
{
	ENSURE(write_text(in(root, "cgroup.procs"), "0"), "%s: %m", root);
}

void group_reclaim(size_t bytes)
{
	char text[32];

	snprintf(text, sizeof(text), "%zu", bytes);
	if (!write_text(in(groups[GROUP_OWN], "memory.reclaim"), text))
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
