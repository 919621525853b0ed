/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * ceasefire: user visible constants.
 */
#ifndef _UAPI_LINUX_CEASEFIRE_H
#define _UAPI_LINUX_CEASEFIRE_H

/*
 * mmap(2) flag for mappings of files and for private anonymous memory:
 * munmap() of the mapping may leave stale translations behind in the TLBs of
 * other CPUs instead of interrupting them.
 * The frames stay inside the process until those translations are gone, so
 * only a program that touches memory it has unmapped can notice.
 *
 * A hint: honoured with MAP_PRIVATE, MAP_SHARED and MAP_SHARED_VALIDATE.
 * Kernels without it ignore the flag, except with MAP_SHARED_VALIDATE, which
 * fails with EOPNOTSUPP there; so a program can probe.
 */
#define MAP_FPR		0x800000

/*
 * prctl(PR_FPR, operation, arg3, 0, 0): fast page recycling of a process.
 *
 * PR_FPR_SET_AUTO, bytes: each mmap() of a file works as with MAP_FPR if the
 * mapping is not larger than that; 0 for none, ~0UL for all. Mappings that exist
 * stay as they are. Inherited over fork() and execve(); a program that gains
 * privileges by execve() starts with 0. What the dynamic linker maps
 * (MAP_DENYWRITE) is left out, it stays anyway.
 * It belongs to the address space: between vfork() and execve() it is set for
 * the parent, too.
 *
 * PR_FPR_GET_AUTO, pointer: stores the number of bytes as __u64.
 *
 * PR_FPR_SET_CONTEXT, which: who may use again the frames that a process has
 * unmapped, and may then see through stale translations what others have there:
 *   PR_FPR_CONTEXT_PROCESS	the process, the default
 *   PR_FPR_CONTEXT_MAPPING	only the mapping; munmap() flushes, eviction not
 *   PR_FPR_CONTEXT_CHILDREN	the process and those that it forks from now on
 * Inherited over fork() and execve(); left when credentials change. Leaving
 * flushes all members. Anonymous memory always stays with its process.
 *
 * PR_FPR_GET_CONTEXT, pointer: stores which as unsigned int.
 *
 * Returns 0, or -1 with errno EINVAL: unknown operation or context, unused
 * arguments that are not 0, another context of a lazy process (PR_LATR), or a
 * kernel without FPR; EFAULT: bad pointer;
 * ENOMEM; EINTR: a fatal signal came.
 */
#define PR_FPR			0x465052
#define PR_FPR_SET_AUTO		1
#define PR_FPR_GET_AUTO		2
#define PR_FPR_SET_CONTEXT	3
#define PR_FPR_GET_CONTEXT	4

#define PR_FPR_CONTEXT_PROCESS	0
#define PR_FPR_CONTEXT_MAPPING	1
#define PR_FPR_CONTEXT_CHILDREN	2
/* 3 is reserved: it was for all processes of a user, which do not trust each other. */

/*
 * prctl(PR_LATR, operation, arg3, 0, 0): lazy translation coherence of a process.
 *
 * PR_LATR_SET, on (0 or 1): munmap() and whatever else ends a mapping whose
 * address the kernel has chosen does not interrupt other CPUs; they catch up at
 * their next ticks (/sys/kernel/mm/ceasefire/latr/). Until then they may still
 * use what was unmapped, as it was; only a program that does so can notice.
 * munmap() is no memory barrier for other threads any more.
 * Of the address space: also of the parent between vfork() and execve(). Inherited
 * over fork() and execve(); a program that gains privileges by execve() starts
 * without. Nothing is left when the call returns that switches it off.
 *
 * PR_LATR_GET, pointer: stores it as unsigned int.
 *
 * Returns 0, or -1 with errno EINVAL: unknown operation or value, unused
 * arguments that are not 0, a context of several processes or of mappings
 * (PR_FPR_SET_CONTEXT, which fails for lazy processes in turn), or a kernel without
 * LATR; EPERM: latr/enabled is "never"; EFAULT: bad pointer; EINTR: a fatal signal
 * came.
 */
#define PR_LATR			0x4c415452
#define PR_LATR_SET		1
#define PR_LATR_GET		2

/*
 * prctl(PR_SHARERS, operation, arg3, 0, 0): CPUs note what they use of a process.
 *
 * PR_SHARERS_SET, on (0 or 1): from its second thread on, each CPU that runs the
 * process has upper page tables of its own, and a TLB flush, whatever it is for,
 * interrupts only CPUs that have used its range. Nothing else changes, but for
 * a short fault when a CPU uses a region of 2 MiB for the first time. Processes that
 * are real-time ones by then, or have locked memory (mlockall()), are left as they are.
 * Of the address space: also of the parent between vfork() and execve(). Inherited
 * over fork() and execve(); a program that gains privileges by execve() starts
 * without.
 *
 * PR_SHARERS_GET, pointer: stores it as unsigned int.
 *
 * Returns 0, or -1 with errno EBUSY: the process has several threads already, or has
 * switched it off when it had, so it begins with what it forks or executes next;
 * EINVAL: unknown operation or value, unused arguments that are not 0, or a kernel
 * without sharers; EPERM: sharers/enabled is "never"; EFAULT: bad pointer.
 */
#define PR_SHARERS		0x53485253
#define PR_SHARERS_SET		1
#define PR_SHARERS_GET		2

/*
 * prctl(PR_ABIS, operation, arg3, 0, 0): flushes only for entries that a CPU can have.
 *
 * PR_ABIS_SET, on (0 or 1): where the accessed bit of a page table entry says that
 * no CPU has it in its TLB, it is changed without a flush, whatever changes it:
 * munmap(), madvise(), mprotect(), copy on write, msync(), migration, reclaim.
 * No stale translation is left. munmap() and madvise() of memory that no
 * thread has used are no memory barrier for other threads any more; mprotect() of
 * locked memory stays one, unless the process has sharers, too (PR_SHARERS); but
 * membarrier(2) is what programs should use.
 * Of the address space: also of the parent between vfork() and execve(). Inherited
 * over fork() and execve(); a program that gains privileges by execve() starts
 * without.
 *
 * PR_ABIS_GET, pointer: stores it as unsigned int.
 *
 * Returns 0, or -1 with errno EINVAL: unknown operation or value, unused
 * arguments that are not 0, or a kernel without ABIS; EPERM: abis/enabled is
 * "never"; EFAULT: bad pointer; ENOMEM; EINTR: a fatal signal came.
 */
#define PR_ABIS			0x41424953
#define PR_ABIS_SET		1
#define PR_ABIS_GET		2

#endif /* _UAPI_LINUX_CEASEFIRE_H */
