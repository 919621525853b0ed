// SPDX-License-Identifier: GPL-2.0
/*
 * Entries that only the CPU has that has asked for them.
 *
 * A fault makes an entry without the accessed bit, and with the class of its CPU. The
 * CPU then loads the translation by tables of its own, which lead to that page and
 * nowhere else: same PCID, the page is read once, and back. The entry that CPUs walk
 * stays without the bit. As long as it does no other CPU has walked there
 * (../core/young.c), so a flush for it goes to CPUs of the class (classes.c). Whoever
 * walks there sets the bit, and the entry is one like any other.
 *
 * What the CPU may keep of its own tables are upper levels: where they lead is the
 * business of the next page. It would find a frame at an address that was never there:
 *
 *   page A: loads A by T; the CPU caches "the 2 MiB of A: table T"
 *   page B: T has B's entry at place j
 *           somebody runs ahead to place j of the 2 MiB of A: finds B's frame
 *
 * So T and all above it are empty again before that, and INVLPG, of any address, drops
 * all upper levels of the PCID (SDM volume 3, "Operations that Invalidate TLBs and
 * Paging-Structure Caches"; AMD: as long as EFER.TCE is clear, as it is), but not the
 * entry. In this order: back to the tables of the process, empty, INVLPG.
 *
 * Meanwhile no interrupt comes, and an NMI finds no process (nmi_uaccess_okay()). The
 * kernel's half is that of any root, and gets what is changed there (pgd_list).
 *
 * No CPU has the new entry: the address was empty, or was just flushed, or none but those of
 * the class had what was there (again.c). One may have what was there before, cleared by a
 * gather that has yet to flush for it. That is the business of the gather, which has the page:
 * nobody else gets it before. Who changes the new entry of a page of anonymous memory meanwhile
 * flushes everywhere (core/young.c). If reclaim is to flush, nothing is made so.
 *
 * Needs PCIDs: otherwise a write to CR3 drops the entry again. And no page table isolation:
 * the kernel has a PCID of its own then. Not where a hypervisor flushes, and goes by the
 * root for that (Hyper-V). Not in processes with copies of their tables
 * (sharers): there a CPU must be noted before it loads anything.
 *
 * If the CPU has upper levels of the process cached for that address it walks there, and
 * sets the bit: nothing is won. A page fault has dropped them, a fault by the kernel itself
 * (GUP) has not.
 *
 * Locks: the page table lock of the entry; interrupts off while the tables are loaded.
 * Callers: do_anonymous_page(), set_pte_range(), wp_page_copy(), should_fault_around(); again.c;
 * sysfs.c.
 */
#include <linux/ceasefire_check.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/pkeys.h>
#include <linux/uaccess.h>
#include <linux/vmstat.h>

#include <asm/debugreg.h>
#include <asm/hypervisor.h>
#include <asm/tlbflush.h>

#include "abis.h"

/* Of each CPU. All of them are empty but while a page is loaded. */
struct abis_tables {
	pgd_t *pgd;
	p4d_t *p4d;
	pud_t *pud;
	pmd_t *pmd;
	pte_t *pte;
};

/* What fault-around maps at a time, unless root has changed that. */
#define ABIS_AROUND_PAGES	16

static DEFINE_PER_CPU(struct abis_tables, abis_tables);
static DEFINE_MUTEX(abis_tables_lock);

/* Where its CPU is: it walks there. */
static void *abis_table_alloc(int cpu)
{
	struct page *page = alloc_pages_node(cpu_to_node(cpu),
					     GFP_KERNEL | __GFP_ZERO, 0);

	return page ? page_address(page) : NULL;
}

/* A root with the kernel's half, as pgd_ctor() makes it. */
static pgd_t *abis_root_alloc(int cpu)
{
	pgd_t *root = abis_table_alloc(cpu);
	struct ptdesc *table;

	if (!root)
		return NULL;
	table = virt_to_ptdesc(root);
	spin_lock(&pgd_lock);
	clone_pgd_range(root + KERNEL_PGD_BOUNDARY,
			swapper_pg_dir + KERNEL_PGD_BOUNDARY, KERNEL_PGD_PTRS);
	table->pt_mm = &init_mm;
	list_add(&table->pt_list, &pgd_list);
	spin_unlock(&pgd_lock);
	return root;
}

/* What was made so far stays, for the next time. */
static bool abis_tables_make(struct abis_tables *t, int cpu)
{
	t->p4d = t->p4d ?: abis_table_alloc(cpu);
	t->pud = t->pud ?: abis_table_alloc(cpu);
	t->pmd = t->pmd ?: abis_table_alloc(cpu);
	t->pte = t->pte ?: abis_table_alloc(cpu);
	if (!t->p4d || !t->pud || !t->pmd || !t->pte)
		return false;
	if (!t->pgd) {
		/* Whoever sees the root sees the rest. */
		smp_store_release(&t->pgd, abis_root_alloc(cpu));
	}
	return t->pgd;
}

/**
 * abis_insert_prepare() - root wants entries of this kind
 *
 * Context: may sleep.
 * Return: 0; -EOPNOTSUPP where they are not possible; -ENOMEM.
 */
int abis_insert_prepare(void)
{
	int cpu, err = 0;

	/* Where page table locks can be preempted a thread may go on elsewhere. */
	if (!cpu_feature_enabled(X86_FEATURE_PCID) ||
	    cpu_feature_enabled(X86_FEATURE_PTI) ||
	    hypervisor_is_type(X86_HYPER_MS_HYPERV) ||
	    IS_ENABLED(CONFIG_PREEMPT_RT)) {
		pr_info_once("ceasefire: abis/sources: 'inserted' needs PCIDs and no page table isolation (pti=off), and is not for Hyper-V and PREEMPT_RT\n");
		return -EOPNOTSUPP;
	}
	mutex_lock(&abis_tables_lock);
	for_each_possible_cpu(cpu)
		if (!abis_tables_make(per_cpu_ptr(&abis_tables, cpu), cpu))
			err = -ENOMEM;
	mutex_unlock(&abis_tables_lock);
	return err;
}

/* The way to a page, and to no other one. */
static void abis_way_begin(struct abis_tables *t, unsigned long addr, pte_t pte)
{
	t->pte[pte_index(addr)] = pte_set_flags(pte, _PAGE_ACCESSED);
	t->pmd[pmd_index(addr)] = __pmd(_PAGE_TABLE | __pa(t->pte));
	t->pud[pud_index(addr)] = __pud(_PAGE_TABLE | __pa(t->pmd));
	if (pgtable_l5_enabled()) {
		t->p4d[p4d_index(addr)] = __p4d(_PAGE_TABLE | __pa(t->pud));
		t->pgd[pgd_index(addr)] = __pgd(_PAGE_TABLE | __pa(t->p4d));
	} else {
		t->pgd[pgd_index(addr)] = __pgd(_PAGE_TABLE | __pa(t->pud));
	}
	/* The CPU walks it; a write to CR3 orders that, the compiler has to be told. */
	barrier();
}

static void abis_way_end(struct abis_tables *t, unsigned long addr)
{
	barrier();
	CF_MUTATION(abis_way_left, return);
	t->pgd[pgd_index(addr)] = __pgd(0);
	t->p4d[pgtable_l5_enabled() ? p4d_index(addr) : 0] = __p4d(0);
	t->pud[pud_index(addr)] = __pud(0);
	t->pmd[pmd_index(addr)] = __pmd(0);
	t->pte[pte_index(addr)] = __pte(0);
}

/* Upper levels, whatever the address: one that no process has mapped. */
static void abis_way_forget(void)
{
	CF_MUTATION(abis_way_cached, return);
	asm volatile("invlpg (%0)" :: "r" (TASK_SIZE_MAX) : "memory");
}

/* Interrupts are off, and the process is loaded. */
static bool abis_read_by(struct abis_tables *t, struct mm_struct *mm,
			 unsigned long addr)
{
	unsigned long cr3 = __read_cr3();
	bool read;
	u8 byte __maybe_unused;

	ceasefire_root(mm, t->pgd);
	native_write_cr3((cr3 & ~CR3_ADDR_MASK) | __sme_pa(t->pgd) | CR3_NOFLUSH);
	pagefault_disable();
	read = !__get_user(byte, (u8 __user *)addr);
	pagefault_enable();
	native_write_cr3(cr3 | CR3_NOFLUSH);
	return read;
}

/**
 * abis_load() - load the translation of a page that others cannot have
 * @mm: the process
 * @addr: address of the page
 * @pte: its entry, which names this CPU; the page table is locked
 *
 * Return: true if it was done.
 */
bool abis_load(struct mm_struct *mm, unsigned long addr, pte_t pte)
{
	struct abis_tables *t = this_cpu_ptr(&abis_tables);
	unsigned long flags;
	bool loaded = false;

	local_irq_save(flags);
	/* Not in the middle of what uses other tables; and asked once more: interrupts came. */
	if (this_cpu_read(cpu_tlbstate.loaded_mm) == mm &&
	    !abis_has_copies(mm) && !hw_breakpoint_active()) {
		this_cpu_write(cpu_tlbstate.loaded_mm, LOADED_MM_SWITCHING);
		abis_way_begin(t, addr, pte);
		loaded = abis_read_by(t, mm, addr);
		abis_way_end(t, addr);
		abis_way_forget();
		/* An NMI that sees the process finds nothing of that. */
		barrier();
		this_cpu_write(cpu_tlbstate.loaded_mm, mm);
	}
	local_irq_restore(flags);
	return loaded;
}

/**
 * abis_is_readable() - is a read by the kernel like one by the program?
 * @vma: the mapping
 *
 * Return: true if so.
 */
bool abis_is_readable(struct vm_area_struct *vma)
{
	/* Code is fetched by other entries; keys are the program's to change. */
	return !(vma->vm_flags & VM_EXEC) && !vma_pkey(vma) &&
	       !hw_breakpoint_active();
}

/* Are there such entries in a mapping? */
static bool abis_inserts(struct vm_area_struct *vma)
{
	struct mm_struct *mm = vma->vm_mm;

	return abis_source_on(ABIS_SOURCE_INSERTED) && !abis_has_copies(mm) &&
	       atomic_read(&mm->mm_users) > 1 && abis_is_readable(vma);
}

/**
 * abis_may_insert() - may the page of a fault get an entry that only this CPU has?
 * @vmf: the fault
 * @pte: the entry
 *
 * Return: true if it may.
 */
bool abis_may_insert(struct vm_fault *vmf, pte_t pte)
{
	struct vm_area_struct *vma = vmf->vma;
	struct mm_struct *mm = vma->vm_mm;

	return mm == current->mm && !(vmf->flags & FAULT_FLAG_REMOTE) &&
	       abis_inserts(vma) &&
	       abis_profits(vma, pte, ABIS_SOURCE_INSERTED) &&
	       !cf_batch_pending(mm);
}

/**
 * __abis_one() - has a read fault better map nothing beside the page that was asked for?
 * @vma: its mapping
 *
 * Pages of a file that are about to be copied: each copy flushes for the page of the file.
 *
 * Return: true if so.
 */
bool __abis_one(struct vm_area_struct *vma)
{
	return (vma->vm_flags & (VM_SHARED | VM_WRITE)) == VM_WRITE &&
	       abis_inserts(vma);
}

static pte_t abis_set_class(pte_t pte)
{
	unsigned long class = abis_class_of(smp_processor_id());

	pte = pte_clear_flags(pte, _PAGE_CLASS);
	return pte_set_flags(pte, class << _PAGE_BIT_CLASS);
}

/**
 * abis_insert() - make an entry that only this CPU has
 * @mm: the process
 * @addr: address of the page
 * @ptep: the place of the entry, the page table is locked
 * @pte: the entry, accessed
 */
void abis_insert(struct mm_struct *mm, unsigned long addr, pte_t *ptep,
		 pte_t pte)
{
	pte = abis_set_class(abis_keep_use(pte));
	set_ptes(mm, addr, ptep, pte, 1);
	if (abis_load(mm, addr, pte) &&
	    !(pte_flags(ptep_get(ptep)) & _PAGE_ACCESSED))
		count_vm_event(ABIS_INSERTED);
}

/*
 * Does a mapping seem to be read in order? Then the page before was used or loaded, unless there
 * is none. One that this fault has made beside the page that was asked for has neither bit,
 * if the other source is on.
 */
static bool abis_goes_on(struct vm_fault *vmf, unsigned long addr, pte_t *ptep)
{
	unsigned long asked = vmf->address & PAGE_MASK;
	unsigned long used = _PAGE_CLASS;
	pte_t before;

	/* The table before is not looked at: who reads in order comes by here. */
	if (asked == vmf->vma->vm_start || !pte_index(asked))
		return true;
	if (abis_source_on(ABIS_SOURCE_UNCACHED))
		used |= _PAGE_ACCESSED;
	ptep += (long)(asked - addr) / (long)PAGE_SIZE;
	before = ptep_get(ptep - 1);
	return pte_present(before) && pte_flags(before) & used;
}

/*
 * Are pages beside the one that was asked for loaded, too? Those of a mapping that fault-around
 * maps in one step, or that is read in order, are about to be read, most likely. The CPU would
 * find them by a walk, and nobody could tell which one it was. The others may never be used,
 * and loading them would cost more than the fault.
 */
static bool abis_loads_around(struct vm_fault *vmf, unsigned long addr,
			      pte_t *ptep, unsigned int nr)
{
	struct vm_area_struct *vma = vmf->vma;

	if (vma->vm_flags & VM_WRITE || nr > ABIS_AROUND_PAGES)
		return false;
	return vma_pages(vma) <= ABIS_AROUND_PAGES ||
	       abis_goes_on(vmf, addr, ptep);
}

/* Of several entries, which are like the first one but for where they lead. */
static void abis_insert_each(struct mm_struct *mm, unsigned long addr,
			     pte_t *ptep, pte_t pte, unsigned int nr)
{
	for (; nr; nr--, addr += PAGE_SIZE, ptep++, pte = pte_next_pfn(pte))
		abis_insert(mm, addr, ptep, pte);
}

/**
 * __abis_install() - a fault makes entries
 * @vmf: the fault
 * @addr: of the first one
 * @ptep: its place, the page table is locked
 * @pte: the first one
 * @nr: their number, of one folio
 *
 * Those beside what was asked for nobody has, if they are not loaded. Of several of one folio, one
 * of which was asked for, all CPUs may have each.
 */
void __abis_install(struct vm_fault *vmf, unsigned long addr, pte_t *ptep,
		    pte_t pte, unsigned int nr)
{
	struct vm_area_struct *vma = vmf->vma;
	bool asked = in_range(vmf->address, addr, nr * PAGE_SIZE);

	if (((asked && nr == 1) || abis_loads_around(vmf, addr, ptep, nr)) &&
	    pte_flags(pte) & _PAGE_ACCESSED && abis_may_insert(vmf, pte)) {
		abis_insert_each(vma->vm_mm, addr, ptep, pte, nr);
		return;
	}
	if (!asked)
		pte = abis_born(vma, pte, nr);
	set_ptes(vma->vm_mm, addr, ptep, pte, nr);
}
