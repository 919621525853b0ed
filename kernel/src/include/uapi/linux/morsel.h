/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Morsels: memory objects with page tables of their own, which every process that maps
 * one links into its own tables. A morsel is a file: memfd_create(name, MFD_MORSEL),
 * ftruncate(), mmap(), fallocate(), madvise(), read() and write(). What files have no
 * call for is here.
 */
#ifndef _UAPI_LINUX_MORSEL_H
#define _UAPI_LINUX_MORSEL_H

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * Of memfd_create(), beside MFD_CLOEXEC, and MFD_HUGE_2MB or MFD_HUGE_1GB for pages of that size;
 * kernels without morsels say EINVAL.
 */
#define MFD_MORSEL		0x800000U

/*
 * How a morsel is laid out; once, before it has a size. Without it ftruncate() takes the
 * smallest unit of which 511 suffice.
 */
struct morsel_geometry {
	/* 2 MiB, 1 GiB, 512 GiB, or 256 TiB: what is linked, and mapped, as a whole. */
	__u64 unit;
	/* Size of pages, less than a unit: 4096, 2 MiB, 1 GiB; 0: as memfd_create() was told. */
	__u32 base;
	/* MORSEL_ALLOW_LAZY, or 0. */
	__u32 flags;
	/* Where mmap() maps it if nothing is said and nothing is there; 0: anywhere. */
	__u64 address;
};

/* Of MORSEL_IOC_GEOMETRY: depopulation may use MORSEL_LAZY. */
#define MORSEL_ALLOW_LAZY	0x1U

/* In bytes. */
struct morsel_range {
	__u64 offset;
	__u64 length;
};

/* Most ranges of one call. */
#define MORSEL_RANGES_MAX	1024

struct morsel_vec {
	/* Address of @nr struct morsel_range. */
	__u64 ranges;
	__u32 nr;
	/* MORSEL_ASYNC, MORSEL_LAZY, or 0. */
	__u32 flags;
	/* Out: so many ranges are done. */
	__u64 done;
};

struct morsel_stat {
	__u64 unit;
	/* Of memory that it has now: pages, as if each had 4 KiB, and page tables. */
	__u64 pages;
	__u64 tables;
	/* Mappings of all processes. */
	__u64 mappings;
	/* Ever: entries that were cut, and flushes of a process for that. */
	__u64 cuts;
	__u64 flushes;
	/* What was taken away by MORSEL_ASYNC and is not free yet, as if each table was full. */
	__u64 waiting;
	/* What was given up by MORSEL_LAZY and is still part of @pages. */
	__u64 pool;
	/* Size of pages. */
	__u64 base;
};

/*
 * Of MORSEL_IOC_DEPOPULATE: there are zeroes when it returns, as ever, but the memory may be
 * free later; at the latest when fsync() returns, or for a call that needs it for this morsel.
 */
#define MORSEL_ASYNC		0x2U

/*
 * Of MORSEL_IOC_DEPOPULATE, for morsels that allow it: no CPU is interrupted. What whole pages of
 * the ranges contain is undefined until they are populated again, by a call or by an access
 * that finds no page: then it is zeroes. Who writes to them before may write to any other
 * place of the morsel. Where one who maps it cannot be waited for, as a child that has
 * inherited the mapping, it is as without the flag.
 */
#define MORSEL_LAZY		0x4U

/* Of MORSEL_IOC_DESTROY: also if it is mapped. */
#define MORSEL_FORCE		0x1U

#define MORSEL_IOC_GEOMETRY	_IOW(0xCF, 1, struct morsel_geometry)
#define MORSEL_IOC_STAT		_IOR(0xCF, 2, struct morsel_stat)
/* Makes memory for ranges that have none: ENOMEM, EINTR say in @done how far it came. */
#define MORSEL_IOC_POPULATE	_IOWR(0xCF, 3, struct morsel_vec)
/* Takes it away again, byte by byte: what remains of a page is kept. */
#define MORSEL_IOC_DEPOPULATE	_IOWR(0xCF, 4, struct morsel_vec)
/*
 * Takes away all of it for good; the argument points to flags. EBUSY while it is mapped, or
 * with MORSEL_FORCE each access to a mapping gets SIGBUS. Calls then fail with ENODEV.
 */
#define MORSEL_IOC_DESTROY	_IOW(0xCF, 5, __u32)

#endif /* _UAPI_LINUX_MORSEL_H */
