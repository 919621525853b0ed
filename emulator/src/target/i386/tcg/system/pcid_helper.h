/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * x86 process-context identifiers: what MOV to a control register calls
 */
#ifndef I386_PCID_HELPER_H
#define I386_PCID_HELPER_H

/* MOV to CR0: #GP for an end of paging with CR4.PCIDE set. */
void x86_check_cr0_pcid(CPUX86State *env, target_ulong new_cr0, uintptr_t ra);

/* MOV to CR4: #GP for PCIDE outside long mode or while CR3 has a PCID. */
void x86_check_cr4_pcid(CPUX86State *env, target_ulong new_cr4, uintptr_t ra);

/* MOV to CR3: takes bit 63 out of the value; #GP for it without CR4.PCIDE. */
target_ulong x86_cr3_no_flush(CPUX86State *env, target_ulong new_cr3,
                              bool *no_flush, uintptr_t ra);

/* MOV to CR3: make it so. */
void x86_load_cr3(CPUX86State *env, target_ulong new_cr3, bool no_flush);

#endif /* I386_PCID_HELPER_H */
