/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * morsel.h - libmorsel, shared memory that has page tables of its own
 *
 * What: a morsel is made, mapped, filled with memory and emptied by a call each; what
 *       went wrong has a message that says what to do. MFD_MORSEL(2const) has what the
 *       kernel promises.
 * Who:  programs that link with -lmorsel (pkg-config morsel).
 *
 * All functions may be called by several threads at a time. Those that return int return
 * 0 or a descriptor, or -1 with errno set; morsel_strerror() has words for it.
 */
#ifndef MORSEL_H
#define MORSEL_H

#include <linux/morsel.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What was asked, for morsel_strerror(). */
enum morsel_call {
	MORSEL_CALL_CREATE,
	MORSEL_CALL_MAP,
	MORSEL_CALL_UNMAP,
	MORSEL_CALL_POPULATE,
	MORSEL_CALL_DEPOPULATE,
	MORSEL_CALL_STAT,
	MORSEL_CALL_DESTROY,
	MORSEL_CALL_OPEN,
	MORSEL_CALL_COPY,
};

/* How a morsel is laid out; all 0 is what fits most. */
struct morsel_layout {
	/* In bytes, a power of two: 2 MiB, 1 GiB, 512 GiB or 256 TiB; 0: the smallest that suffices. */
	uint64_t unit;
	/* Where it is mapped if nothing is there, a multiple of the unit; 0: anywhere. */
	uint64_t address;
	/* Memory may be taken away without a flush, see morsel_depopulate_lazy(). */
	bool lazy;
	/* Size of its pages in bytes: 4 KiB, or 2 MiB or 1 GiB in larger units; 0: 4 KiB. */
	uint64_t page;
};

/* Where a morsel is mapped. */
struct morsel_mapping {
	void *at;
	/* In bytes: the size of the morsel, rounded up to whole units. */
	size_t length;
};

/**
 * morsel_supported() - does the running kernel have morsels?
 *
 * Return: true or false; errno stays as it was.
 */
bool morsel_supported(void);

/**
 * morsel_create() - make a morsel
 * @name: for people who look into /proc; not unique, at most 249 bytes
 * @size: in bytes
 * @layout: of its units, or NULL
 *
 * It is empty: each page is there when it is first used, or by morsel_populate(). It goes
 * with its last descriptor and mapping.
 *
 * Return: a descriptor that is closed by exec, or -1. ENOSYS: the kernel has no morsels;
 * EPERM: the administrator does not allow them; EFBIG: the size has more than 511 units;
 * EINVAL: there is no such unit or page, or the name is too long; EOPNOTSUPP: not here (Xen PV, or
 * a processor without such pages), or large pages that are to be lazy.
 */
int morsel_create(const char *name, uint64_t size,
		  const struct morsel_layout *layout);

/**
 * morsel_create_at() - make a morsel that has a name
 * @path: where it is to be, in a file system of morsels, see morsel(5)
 * @mode: who may use it, as of open(2)
 * @size: as morsel_create()
 * @layout: as morsel_create()
 *
 * It stays until the name is removed by unlink(2) and nobody uses it. If this fails there
 * is no such name.
 *
 * Return: as morsel_create(). EEXIST: there is something; EINVAL: there is no such unit, or
 * that file system has other files; and what open(2) says. Words: MORSEL_CALL_OPEN.
 */
int morsel_create_at(const char *path, mode_t mode, uint64_t size,
		     const struct morsel_layout *layout);

/**
 * morsel_open() - find a morsel by its name
 * @path: as of morsel_create_at()
 * @flags: O_RDWR, or O_RDONLY for one that cannot be changed; and O_NOFOLLOW
 *
 * Return: a descriptor that is closed by exec, or -1. EINVAL: it is no morsel, or other
 * flags; and what open(2) says.
 */
int morsel_open(const char *path, int flags);

/**
 * morsel_copy() - make a copy of a morsel as it is now
 * @fd: the morsel; a descriptor that reads is enough
 * @name: of the copy, as morsel_create()
 *
 * Both share their memory until one of them is written to, page by page, by whomever. So it takes
 * next to no time and memory, and what threads write meanwhile is in the copy or not: never a later
 * write without an earlier one. Memory that is shared is counted and paid for by who has made it.
 *
 * Return: a descriptor that is closed by exec, or -1. EINVAL: it has no size, or the name is too
 * long; EOPNOTSUPP: its layout is lazy, or has large pages; EXDEV: it has a name, see morsel_copy_at(), or is no
 * morsel; ENODEV: it was destroyed; ENOMEM: there is no memory, or a limit is reached.
 */
int morsel_copy(int fd, const char *name);

/**
 * morsel_copy_at() - the same, and the copy has a name
 * @fd: a morsel of the same file system
 * @path: as morsel_create_at()
 * @mode: as morsel_create_at()
 *
 * If this fails there is no such name.
 *
 * Return: as morsel_copy() and morsel_create_at(). EXDEV: it is in another file system, or has no
 * name. Words: MORSEL_CALL_COPY.
 */
int morsel_copy_at(int fd, const char *path, mode_t mode);

/**
 * morsel_map() - map a whole morsel
 * @fd: the morsel
 * @prot: PROT_READ, PROT_WRITE or both, as of mmap(2)
 * @mapping: where it is then
 *
 * An access behind the size of the morsel raises SIGBUS.
 *
 * Return: 0, or -1. EINVAL: it has no size, or is no morsel; EACCES: the descriptor does
 * not allow that; EPERM: it cannot be executed; ENOMEM: no address is free.
 */
int morsel_map(int fd, int prot, struct morsel_mapping *mapping);

/**
 * morsel_unmap() - take a mapping away
 * @mapping: as morsel_map() has filled it
 *
 * Return: 0, or -1. EINVAL: it is no whole mapping.
 */
int morsel_unmap(const struct morsel_mapping *mapping);

/**
 * morsel_populate() - make memory where there is none
 * @fd: the morsel, by a descriptor that writes
 * @ranges: of offset and length, in bytes
 * @nr: how many, any number
 * @done: NULL, or where it is told how many ranges are done; all of them with 0
 *
 * Signals do not end it.
 *
 * Return: 0, or -1. ENOMEM: there is no memory, or a limit is reached; EINVAL: a range is
 * behind the end; EPERM: the descriptor only reads.
 */
int morsel_populate(int fd, const struct morsel_range *ranges, size_t nr,
		    size_t *done);

/**
 * morsel_depopulate() - take memory away from all who have it mapped
 * @fd: the morsel, by a descriptor that writes
 * @ranges: of offset and length, in bytes; what remains of a page is kept
 * @nr: how many, any number
 * @done: NULL, or where it is told how many ranges are done
 *
 * There are zeroes when it returns. Each CPU that uses the morsel is interrupted once at
 * most for each MORSEL_RANGES_MAX ranges.
 *
 * Return: 0, or -1 as morsel_populate().
 */
int morsel_depopulate(int fd, const struct morsel_range *ranges, size_t nr,
		      size_t *done);

/**
 * morsel_depopulate_async() - the same, and the memory is given back later
 * @fd: as morsel_depopulate()
 * @ranges: as morsel_depopulate()
 * @nr: as morsel_depopulate()
 * @done: as morsel_depopulate()
 *
 * There are zeroes when it returns. The kernel frees the memory meanwhile, on other CPUs; all of
 * it is free when fsync(2) of the descriptor returns. Where much of it waits already it
 * is free when this returns.
 *
 * Return: as morsel_depopulate().
 */
int morsel_depopulate_async(int fd, const struct morsel_range *ranges,
			    size_t nr, size_t *done);

/**
 * morsel_depopulate_lazy() - take memory away, and interrupt no CPU
 * @fd: as morsel_depopulate(), of a morsel whose layout is lazy
 * @ranges: as morsel_depopulate()
 * @nr: as morsel_depopulate()
 * @done: as morsel_depopulate()
 *
 * For buffer managers, which know what is where. What whole pages of the ranges contain is
 * undefined until they are populated again, by morsel_populate(), write(2), or an access that
 * finds no page: then it is zeroes. A write to them before that may hit any other place of the
 * morsel. Pages that were taken away are used elsewhere in the morsel, and are free after a
 * second or two.
 *
 * Return: as morsel_depopulate(). EINVAL is also: the morsel does not allow it.
 */
int morsel_depopulate_lazy(int fd, const struct morsel_range *ranges,
			   size_t nr, size_t *done);

/**
 * morsel_destroy() - take all memory of a morsel away for good
 * @fd: the morsel, by a descriptor that writes
 * @flags: 0, or MORSEL_FORCE: also if somebody has it mapped
 *
 * Each access to a mapping of it raises SIGBUS then, and calls fail with ENODEV.
 *
 * Return: 0, or -1. EBUSY: it is mapped; ENODEV: that was done before; EPERM: the
 * descriptor only reads; EINVAL: there is no such flag, or it is no morsel.
 */
int morsel_destroy(int fd, unsigned int flags);

/**
 * morsel_stat() - what a morsel has now
 * @fd: the morsel
 * @stat: filled
 *
 * Return: 0, or -1. EINVAL: it is no morsel.
 */
int morsel_stat(int fd, struct morsel_stat *stat);

/**
 * morsel_strerror() - what went wrong, and what to do
 * @call: what was asked
 * @err: errno after it
 *
 * Return: a line without its end, in English, that is never freed. For errors that the
 * call is not known to have it is that of strerror(3), which another call may overwrite.
 */
const char *morsel_strerror(enum morsel_call call, int err);

#ifdef __cplusplus
}
#endif

#endif /* MORSEL_H */
