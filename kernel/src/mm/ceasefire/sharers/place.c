// SPDX-License-Identifier: GPL-2.0
/*
 * Where a process with copies maps small things: those of one thread together, those of
 * different threads in different regions.
 *
 * A flush goes to the CPUs that have used a region of 2 MiB. But mmap() puts each mapping
 * next to the one before it, whoever asks, and so threads that have nothing to do with
 * each other interrupt each other. Here a thread has *granules* of 8 MiB instead, in which
 * its mappings lie from the top downwards, as Linux does it elsewhere.
 *
 * Of the thread, not of the CPU: one that migrates takes the CPU's note along (it leaves
 * a region that it does not use), but granules of CPUs would have memory of all
 * threads in the end.
 *
 * - Only a place that the kernel may choose is chosen here: no MAP_FIXED, hint, MAP_32BIT,
 *   MAP_GROWSDOWN, no compat task, and not where mappings grow upwards. What is larger
 *   than a region is where it would be without; it has regions of its own anyway, but for
 *   its ends. Code, which all threads use, stays with other code. File systems that have
 *   a get_unmapped_area() of their own come by here in the end; hugetlb does not.
 * - A stack (MAP_STACK) is mapped by another thread than that which will use it. So it
 *   gets a granule without an owner, and the thread whose stack pointer is there when it
 *   first maps something becomes the owner.
 * - Within a granule files are apart from other memory: a thread maps a file for itself, but
 *   what it allocates, others use, too.
 * - A granule that is full stays with its thread, which gets one more, up to 16;
 *   all are looked through, so that holes are used again. Then mmap() goes on as
 *   ever.
 * - A thread does not say when it ends. Whoever needs a granule looks at a few, in
 *   turn, and takes one whose owner is gone and in which nothing is left; only when
 *   the table is full one in which something is. So granules are about as many as
 *   threads at a time, and there are never more than the table has: then threads
 *   share them.
 * - A granule is nothing but room: it keeps nobody from mapping something in it,
 *   and what Linux or the program has put there is passed over. Granules begin far below
 *   other mappings, so as not to meet them in a process of usual size, and go on as far
 *   below where they do.
 * - Addresses are as hard to guess as ever: they have the low bits of mmap_base,
 *   so each of them follows from mmap_base as it did before.
 *
 * The address is one that Linux itself could have chosen, so what has to be settled
 * before it is used again is (I3): do_mmap() and mremap() claim it afterwards.
 *
 * Locks: mmap_lock held for writing guards all of it. Owners are numbers: a thread is
 * looked up under RCU. One that ends at that moment counts as either; one that has
 * got the number of another one has its granule, too.
 * Callers: arch_get_unmapped_area_topdown(), pgd_free().
 */
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/pid.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/vmstat.h>

#include "../mutate.h"
#include "sharers.h"

bool sharers_placement __read_mostly = true;

#define SHARERS_GRANULE_SIZE	SZ_8M
/* Of one thread. */
#define SHARERS_GRANULES_EACH	16
/* Whose owners are looked for by one mmap(). */
#define SHARERS_GRANULE_LOOKS	8
/* From where mmap() places mappings; half of that of the arena (../core/arena.c). */
#define SHARERS_PLACE_GAP	(32UL << 30)

struct sharers_granule {
	/* Where it begins, in regions; it is below 1 << 47. */
	u32	region;
	/* A thread, 0: nobody yet */
	pid_t	owner;
};

/* A page fits them all. */
#define SHARERS_GRANULES	((PAGE_SIZE - 3 * sizeof(long)) / \
				 sizeof(struct sharers_granule))

/* Of one process. */
struct sharers_place {
	struct mm_struct	*mm;
	/* The next granule ends here, or below. */
	unsigned long		next;
	unsigned int		nr, hand;
	struct sharers_granule	granules[SHARERS_GRANULES];
};

static_assert(sizeof(struct sharers_place) <= PAGE_SIZE);

static unsigned long granule_start(const struct sharers_granule *g)
{
	return (unsigned long)g->region << PMD_SHIFT;
}

static bool granule_is_empty(const struct sharers_granule *g)
{
	unsigned long start = granule_start(g);

	return !find_vma_intersection(current->mm, start,
				      start + SHARERS_GRANULE_SIZE);
}

/* Does a thread have it that may go on to use it? */
static bool granule_is_owned(const struct sharers_granule *g)
{
	struct task_struct *task;
	bool owned;

	CF_MUTATION(sharers_granules_stay, return g->owner);
	if (!g->owner)
		return false;
	rcu_read_lock();
	task = find_task_by_pid_ns(g->owner, &init_pid_ns);
	owned = task && READ_ONCE(task->mm) == current->mm;
	rcu_read_unlock();
	return owned;
}

/* A place in a part of the address space; 0: there is none. */
static unsigned long place_between(const struct vm_unmapped_area_info *wanted,
				   unsigned long low, unsigned long high)
{
	struct vm_unmapped_area_info info = *wanted;
	unsigned long addr;

	info.low_limit = low;
	info.high_limit = high;
	addr = vm_unmapped_area(&info);
	return IS_ERR_VALUE(addr) ? 0 : addr;
}

/*
 * A place in a granule: files in the lower half, while there is room. What is above the low
 * bits of mmap_base is used last.
 */
static unsigned long place_in(const struct sharers_granule *g,
			      const struct vm_unmapped_area_info *wanted,
			      bool file)
{
	unsigned long start = granule_start(g), end = start + SHARERS_GRANULE_SIZE;
	unsigned long half = start + SHARERS_GRANULE_SIZE / 2;
	unsigned long low = -current->mm->mmap_base & ~PMD_MASK;

	CF_MUTATION(sharers_place_aligned, low = 0);
	CF_MUTATION(sharers_halves_together, half = file ? end : start);
	return (file ? place_between(wanted, start, half - low) :
		       place_between(wanted, half, end - low)) ?:
	       place_between(wanted, start, end - low) ?:
	       place_between(wanted, start, end);
}

/*
 * Room for one more granule. The last one should be right above it; if something is
 * there instead, more of it will come.
 */
static unsigned long granule_find(struct sharers_place *p)
{
	struct vm_unmapped_area_info info = {
		.flags = VM_UNMAPPED_AREA_TOPDOWN,
		.length = SHARERS_GRANULE_SIZE,
		.align_mask = PMD_SIZE - 1,
	};
	unsigned long at = place_between(&info, SZ_4G, p->next);

	if (at && at + SHARERS_GRANULE_SIZE != ALIGN_DOWN(p->next, PMD_SIZE) &&
	    at > SZ_4G + SHARERS_PLACE_GAP)
		at = place_between(&info, SZ_4G, at - SHARERS_PLACE_GAP) ?: at;
	return at;
}

static struct sharers_granule *granule_add(struct sharers_place *p)
{
	unsigned long at = granule_find(p);
	struct sharers_granule *g;

	if (!at)
		return NULL;
	count_vm_event(SHARERS_GRANULE);
	p->next = at;
	g = &p->granules[p->nr++];
	g->region = at >> PMD_SHIFT;
	return g;
}

/* One that nobody uses, or a new one, for @owner. */
static struct sharers_granule *granule_take(struct sharers_place *p,
					    pid_t owner)
{
	bool full = p->nr == SHARERS_GRANULES;
	struct sharers_granule *g = NULL;
	unsigned int i;

	for (i = 0; i < min(p->nr, SHARERS_GRANULE_LOOKS); i++) {
		g = &p->granules[p->hand++ % p->nr];
		if (!granule_is_owned(g) && (full || granule_is_empty(g)))
			break;
		g = NULL;
	}
	if (!g && !full)
		g = granule_add(p);
	if (g)
		g->owner = owner;
	return g;
}

/* The one with the stack of the current thread, which is its own now. */
static struct sharers_granule *granule_adopt(struct sharers_place *p,
					     pid_t owner)
{
	unsigned long sp = current_user_stack_pointer();
	struct sharers_granule *g;

	for (g = p->granules; g < p->granules + p->nr; g++)
		if (sp - granule_start(g) < SHARERS_GRANULE_SIZE &&
		    !granule_is_owned(g)) {
			g->owner = owner;
			return g;
		}
	return NULL;
}

/* What the current thread will use. */
static unsigned long place_own(struct sharers_place *p,
			       const struct vm_unmapped_area_info *wanted,
			       bool file)
{
	unsigned int i = p->nr, own = 0;
	struct sharers_granule *g = NULL;
	pid_t tid = task_pid_nr(current);
	unsigned long addr;

	while (i--) {
		if (p->granules[i].owner != tid)
			continue;
		addr = place_in(&p->granules[i], wanted, file);
		if (addr)
			return addr;
		own++;
	}
	if (!own)
		g = granule_adopt(p, tid);
	if (!g && own < SHARERS_GRANULES_EACH)
		g = granule_take(p, tid);
	/* More threads than granules: some share one. */
	if (!g && !own && p->nr)
		g = &p->granules[tid % p->nr];
	return g ? place_in(g, wanted, file) : 0;
}

/* A stack, for a thread that is not there yet. */
static unsigned long place_stack(struct sharers_place *p,
				 const struct vm_unmapped_area_info *wanted)
{
	struct sharers_granule *g;

	CF_MUTATION(sharers_stacks_together, return place_own(p, wanted, false));
	g = granule_take(p, 0);
	if (!g && p->nr)
		g = &p->granules[p->hand++ % p->nr];
	return g ? place_in(g, wanted, false) : 0;
}

/* May the kernel choose any place, and is it worth it? */
static bool place_is_free(const struct vm_unmapped_area_info *wanted,
			  unsigned long hint, unsigned long flags,
			  vm_flags_t vm_flags)
{
	/* A compat task, or a hint above 47 bits, has another limit. */
	return !hint && wanted->high_limit == current->mm->mmap_base &&
	       wanted->length < PMD_SIZE && !(vm_flags & VM_EXEC) &&
	       !(flags & (MAP_GROWSDOWN | MAP_DENYWRITE));
}

/*
 * Does the process have copies, or is it about to? The stack of the second thread, with
 * room for a guard, comes before those; posix_spawn() makes one without.
 */
static bool place_is_worth_it(struct mm_struct *mm, unsigned long flags,
			      vm_flags_t vm_flags)
{
	/* Not if only what is executed next shall have them. */
	if (READ_ONCE(mm->context.sharers_wanted) != SHARERS_WANTED)
		return false;
	CF_MUTATION(sharers_place_single, return true);
	if (READ_ONCE(mm->context.sharers))
		return sharers_have(mm);
	return flags & MAP_STACK && !(vm_flags & VM_ACCESS_FLAGS) &&
	       atomic_read(&mm->mm_users) == 1 && sharers_may_have(mm);
}

/* mremap() says no more of private memory than that. */
static bool place_is_of_file(unsigned long flags)
{
	return flags & MAP_TYPE && !(flags & MAP_ANONYMOUS);
}

static struct sharers_place *place_begin(struct mm_struct *mm)
{
	struct sharers_place *p;

	if (mm->mmap_base < SHARERS_PLACE_GAP + SZ_4G)
		return NULL;
	p = kzalloc(sizeof(*p), GFP_KERNEL_ACCOUNT);
	if (!p)
		return NULL;
	p->mm = mm;
	p->next = mm->mmap_base - SHARERS_PLACE_GAP;
	mm->context.place = p;
	return p;
}

/**
 * __sharers_place() - mmap() looks for a place, from the top downwards
 * @wanted: what it is to be like
 * @hint: where the program would like it to be
 * @flags: MAP_*
 * @vm_flags: flags of the mapping, where they are known
 *
 * Context: mmap_lock of the current process, which wants copies, held for writing.
 * Return: an address, or 0 for that which it would be without copies.
 */
unsigned long __sharers_place(const struct vm_unmapped_area_info *wanted,
			      unsigned long hint, unsigned long flags,
			      vm_flags_t vm_flags)
{
	struct mm_struct *mm = current->mm;
	struct sharers_place *p;
	unsigned long addr;

	CF_MUTATION(sharers_not_placed, return 0);
	if (!READ_ONCE(sharers_placement) ||
	    !place_is_free(wanted, hint, flags, vm_flags) ||
	    !place_is_worth_it(mm, flags, vm_flags))
		return 0;
	mmap_assert_write_locked(mm);
	p = mm->context.place ?: place_begin(mm);
	if (!p)
		return 0;
	addr = flags & MAP_STACK ? place_stack(p, wanted) :
	       place_own(p, wanted, place_is_of_file(flags));
	if (addr)
		count_vm_event(SHARERS_PLACE);
	return addr;
}

/* Are they its own, and not those of its parent? */
static bool sharers_place_is_of(struct sharers_place *place, struct mm_struct *mm)
{
	CF_MUTATION(sharers_place_any, return true);
	return place->mm == mm;
}

/**
 * __sharers_place_exit() - a process is gone
 * @mm: the process, which has granules
 *
 * Also an address space that a fork() could not finish: it is a copy of its parent's
 * until the end of mm_init(), and so is the pointer.
 *
 * Context: any.
 */
void __sharers_place_exit(struct mm_struct *mm)
{
	if (sharers_place_is_of(mm->context.place, mm))
		kfree(mm->context.place);
	mm->context.place = NULL;
}
