// SPDX-License-Identifier: GPL-2.0
/* Morsels of a case, see morsels.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "env.h"
#include "ktap.h"
#include "morsels.h"
#include "worker.h"

#define SYSFS	"/sys/kernel/mm/ceasefire/morsel/"

static int make(uint64_t size, uint64_t unit, uint32_t base, uint32_t flags)
{
	struct morsel_geometry g = {
		.unit = unit, .base = base, .flags = flags,
	};
	int fd = memfd_create("case", MFD_MORSEL | MFD_CLOEXEC);

	if (fd < 0 && errno == EINVAL)
		ktap_skip("no morsels");
	ENSURE(fd >= 0, "memfd_create: %m");
	if (unit)
		MUST(ioctl(fd, MORSEL_IOC_GEOMETRY, &g));
	MUST(ftruncate(fd, (off_t)size));
	return fd;
}

int morsel_make_of(uint64_t size, uint64_t unit)
{
	return make(size, unit, PAGE, 0);
}

int morsel_make_lazy(uint64_t size, uint64_t unit)
{
	return make(size, unit, PAGE, MORSEL_ALLOW_LAZY);
}

int morsel_make_huge(uint64_t size, uint64_t unit)
{
	return make(size, unit, UNIT, 0);
}

int morsel_make(uint64_t size)
{
	return morsel_make_of(size, 0);
}

int morsel_copy(int fd)
{
	int copy = memfd_create("copy", MFD_MORSEL | MFD_CLOEXEC);

	ENSURE(copy >= 0, "memfd_create: %m");
	ENSURE(!ioctl(copy, FICLONE, fd), "FICLONE: %m");
	return copy;
}

int morsel_reader(int fd)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return (int)MUST(open(path, O_RDONLY | O_CLOEXEC));
}

const uint64_t morsel_units[] = { UNIT, GIB, 512 * GIB, 256 * TIB };

size_t morsel_nr_units(void)
{
	return has_word("/proc/cpuinfo", "la57") ? 4 : 3;
}

void morsel_need_256_tib(void)
{
	if (morsel_nr_units() < 4)
		ktap_skip("needs five levels of page tables");
}

char *morsel_room(uint64_t size, uint64_t unit)
{
	uint64_t all = size + unit;
	/* Above 128 TiB there is only what was asked for there. */
	char *at = all < 128 * TIB ? NULL : (char *)(128 * TIB);

	at = mmap(at, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ENSURE(at != MAP_FAILED, "mmap: %m");
	return (char *)(((uintptr_t)at + unit - 1) & ~(unit - 1));
}

char *morsel_map(int fd, uint64_t size, int prot)
{
	char *p = mmap(NULL, size, prot, MAP_SHARED, fd, 0);

	ENSURE(p != MAP_FAILED, "mmap: %m");
	return p;
}

static int vector(int fd, unsigned long request,
		  const struct morsel_range *ranges, unsigned int nr,
		  unsigned int flags, uint64_t *done)
{
	struct morsel_vec vec = {
		.ranges = (uintptr_t)ranges, .nr = nr, .flags = flags,
	};
	int err = ioctl(fd, request, &vec) ? -errno : 0;

	if (done)
		*done = vec.done;
	return err;
}

int morsel_vector(int fd, unsigned long request,
		  const struct morsel_range *ranges, unsigned int nr,
		  uint64_t *done)
{
	return vector(fd, request, ranges, nr, 0, done);
}

int morsel_give_up(int fd, uint64_t offset, uint64_t length)
{
	struct morsel_range range = { offset, length };

	return vector(fd, MORSEL_IOC_DEPOPULATE, &range, 1, MORSEL_LAZY, NULL);
}

int morsel_leave(int fd, uint64_t offset, uint64_t length)
{
	struct morsel_range range = { offset, length };

	return vector(fd, MORSEL_IOC_DEPOPULATE, &range, 1, MORSEL_ASYNC, NULL);
}

int morsel_populate(int fd, uint64_t offset, uint64_t length)
{
	struct morsel_range range = { offset, length };

	return morsel_vector(fd, MORSEL_IOC_POPULATE, &range, 1, NULL);
}

int morsel_depopulate(int fd, uint64_t offset, uint64_t length)
{
	struct morsel_range range = { offset, length };

	return morsel_vector(fd, MORSEL_IOC_DEPOPULATE, &range, 1, NULL);
}

static void spin(void *unused)
{
	(void)unused;
	for (;;)
		__builtin_ia32_pause();
}

void morsel_epoch_waits(int fd, uint64_t offset)
{
	static struct worker spinner;
	static bool spins;

	need_cpus(3);
	fpr_set("debt_age_ms", 60000);
	latr_tickless_cpu(2);
	if (!spins) {
		worker_start(&spinner, 2, NULL);
		worker_begin(&spinner, spin, NULL);
		spins = true;
		sleep_ms(50);
	}
	ENSURE(!morsel_populate(fd, offset, PAGE), "populate");
	ENSURE(!morsel_give_up(fd, offset, PAGE), "give up");
	/* Ticks of the others come meanwhile. */
	sleep_ms(100);
}

struct morsel_stat morsel_stat(int fd)
{
	struct morsel_stat stat;

	MUST(ioctl(fd, MORSEL_IOC_STAT, &stat));
	return stat;
}

void morsel_fill(char *p, size_t pages, uint64_t word)
{
	size_t i;

	for (i = 0; i < pages; i++)
		*(volatile uint64_t *)(p + i * PAGE) = word;
}

size_t morsel_count(const char *p, size_t pages, uint64_t word)
{
	size_t i, right = 0;

	for (i = 0; i < pages; i++)
		right += *(const volatile uint64_t *)(p + i * PAGE) == word;
	return right;
}

long morsel_sysfs(const char *name)
{
	char path[80];
	long value;

	snprintf(path, sizeof(path), SYSFS "%s", name);
	value = read_number(path);
	if (value < 0)
		ktap_skip("no %s", path);
	return value;
}

void morsel_set(const char *name, long value)
{
	char path[80], text[30];

	snprintf(path, sizeof(path), SYSFS "%s", name);
	snprintf(text, sizeof(text), "%ld", value);
	ENSURE(write_text(path, text), "%s: %m", path);
}

static void set_delay(const char *path, unsigned int ms)
{
	char text[30];

	snprintf(text, sizeof(text), "%u", ms * 1000);
	if (!write_text(path, text))
		ktap_skip("no delays: boot the debug kernel");
}

void morsel_install_delay(unsigned int ms)
{
	set_delay("/sys/kernel/debug/ceasefire/install_delay_us", ms);
}

void morsel_clean_delay(unsigned int ms)
{
	set_delay("/sys/kernel/debug/ceasefire/clean_delay_us", ms);
}
