/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLB check: what the x86 target gives the checker
 */
#ifndef I386_TLB_CHECK_X86_H
#define I386_TLB_CHECK_X86_H

#include "exec/tlb-check.h"

extern const TLBCheckOps x86_tlb_check_ops;

/* If EAX names the leaf of the checker and there is one: do it. */
bool x86_tlb_check_cpuid(CPUX86State *env);

#endif /* I386_TLB_CHECK_X86_H */
