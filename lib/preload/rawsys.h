/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rawsys.h - system calls that leave no trace in the program
 *
 * What: the few calls the preload library makes, straight to the kernel.
 * Who:  config.c, output.c, sandbox.c and mmap.c of this folder.
 *
 * The C library's wrappers set errno, may be cancellation points (open, write)
 * and may be interposed by someone else. Inside somebody's mmap() none of that
 * may happen. These return the kernel's value: a negative errno on failure.
 */
#ifndef CEASEFIRE_RAWSYS_H
#define CEASEFIRE_RAWSYS_H

#ifndef __x86_64__
#error "MAP_FPR exists on x86-64 only, and so does this library"
#endif

#include <stddef.h>
#include <sys/syscall.h>

/* The kernel returns errors as the last 4095 values of the address space. */
#define RAW_IS_ERROR(value) ((unsigned long)(value) > -4096UL)

static inline long raw6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8),
			   "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

static inline long raw4(long nr, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return ret;
}

static inline long raw_mmap(void *addr, size_t len, int prot, int flags, int fd,
			    long offset)
{
	return raw6(SYS_mmap, (long)addr, (long)len, prot, flags, fd, offset);
}

static inline long raw_munmap(void *addr, size_t len)
{
	return raw4(SYS_munmap, (long)addr, (long)len, 0, 0);
}

static inline long raw_mprotect(void *addr, size_t len, int prot)
{
	return raw4(SYS_mprotect, (long)addr, (long)len, prot, 0);
}

static inline long raw_madvise(void *addr, size_t len, int advice)
{
	return raw4(SYS_madvise, (long)addr, (long)len, advice, 0);
}

static inline long raw_readlink(const char *path, char *buf, size_t size)
{
	return raw4(SYS_readlink, (long)path, (long)buf, (long)size, 0);
}

static inline long raw_access(const char *path, int mode)
{
	return raw4(SYS_access, (long)path, mode, 0, 0);
}

static inline long raw_write(int fd, const void *buf, size_t size)
{
	return raw4(SYS_write, fd, (long)buf, (long)size, 0);
}

static inline long raw_openat(int folder, const char *path, int flags)
{
	return raw4(SYS_openat, folder, (long)path, flags, 0);
}

static inline long raw_read(int fd, void *buf, size_t size)
{
	return raw4(SYS_read, fd, (long)buf, (long)size, 0);
}

static inline long raw_close(int fd)
{
	return raw4(SYS_close, fd, 0, 0, 0);
}

static inline long raw_getpid(void)
{
	return raw4(SYS_getpid, 0, 0, 0, 0);
}

#endif /* CEASEFIRE_RAWSYS_H */
