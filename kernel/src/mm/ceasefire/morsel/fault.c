// SPDX-License-Identifier: GPL-2.0
/*
 * The first access to a mapping, or to a page that nobody has populated.
 *
 * It makes what is missing: the page and the tables of the object, and the attach
 * entries. In most cases it is one of both: who maps what others have populated takes one
 * fault for all units of one table of its own.
 *
 * No table or page of generic code comes into a unit: this is the only way that faults
 * in such a mapping go, whatever the mapping or the process says about huge pages.
 *
 * Locks: mmap_lock held for reading, or the lock of the VMA; so neither the rights nor the
 * place of the mapping changes. Caller: handle_mm_fault().
 */
#include <linux/ceasefire.h>
#include <linux/mm.h>
#include <linux/pagemap.h>

#include "morsel.h"

/* Without any right there is no entry that would say so. */
static bool morsel_may_have(struct vm_area_struct *vma)
{
	CF_MUTATION(morsel_links_none, return true);
	return vma->vm_flags & (VM_READ | VM_WRITE);
}

static vm_fault_t morsel_fault_error(int err, unsigned int flags)
{
	switch (err) {
	case 0:
		return 0;
	case -ENOMEM:
		return VM_FAULT_OOM;
	case -EINTR:
		/* The kernel's own access would come back at once, and again. */
		return flags & FAULT_FLAG_USER ? VM_FAULT_NOPAGE :
						 VM_FAULT_SIGBUS;
	case -EHWPOISON:
		return VM_FAULT_HWPOISON;
	default:
		return VM_FAULT_SIGBUS;
	}
}

/**
 * morsel_fault() - a fault in the mapping of a morsel
 * @vma: the mapping
 * @addr: the address
 * @flags: FAULT_FLAG_*; that the mapping allows it was looked at
 *
 * Return: 0: the access can be tried again; VM_FAULT_SIGBUS: it is behind the end, or a
 * limit is reached; VM_FAULT_HWPOISON: the page was broken; VM_FAULT_OOM.
 */
vm_fault_t morsel_fault(struct vm_area_struct *vma, unsigned long addr,
			unsigned int flags)
{
	struct morsel *m = morsel_of_vma(vma);
	u64 offset = addr - vma->vm_start;
	int err;

	if (!morsel_may_have(vma))
		return VM_FAULT_SIGSEGV;
	if (offset >= morsel_page_end(m, i_size_read(&m->inode)))
		return VM_FAULT_SIGBUS;
	err = morsel_populate_page(m, offset);
	if (!err && flags & FAULT_FLAG_WRITE)
		err = morsel_own_page(m, offset);
	if (!err)
		err = morsel_attach(vma, addr);
	return morsel_fault_error(err, flags);
}
