// SPDX-License-Identifier: GPL-2.0
/*
 * Processes that get copies, and lose them.
 *
 * A process gets copies when its second thread is made, if it is one of those that
 * want them; one with a single thread interrupts nobody, and pays nothing. All CPUs
 * count as unconfined then, and each one is confined when it switches to the
 * process, or at its tick. So it does not matter who runs the process meanwhile:
 * kthread_use_mm(), a CPU in lazy mode, another thread.
 *
 * What a withdrawal has to know is in sharers_withdraw(): either it sees that there
 * are copies, or the first fill sees the entry that it has cleared.
 *
 * Slots are made in advance, as many as there are threads, since a CPU that switches
 * to a process cannot allocate. Where threads have been on more CPUs, ticks ask for
 * one more.
 *
 * Without copies are: processes whose memory is locked and real-time ones, which
 * want no new faults; and all of them where flushes are a matter of the hypervisor
 * and go by the root.
 *
 * Locks: sharers_list_lock. Callers: copy_mm(), pgd_free(), ticks, switches.
 */
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/mmu_context.h>
#include <linux/sched/mm.h>
#include <linux/sched/rt.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include <asm/hypervisor.h>
#include <asm/tlbflush.h>

#include "../../../../mm/ceasefire/mutate.h"
#include "../../../../mm/ceasefire/sharers/sharers.h"
#include "sharers.h"

bool sharers_used;

/* All processes that have copies. */
static LIST_HEAD(sharers_list);
static DEFINE_SPINLOCK(sharers_list_lock);

/* Can this machine have copies? */
static bool sharers_possible(void)
{
	return !cpu_feature_enabled(X86_FEATURE_XENPV) &&
	       !hypervisor_is_type(X86_HYPER_MS_HYPERV);
}

/* How many CPUs of a process can have a copy; debug builds may want fewer. */
static unsigned int sharers_slots_max(void)
{
#ifdef CONFIG_CEASEFIRE_DEBUG
	return min_t(unsigned int, READ_ONCE(sharers_slots), SHARERS_SLOTS);
#else
	return SHARERS_SLOTS;
#endif
}

/* One more slot; true if there is one. */
static bool sharers_add(struct sharers *s)
{
	struct sharers_cpu *sc = sharers_cpu_alloc(s->mm);
	bool added = false;

	if (!sc)
		return false;
	spin_lock(&pgd_lock);
	sharers_ldt_root(s, sc);
	raw_spin_lock_irq(&s->lock);
	if (s->nr < sharers_slots_max()) {
		sc->slot = s->nr;
		s->slots[s->nr++] = sc;
		added = true;
	}
	raw_spin_unlock_irq(&s->lock);
	spin_unlock(&pgd_lock);
	if (!added)
		sharers_cpu_free(s->mm, sc);
	return added;
}

/* It is the process that pays, not this thread of the kernel. */
static void sharers_add_charged(struct sharers *s)
{
	struct mem_cgroup *memcg = get_mem_cgroup_from_mm(s->mm);
	struct mem_cgroup *old = set_active_memcg(memcg);

	sharers_add(s);
	set_active_memcg(old);
	mem_cgroup_put(memcg);
}

static void sharers_add_one(struct work_struct *work)
{
	struct sharers *s = container_of(work, struct sharers, more);
	struct mm_struct *mm = s->mm;

	if (READ_ONCE(s->nr) == READ_ONCE(s->taken))
		sharers_add_charged(s);
	/* May be the last one: the process is gone, and so is @s. */
	mmdrop(mm);
}

/**
 * sharers_want_more() - a CPU runs a process, and there is no slot for it
 * @s: of the process
 *
 * Context: hard interrupt; the process is loaded.
 */
void sharers_want_more(struct sharers *s)
{
	if (READ_ONCE(s->nr) >= sharers_slots_max() || work_pending(&s->more))
		return;
	mmgrab(s->mm);
	if (!schedule_work(&s->more))
		mmdrop(s->mm);
}

static struct sharers *sharers_alloc(struct mm_struct *mm)
{
	struct sharers *s = kzalloc(struct_size(s, cpu, nr_cpu_ids),
				    GFP_KERNEL_ACCOUNT);

	if (!s)
		return NULL;
	if (!zalloc_cpumask_var(&s->unconfined, GFP_KERNEL_ACCOUNT)) {
		kfree(s);
		return NULL;
	}
	s->mm = mm;
	s->stopped = true;
	xa_init_flags(&s->gibs, XA_FLAGS_LOCK_IRQ);
	raw_spin_lock_init(&s->lock);
	INIT_WORK(&s->more, sharers_add_one);
	return s;
}

static void sharers_free(struct sharers *s)
{
	while (s->nr)
		sharers_cpu_free(s->mm, s->slots[--s->nr]);
	sharers_gibs_free(s);
	free_cpumask_var(s->unconfined);
	kfree(s);
}

/* Does the process do without copies, for reasons of its own? */
static bool sharers_excludes(struct mm_struct *mm)
{
	return mm->def_flags & VM_LOCKED || rt_task(current);
}

/**
 * sharers_may_have() - could a process get copies?
 * @mm: the current one
 *
 * Return: false if it does without them, even with a second thread.
 */
bool sharers_may_have(struct mm_struct *mm)
{
	return sharers_possible() && !sharers_excludes(mm);
}

/**
 * sharers_have() - does a process have copies?
 * @mm: the process
 *
 * Return: true if it does, and they were not stopped.
 */
bool sharers_have(struct mm_struct *mm)
{
	struct sharers *s = READ_ONCE(mm->context.sharers);

	return s && !READ_ONCE(s->stopped);
}

/*
 * From here on flushes go by what is noted. Whoever runs the process has the
 * canonical root, and is unconfined:
 *
 *   start				a CPU that switches to the process
 *   context.sharers = s		mm_cpumask |= c
 *   (locked)				(locked)
 *   unconfined |= mm_cpumask		context.sharers?
 *   barrier				unconfined |= c
 *   stopped = false
 *
 * Until then flushes go to all, as ever.
 *
 * Root may take copies from all processes meanwhile, and another thread from this
 * one. They say so first, and then stop what was started; under the lock this is
 * before that, or sees what they have said.
 */
static void sharers_start(struct sharers *s)
{
	int cpu;

	lockdep_assert_held(&sharers_list_lock);
	list_add(&s->list, &sharers_list);
	if (READ_ONCE(sharers_enabled) == SHARERS_NEVER ||
	    READ_ONCE(s->mm->context.sharers_wanted) != SHARERS_WANTED)
		return;
	for_each_cpu(cpu, mm_cpumask(s->mm))
		cpumask_set_cpu(cpu, s->unconfined);
	/* The bits before flushes go by them. */
	smp_mb();
	WRITE_ONCE(s->stopped, false);
}

static struct sharers *sharers_begin(struct mm_struct *mm)
{
	struct sharers *s;

	if (!sharers_may_have(mm))
		return NULL;
	s = sharers_alloc(mm);
	if (!s)
		return NULL;
	if (cmpxchg(&mm->context.sharers, NULL, s)) {
		sharers_free(s);
		return mm->context.sharers;
	}
	WRITE_ONCE(sharers_used, true);
	spin_lock(&sharers_list_lock);
	sharers_start(s);
	spin_unlock(&sharers_list_lock);
	return s;
}

/**
 * __sharers_thread() - one more thread of a process is made
 * @mm: the process, the current one, which wants copies
 *
 * Context: may sleep.
 */
void __sharers_thread(struct mm_struct *mm)
{
	struct sharers *s = READ_ONCE(mm->context.sharers) ?:
			    sharers_begin(mm);
	unsigned int want;

	if (!s || READ_ONCE(s->stopped))
		return;
	want = min3((unsigned int)atomic_read(&mm->mm_users) + 1,
		    num_online_cpus(), sharers_slots_max());
	while (READ_ONCE(s->nr) < want && sharers_add(s))
		;
	/* This CPU need not wait for its tick. */
	local_irq_disable();
	sharers_update(mm);
	local_irq_enable();
}

/**
 * __sharers_exit_end() - a process is gone, and nothing is mapped in it any more
 * @mm: the process
 *
 * Its tables go, as those of any process: somebody may hold on to the rest for long, such
 * as who has a file of its /proc folder open. CPUs in lazy mode have a root loaded
 * still; the flush is for those, too. Nobody withdraws or flushes any more, since all
 * that could have has needed a mapping.
 *
 * Context: may sleep.
 */
void __sharers_exit_end(struct mm_struct *mm)
{
	struct sharers *s = mm->context.sharers;
	unsigned int i, nr;

	CF_MUTATION(sharers_tables_stay, return);
	/* More can be made by a work item that is late; those lead nowhere. */
	raw_spin_lock_irq(&s->lock);
	nr = s->nr;
	raw_spin_unlock_irq(&s->lock);
	for (i = 0; i < nr; i++)
		sharers_cpu_cut(s->slots[i]);
	flush_tlb_mm_range(mm, 0, TLB_FLUSH_ALL, PAGE_SHIFT, true);
	WRITE_ONCE(s->stopped, true);
	for (i = 0; i < nr; i++)
		sharers_cpu_empty(mm, s->slots[i]);
	sharers_gibs_free(s);
}

/* Are they its own, and not those of its parent? */
static bool sharers_is_of(struct sharers *s, struct mm_struct *mm)
{
	CF_MUTATION(sharers_exit_any, return true);
	return s->mm == mm;
}

/**
 * __sharers_exit() - what is left of a process is freed
 * @mm: the process
 *
 * Also an address space that a fork() could not finish: it is a copy of its parent's
 * until the end of mm_init(), and so is the pointer.
 *
 * Context: any; nobody has a root of it loaded.
 */
void __sharers_exit(struct mm_struct *mm)
{
	struct sharers *s = mm->context.sharers;

	if (!sharers_is_of(s, mm))
		return;
	spin_lock(&sharers_list_lock);
	list_del(&s->list);
	spin_unlock(&sharers_list_lock);
	sharers_free(s);
	mm->context.sharers = NULL;
}

/*
 * What interrupts the kernel runs on a stack of its own; what interrupts user mode, on that of
 * the task. There, too, is the CPU that stops the process.
 */
static void sharers_stop_here(void *info)
{
	struct mm_struct *mm = info;

	if (this_cpu_read(cpu_tlbstate.loaded_mm) == mm &&
	    !this_cpu_read(cpu_tlbstate_shared.is_lazy) && on_thread_stack())
		sharers_update(mm);
}

/**
 * sharers_is_stopped() - has the process had copies, and goes on without?
 * @mm: the process
 *
 * Return: true if so; for the rest of its life.
 */
bool sharers_is_stopped(struct mm_struct *mm)
{
	struct sharers *s = READ_ONCE(mm->context.sharers);

	return s && READ_ONCE(s->stopped);
}

/**
 * sharers_stop() - a process goes on without copies
 * @mm: the process, with a reference
 *
 * From now on flushes go to all. CPUs that run it in user mode load the canonical root
 * when they are interrupted; one in the kernel does at its next tick in user mode,
 * or when it comes back to the process.
 *
 * Context: may sleep.
 */
void sharers_stop(struct mm_struct *mm)
{
	struct sharers *s;

	/* What was chosen before the question; see sharers_start(). */
	smp_mb();
	s = READ_ONCE(mm->context.sharers);
	if (!s)
		return;
	spin_lock(&sharers_list_lock);
	WRITE_ONCE(s->stopped, true);
	spin_unlock(&sharers_list_lock);
	/* Who switches to it now sees that, or is in the mask. */
	smp_mb();
	preempt_disable();
	on_each_cpu_mask(mm_cpumask(mm), sharers_stop_here, mm, true);
	preempt_enable();
}

/**
 * sharers_stop_all() - all processes go on without copies
 *
 * Context: may sleep.
 */
void sharers_stop_all(void)
{
	struct mm_struct *mm;
	struct sharers *s;

	do {
		mm = NULL;
		spin_lock(&sharers_list_lock);
		list_for_each_entry(s, &sharers_list, list)
			if (!READ_ONCE(s->stopped) && mmget_not_zero(s->mm)) {
				mm = s->mm;
				break;
			}
		spin_unlock(&sharers_list_lock);
		if (mm) {
			sharers_stop(mm);
			mmput(mm);
		}
	} while (mm);
}
