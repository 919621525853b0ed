/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The test guest: what its tests share
 *
 * One CPU is enough: TLB entries, tags and everything that is compared belong
 * to a vCPU, and other vCPUs come in only by messages that end up as the same
 * instructions here. The kernel's tests run on several.
 *
 * Staleness shows in values: a page that is mapped to one frame is read,
 * remapped to another without a flush, and read again. Frames hold their own
 * address.
 */
#ifndef EMULATOR_TESTS_GUEST_H
#define EMULATOR_TESTS_GUEST_H

#include "tlb-check-guest.h"

typedef unsigned long u64;
typedef unsigned int u32;

#define P   1ul
#define RW  2ul
#define US  4ul
#define A   0x20ul
#define D   0x40ul
#define PS  0x80ul
#define G   0x100ul
#define KEEP (1ul << 63)

#define CR4_PGE   (1ul << 7)
#define CR4_PCIDE (1ul << 17)
#define CR4_SMAP  (1ul << 21)

#define PAGE 4096ul
#define LARGE 0x200000ul
/* Where tests map: the user half, and the kernel half for global pages. */
#define UVA 0x0000400000000000ul
#define KVA 0xffff900000020000ul
#define USER_CODE 0x0000500000000000ul
#define USER_STACK 0x0000500000100000ul

enum { UD = 6, GP = 13, PF = 14 };

struct test {
	const char *name;
	void (*run)(void);
	const char *group;
};

struct user_call {
	void *entry;
	u64 stack;
	u64 arg[4];
};

extern const struct test tests_pcid[], tests_check[], tests_control[];
extern const struct test tests_flushes[], tests_upper[], tests_ahead[];
extern const struct test tests_modes[];
extern char boot_pml4[];
extern u32 gp_outside_long_mode;
extern u64 fault_address;

/* Fail the running test unless it holds. */
void expect_(int holds, const char *text, int line, u64 is);
#define expect(condition) \
	expect_(!!(condition), #condition, __LINE__, 0)
#define expect_eq(is, want) do { \
	u64 is_ = (is); \
	expect_(is_ == (u64)(want), #is " == " #want, __LINE__, is_); \
} while (0)

int catch_call(void (*fn)(void *arg), void *arg);
u64 run_user(struct user_call *call);
void fault_uncaught(int vector);

u64 new_frame(void);			/* zeroed */
u64 new_page(void);			/* holds its own address */
u64 new_pages(unsigned int order);	/* aligned; each holds its address */
u64 new_root(void);			/* maps what the boot root maps */
u64 new_root_pair(void);		/* two roots, the second at bit 12 */
void map(u64 root, u64 va, u64 pa, u64 flags);
void map_large(u64 root, u64 va, u64 pa, u64 flags);
u64 *entry_of(u64 root, u64 va, int level);	/* level 1: of a page */
void map_user_code(u64 root);

static inline u64 *pte_of(u64 root, u64 va)
{
	return entry_of(root, va, 1);
}

static inline u64 read8(u64 va)
{
	return *(volatile u64 *)va;
}

static inline void write8(u64 va, u64 value)
{
	*(volatile u64 *)va = value;
}

static inline u64 get_cr3(void)
{
	u64 v;

	asm volatile("mov %%cr3, %0" : "=r" (v));
	return v;
}

static inline void set_cr3(u64 v)
{
	asm volatile("mov %0, %%cr3" : : "r" (v) : "memory");
}

static inline u64 get_cr4(void)
{
	u64 v;

	asm volatile("mov %%cr4, %0" : "=r" (v));
	return v;
}

static inline void set_cr4(u64 v)
{
	asm volatile("mov %0, %%cr4" : : "r" (v) : "memory");
}

static inline void invlpg(u64 va)
{
	asm volatile("invlpg (%0)" : : "r" (va) : "memory");
}

static inline void invpcid(u64 type, u64 pcid, u64 va)
{
	u64 desc[2] = { pcid, va };

	asm volatile("invpcid %0, %1" : : "m" (desc), "r" (type) : "memory");
}

static inline u64 rdtsc(void)
{
	u32 low, high;

	asm volatile("rdtsc" : "=a" (low), "=d" (high));
	return (u64)high << 32 | low;
}

/* A remap without a flush: from now on an entry from before is stale. */
static inline void remap(u64 root, u64 va, u64 pa)
{
	u64 *pte = pte_of(root, va);

	*(volatile u64 *)pte = pa | (*pte & 0xfff);
}

#endif /* EMULATOR_TESTS_GUEST_H */
