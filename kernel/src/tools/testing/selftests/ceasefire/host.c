// SPDX-License-Identifier: GPL-2.0
/* The host of this machine, see host.h. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "env.h"
#include "host.h"
#include "ktap.h"

#define MEMORY		"/sys/devices/system/memory/"
#define PORTS		"/sys/class/virtio-ports/"
#define MONITOR		"ceasefire.monitor"

long host_memory(void)
{
	char text[32] = "";
	FILE *f = fopen(MEMORY "block_size_bytes", "re");
	DIR *dir = opendir(MEMORY);
	unsigned long size = 0;
	struct dirent *d;
	long blocks = 0;

	if (f && fgets(text, sizeof(text), f))
		size = strtoul(text, NULL, 16);
	if (f)
		fclose(f);
	ENSURE(dir && size, MEMORY ": %m");
	while ((d = readdir(dir)))
		blocks += !strncmp(d->d_name, "memory", 6);
	closedir(dir);
	return (long)(blocks * (size / MIB));
}

/* The device of the port with that name; -1 if there is none. */
static int open_monitor(void)
{
	char path[320], name[64];
	struct dirent *d;
	int fd = -1;
	DIR *dir = opendir(PORTS);

	while (dir && fd < 0 && (d = readdir(dir))) {
		FILE *f;

		snprintf(path, sizeof(path), PORTS "%s/name", d->d_name);
		f = fopen(path, "re");
		if (f && fgets(name, sizeof(name), f) &&
		    !strcmp(name, MONITOR "\n")) {
			snprintf(path, sizeof(path), "/dev/%s", d->d_name);
			fd = open(path, O_RDWR | O_CLOEXEC);
			ENSURE(fd >= 0, "%s: %m", path);
		}
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return fd;
}

void host_leave(long mib)
{
	int fd = open_monitor(), length;
	char text[256];

	if (fd < 0)
		ktap_skip("the host cannot be asked: no port " MONITOR);
	length = snprintf(text, sizeof(text),
			  "{\"execute\":\"qmp_capabilities\"}\n"
			  "{\"execute\":\"balloon\",\"arguments\":{\"value\":%lu}}\n",
			  mib * MIB);
	ENSURE(write(fd, text, length) == length, "monitor: %m");
	close(fd);
}

long host_balloon(void)
{
	long pages = vmstat("balloon_inflate") - vmstat("balloon_deflate");

	return pages / (long)(MIB / PAGE);
}

static void wait_balloon(long least, long most, unsigned int limit)
{
	double until = seconds() + limit;

	while (host_balloon() < least || host_balloon() > most) {
		ENSURE(seconds() < until,
		       "%ld MiB are in the balloon, not %ld to %ld",
		       host_balloon(), least, most);
		sleep_ms(50);
	}
}

void host_wait_inflated(long mib, unsigned int limit)
{
	wait_balloon(mib, host_memory(), limit);
}

void host_wait_deflated(long mib, unsigned int limit)
{
	wait_balloon(0, mib, limit);
}
