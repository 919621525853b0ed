/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Entries that lead to a table, and do not allow to write: all that lead to another
 * process' memory may do so (M5). Included by asm/pgtable.h, so it asks for nothing.
 */
#ifndef _LINUX_CEASEFIRE_TABLES_H
#define _LINUX_CEASEFIRE_TABLES_H

#ifdef CONFIG_CEASEFIRE_MORSEL

#ifdef CONFIG_CEASEFIRE_DEBUG
/* mm/ceasefire/morsel/map.c, for the sake of its mutations */
unsigned long morsel_table_rights(void);
bool morsel_denies(unsigned long entry, unsigned int write);
#define CEASEFIRE_TABLE_RIGHTS	morsel_table_rights()
#define ceasefire_denies(entry, flags)	morsel_denies(entry, (flags) & FOLL_WRITE)
#else
/* pmd_bad(): what it says nothing about. */
#define CEASEFIRE_TABLE_RIGHTS	_PAGE_RW
/* GUP without locks: is an entry of any level no way for FOLL_WRITE? */
#define ceasefire_denies(entry, flags)	((flags) & FOLL_WRITE && !((entry) & _PAGE_RW))
#endif

#else

#define CEASEFIRE_TABLE_RIGHTS	0
#define ceasefire_denies(entry, flags) false

#endif /* CONFIG_CEASEFIRE_MORSEL */

#endif /* _LINUX_CEASEFIRE_TABLES_H */
