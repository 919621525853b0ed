// SPDX-License-Identifier: GPL-2.0
/*
 * Flushes for entries that name who has them: CPUs of a class (insert.c), and nobody
 * else. Entries of that kind have a range of their own in a gather, so that what all
 * CPUs may have is flushed for as ever. If there is any of that, too, one flush is
 * for both.
 *
 * Who has an entry may run another process by now, and keeps it under a PCID that is not
 * in use. So a flush takes a generation, as flush_tlb_mm_range() does, and interrupts
 * those of the class that run the process:
 *
 *   here				CPU of the class
 *   changes the entry			runs another process, has the entry
 *   generation + 1 (full barrier)
 *   reads mm_cpumask: not there
 *					comes back: enters mm_cpumask (full barrier),
 *					reads the generation: behind, flushes
 *
 * or it is in mm_cpumask, and is interrupted. CPUs that are left out are behind,
 * too, and flush everything when they are next asked or come back: more than needed.
 *
 * The common case takes none: this CPU is the only one of its class that there can be (of
 * 20 CPUs, ten are), and has the process loaded. It flushes what is in the range. No
 * other CPU has had the entries since they were made, under whatever PCID; and what this one
 * has of the process is under the PCID that it uses now: another one that it had for it
 * is flushed before it is used again (choose_new_asid()).
 *
 * A flush that leaves CPUs out is credited to nobody (../core/debt.c).
 *
 * Locks: none; page table locks may be held. Callers: uncached.c.
 */
#include <linux/cpumask.h>
#include <linux/mm.h>
#include <linux/vmstat.h>

#include <asm/tlb.h>
#include <asm/tlbflush.h>

#include <trace/events/ceasefire.h>

#include "../../../arch/x86/mm/mm_internal.h"
#include "abis.h"

struct abis_flush {
	struct flush_tlb_info info;
	cpumask_t cpus;
};

/* Of the CPU that flushes; preemption is off. */
static DEFINE_PER_CPU_SHARED_ALIGNED(struct abis_flush, abis_flush_state);

/* Can there be no other CPU of a class of the set than this one? */
static bool abis_is_mine(unsigned int classes)
{
	unsigned int cpu = smp_processor_id(), step = abis_nr_classes();

	CF_MUTATION(abis_class_mine, return true);
	CF_MUTATION(abis_class_shared, return classes == BIT(abis_class_of(cpu)));
	return classes == BIT(abis_class_of(cpu)) && cpu < step &&
	       cpu + step >= nr_cpu_ids;
}

static bool abis_is_long(unsigned long start, unsigned long end)
{
	return (end - start) >> PAGE_SHIFT > tlb_single_page_flush_ceiling;
}

static void abis_flush_here(unsigned long start, unsigned long end)
{
	unsigned long addr;

	if (abis_is_long(start, end)) {
		flush_tlb_local();
		count_vm_tlb_event(NR_TLB_LOCAL_FLUSH_ALL);
		return;
	}
	for (addr = start; addr < end; addr += PAGE_SIZE)
		flush_tlb_one_user(addr);
	count_vm_tlb_events(NR_TLB_LOCAL_FLUSH_ONE, (end - start) >> PAGE_SHIFT);
}

/* If only this CPU can have the entries, and has the process loaded. */
static bool abis_flush_mine(struct mm_struct *mm, unsigned long start,
			    unsigned long end, unsigned int classes)
{
	bool mine;

	lockdep_assert_irqs_enabled();
	local_irq_disable();
	mine = abis_is_mine(classes) &&
	       this_cpu_read(cpu_tlbstate.loaded_mm) == mm &&
	       !this_cpu_read(cpu_tlbstate_shared.is_lazy);
	if (mine)
		abis_flush_here(start, end);
	local_irq_enable();
	return mine;
}

/* Another generation of the process, so that who is not there finds out. */
static u64 abis_next_generation(struct mm_struct *mm)
{
	CF_MUTATION(abis_class_away, return TLB_GENERATION_INVALID);
	return inc_mm_tlb_gen(mm);
}

/* Ask all CPUs of the classes, those that are not there by a generation. */
static void abis_flush_narrow(struct mm_struct *mm, unsigned long start,
			      unsigned long end, unsigned int classes)
{
	struct abis_flush *f = get_cpu_ptr(&abis_flush_state);
	bool all = abis_is_long(start, end);
	unsigned int cpu;

	f->info = (struct flush_tlb_info){
		.mm = mm,
		.start = all ? 0 : start,
		.end = all ? TLB_FLUSH_ALL : end,
		.stride_shift = PAGE_SHIFT,
		.initiating_cpu = smp_processor_id(),
		/* Also a barrier, between the entries and who is there. */
		.new_tlb_gen = abis_next_generation(mm),
	};
	cpumask_clear(&f->cpus);
	for_each_cpu(cpu, mm_cpumask(mm))
		if (classes & BIT(abis_class_of(cpu)))
			__cpumask_set_cpu(cpu, &f->cpus);
	if (!cpumask_empty(&f->cpus))
		flush_tlb_multi(&f->cpus, &f->info);
	put_cpu_ptr(&abis_flush_state);
}

/* What was asked, by its counter. Who has listeners has no entries of that kind. */
static enum vm_event_item abis_flush_few(struct mm_struct *mm,
					 unsigned long start, unsigned long end,
					 unsigned int classes)
{
	ceasefire_flush(mm, start, end, PAGE_SHIFT);

	if (abis_has_copies(mm)) {
		flush_tlb_mm_range(mm, start, end, PAGE_SHIFT, false);
		return ABIS_ALL;
	}
	if (abis_flush_mine(mm, start, end, classes))
		return ABIS_LOCAL;
	abis_flush_narrow(mm, start, end, classes);
	return ABIS_NARROW;
}

/**
 * abis_flush_classes() - flush a range whose entries only some CPUs can have
 * @mm: the process
 * @start: first address
 * @end: first address behind it
 * @classes: of those CPUs, a bit each
 *
 * A process that has got copies of its tables since (sharers) knows better.
 *
 * Context: interrupts on.
 */
void abis_flush_classes(struct mm_struct *mm, unsigned long start,
			unsigned long end, unsigned int classes)
{
	enum vm_event_item which;

	which = abis_flush_few(mm, start, end, classes);
	count_vm_event(which);
	trace_abis_flush(mm->context.ctx_id, which - ABIS_NONE);
}

/**
 * abis_gather_class() - a gather has cleared entries that only CPUs of a class can have
 * @tlb: the gather
 * @addr: of the first one
 * @nr: their number
 * @class: the class
 */
void abis_gather_class(struct mmu_gather *tlb, unsigned long addr,
		       unsigned int nr, unsigned int class)
{
	unsigned long end = addr + nr * PAGE_SIZE;

	if (!tlb->abis_classes) {
		tlb->abis_start = addr;
		tlb->abis_end = end;
	}
	tlb->abis_start = min(tlb->abis_start, addr);
	tlb->abis_end = max(tlb->abis_end, end);
	tlb->abis_classes |= BIT(class);
}

/*
 * Is there a better way? If others have to be asked anyhow one flush is for all; if a
 * gather may skip its flush (I5), and this one would interrupt somebody, it does that.
 */
static bool abis_goes_along(const struct mmu_gather *tlb, bool flushes)
{
	return flushes || tlb->fullmm ||
	       (tlb->cf_marked && !abis_is_mine(tlb->abis_classes));
}

/**
 * abis_gather_flush_classes() - a gather is about to flush, and has entries of that kind
 * @tlb: the gather
 * @flushes: it has others, too
 */
void abis_gather_flush_classes(struct mmu_gather *tlb, bool flushes)
{
	bool along;

	preempt_disable();
	along = abis_goes_along(tlb, flushes);
	preempt_enable();
	if (along) {
		tlb->start = min(tlb->start, tlb->abis_start);
		tlb->end = max(tlb->end, tlb->abis_end);
		tlb->cleared_ptes = 1;
	} else {
		abis_flush_classes(tlb->mm, tlb->abis_start, tlb->abis_end,
				   tlb->abis_classes);
	}
	tlb->abis_classes = 0;
}
