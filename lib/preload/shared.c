// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * shared.c - shared memory of a program becomes morsels
 *
 * What: mmap(MAP_SHARED | MAP_ANONYMOUS) of CEASEFIRE_SHARED_TABLES bytes and more maps a morsel,
 *       so that all processes that inherit it have its page tables in common. A morsel is mapped in
 *       whole units, and unmapped and protected as a whole: munmap() and mprotect() of the size
 *       that the program knows are made those of the mapping.
 * Who:  mmap.c, for mappings; any program calls munmap() and mprotect().
 *
 * What cannot be a morsel is mapped as ever. A mapping is noted in a table without a lock: a slot
 * is FREE, BUSY while one thread fills or empties it, or has the address. munmap() makes all that
 * lie in its range BUSY before it asks the kernel, since an address may belong to another mapping as
 * soon as that has answered; MAP_FIXED frees those that it has replaced. A child that was forked meanwhile has a slot that stays BUSY, and nobody in it who knows
 * the address.
 */
#undef _FILE_OFFSET_BITS

#include "shared.h"

#include "config.h"
#include "rawsys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/morsel.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define EXPORT __attribute__((visibility("default")))

#define PAGE_SIZE 4096UL
#define SLOTS 64
#define SLOT_FREE 0UL
#define SLOT_BUSY 1UL

#define MORSELS "/sys/kernel/mm/ceasefire/morsel/"

/* As the program knows it, and as it is mapped. */
struct slot {
	atomic_ulong start;
	size_t length;
	size_t mapped;
};

static struct slot slots[SLOTS];
/* How many were ever taken: nothing to look for in most programs. */
static atomic_uint used;

static size_t round_up(size_t value, size_t unit)
{
	return (value + unit - 1) & ~(unit - 1);
}

static struct slot *slot_take(void)
{
	for (unsigned int i = 0; i < SLOTS; i++) {
		unsigned long free = SLOT_FREE;

		if (!atomic_compare_exchange_strong(&slots[i].start, &free, SLOT_BUSY))
			continue;
		atomic_fetch_add(&used, 1);
		return &slots[i];
	}
	return NULL;
}

/* What begins there, with a length of so many bytes in whole pages. */
static struct slot *slot_find(const void *start, size_t length)
{
	if (!atomic_load_explicit(&used, memory_order_acquire))
		return NULL;
	for (unsigned int i = 0; i < SLOTS; i++) {
		if (atomic_load(&slots[i].start) == (unsigned long)start &&
		    slots[i].length == round_up(length, PAGE_SIZE))
			return &slots[i];
	}
	return NULL;
}

/* A number in a file of sysfs; 0: there is none. */
static size_t number_of(const char *path)
{
	char text[32];
	size_t value = 0;
	long fd, length;

	fd = raw_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (RAW_IS_ERROR(fd))
		return 0;
	length = raw_read((int)fd, text, sizeof(text));
	raw_close((int)fd);
	for (long i = 0; i < length && text[i] >= '0' && text[i] <= '9'; i++)
		value = value * 10 + (size_t)(text[i] - '0');
	return value;
}

/* Bytes of what is mapped already, and may have no pages yet. */
static size_t promised(void)
{
	size_t sum = 0;

	for (unsigned int i = 0; i < SLOTS; i++)
		if (atomic_load(&slots[i].start) > SLOT_BUSY)
			sum += slots[i].length;
	return sum;
}

/*
 * An access beyond the limit of all morsels would get SIGBUS. Files may not be larger than
 * RLIMIT_FSIZE, which other shared memory does not know.
 */
static bool is_room(size_t length)
{
	size_t limit = number_of(MORSELS "limit"), pages = number_of(MORSELS "pages");
	size_t ahead = promised() / PAGE_SIZE;
	struct rlimit file;

	if (raw4(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&file) || file.rlim_cur < length)
		return false;
	pages = pages > ahead ? pages : ahead;
	return pages < limit && length / PAGE_SIZE <= limit - pages;
}

/* The descriptor of a morsel of so many bytes and its unit, or a negative errno. */
static long make(size_t length, size_t *unit)
{
	long fd = raw4(SYS_memfd_create, (long)"shared", MFD_MORSEL | MFD_CLOEXEC, 0, 0), err;
	struct morsel_stat stat;

	if (RAW_IS_ERROR(fd))
		return fd;
	err = raw4(SYS_ftruncate, fd, (long)length, 0, 0);
	if (!err)
		err = raw4(SYS_ioctl, fd, MORSEL_IOC_STAT, (long)&stat, 0);
	if (err) {
		raw_close((int)fd);
		return err;
	}
	*unit = stat.unit;
	return fd;
}

static long map_new(struct slot *slot, int prot, int flags)
{
	size_t unit = PAGE_SIZE;
	long fd, start;

	fd = make(slot->length, &unit);
	if (RAW_IS_ERROR(fd))
		return fd;
	slot->mapped = round_up(slot->length, unit);
	start = raw_mmap(NULL, slot->mapped, prot, MAP_SHARED | (flags & MAP_POPULATE), (int)fd,
			 0);
	raw_close((int)fd);
	return start;
}

bool shared_wanted(const struct config *config, const void *addr, size_t length, int prot,
		   int flags)
{
	const int wanted = MAP_SHARED | MAP_ANONYMOUS;

	/* What cannot be read is there to be protected in parts. */
	return config->shared && !addr && length >= config->shared && length <= SIZE_MAX / 4 &&
	       prot & PROT_READ && !(prot & ~(PROT_READ | PROT_WRITE)) &&
	       (flags & ~(MAP_NORESERVE | MAP_POPULATE)) == wanted;
}

long shared_map(const struct config *config, size_t length, int prot, int flags)
{
	long start = -ENOMEM;
	struct slot *slot;
	struct line line;

	length = round_up(length, PAGE_SIZE);
	slot = is_room(length) ? slot_take() : NULL;
	if (slot) {
		slot->length = length;
		start = map_new(slot, prot, flags);
		atomic_store(&slot->start, RAW_IS_ERROR(start) ? SLOT_FREE : (unsigned long)start);
	}
	if (config->verbose >= VERBOSE_MAPPINGS) {
		line_start(&line);
		line_text(&line, RAW_IS_ERROR(start) ? "no morsel: " : "morsel: ");
		line_number(&line, length);
		line_text(&line, " bytes of shared memory");
		line_send(&line, &config->output);
	}
	return start;
}

static int finish(long result)
{
	if (!RAW_IS_ERROR(result))
		return 0;
	errno = (int)-result;
	return -1;
}

static bool is_inside(const struct slot *slot, unsigned long start, unsigned long from,
		      size_t length)
{
	return start > SLOT_BUSY && start >= from && slot->mapped <= length &&
	       start - from <= length - slot->mapped;
}

/* Take all slots that lie in a range; the bits say which. */
static uint64_t slots_take(unsigned long from, size_t length, unsigned long starts[SLOTS])
{
	uint64_t taken = 0;

	for (unsigned int i = 0; i < SLOTS; i++) {
		starts[i] = atomic_load(&slots[i].start);
		if (is_inside(&slots[i], starts[i], from, length) &&
		    atomic_compare_exchange_strong(&slots[i].start, &starts[i], SLOT_BUSY))
			taken |= 1ULL << i;
	}
	return taken;
}

static void slots_put(uint64_t taken, const unsigned long starts[SLOTS], bool free)
{
	for (unsigned int i = 0; i < SLOTS; i++)
		if (taken >> i & 1)
			atomic_store(&slots[i].start, free ? SLOT_FREE : starts[i]);
}

void shared_replaced(const void *addr, size_t length)
{
	unsigned long starts[SLOTS];

	if (!atomic_load_explicit(&used, memory_order_acquire))
		return;
	slots_put(slots_take((unsigned long)addr, round_up(length, PAGE_SIZE), starts), starts,
		  true);
}

EXPORT int munmap(void *addr, size_t length)
{
	unsigned long starts[SLOTS], from = (unsigned long)addr;
	const struct slot *slot = slot_find(addr, length);
	uint64_t taken;
	long result;

	if (!atomic_load_explicit(&used, memory_order_acquire) || length > SIZE_MAX / 4)
		return finish(raw_munmap(addr, length));
	/* All of one, by the size that the program knows; or a range with some in it. */
	taken = slots_take(from, round_up(slot ? slot->mapped : length, PAGE_SIZE), starts);
	if (slot && taken >> (slot - slots) & 1)
		length = slot->mapped;
	result = raw_munmap(addr, length);
	slots_put(taken, starts, !result);
	return finish(result);
}

EXPORT int mprotect(void *addr, size_t length, int prot)
{
	const struct slot *slot = slot_find(addr, length);

	return finish(raw_mprotect(addr, slot ? slot->mapped : length, prot));
}
