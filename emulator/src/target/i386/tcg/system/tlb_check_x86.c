/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TLB check: x86 page tables and the CPUID leaf
 *
 * The walk does not set accessed and dirty bits, takes no exception and does
 * not go through the TLB. It knows long mode (4 and 5 levels); 32-bit paging
 * and nested paging are not watched.
 *
 * Kernel accesses are watched for user addresses (the lower half) once SMAP
 * is on: before that the kernel's own start-up runs on an identity mapping
 * there, which it changes without harm and which is not worth the time.
 */
#include "qemu/osdep.h"
#include "cpu.h"
#include "exec/page-protection.h"
#include "tcg/helper-tcg.h"
#define TLB_CHECK_HOST
#include "exec/tlb-check.h"
#include "exec/tlb-check-guest.h"
#include "tlb_check_x86.h"

#define ROOT_MASK 0x000ffffffffff000ull

static unsigned x86_tlb_check_want(CPUState *cs, vaddr addr, int mmu_idx)
{
    CPUX86State *env = cpu_env(cs);

    if (mmu_idx >= MMU_PHYS_IDX || addr >> 63 ||
        !(env->hflags & HF_LMA_MASK) || (env->hflags2 & HF2_NPT_MASK)) {
        return 0;
    }
    if (is_mmu_index_user(mmu_idx)) {
        return TLB_CHECK_FEATURE_USER;
    }
    return env->cr[4] & CR4_SMAP_MASK ? TLB_CHECK_FEATURE_KERNEL : 0;
}

static bool x86_tlb_check_walk(CPUState *cs, vaddr addr, int mmu_idx,
                               TLBCheckWalk *w)
{
    CPUX86State *env = cpu_env(cs);
    bool user = is_mmu_index_user(mmu_idx);
    uint64_t pte = env->cr[3];
    uint64_t rights = PG_USER_MASK | PG_RW_MASK;
    bool nx = false;
    uint64_t size;
    int level;

    if (!(env->hflags & HF_LMA_MASK)) {
        return false;
    }
    memset(w, 0, sizeof(*w));
    w->nlevels = env->cr[4] & CR4_LA57_MASK ? 5 : 4;
    for (level = w->nlevels; ; level--) {
        hwaddr table = pte & PG_ADDRESS_MASK;
        unsigned index = (addr >> (TARGET_PAGE_BITS + 9 * (level - 1))) & 511;
        uint64_t *host = tlb_check_ram(table + index * 8);

        if (!host) {
            return false;
        }
        w->tables[w->ntables] = table >> TARGET_PAGE_BITS;
        w->host[w->ntables] = host;
        w->value[w->ntables] = qatomic_read(host);
        pte = le64_to_cpu(w->value[w->ntables++]);
        w->pte = pte;
        w->level = level;
        if (!(pte & PG_PRESENT_MASK)) {
            return true;
        }
        rights &= pte;
        nx |= (pte & PG_NX_MASK) && (env->efer & MSR_EFER_NXE);
        if (level == 1 || (level <= 3 && (pte & PG_PSE_MASK))) {
            break;
        }
    }
    size = 1ull << (TARGET_PAGE_BITS + 9 * (level - 1));
    w->present = true;
    w->dirty = pte & PG_DIRTY_MASK;
    w->pa = ((pte & PG_ADDRESS_MASK & ~(size - 1)) | (addr & (size - 1))) &
            TARGET_PAGE_MASK;
    /* The rights of this access; an entry was filled by a similar one. */
    if (user && !(rights & PG_USER_MASK)) {
        return true;
    }
    w->prot = PAGE_READ;
    if ((rights & PG_RW_MASK) || (!user && !(env->cr[0] & CR0_WP_MASK))) {
        w->prot |= PAGE_WRITE;
    }
    if (!nx) {
        w->prot |= PAGE_EXEC;
    }
    return true;
}

static uint64_t x86_tlb_check_pc(CPUState *cs, const uint64_t *data)
{
    CPUX86State *env = cpu_env(cs);

    if (!data) {
        return env->eip;
    }
    if (tcg_cflags_has(cs, CF_PCREL)) {
        return (env->eip & TARGET_PAGE_MASK) | data[0];
    }
    return data[0] - env->segs[R_CS].base;
}

static hwaddr x86_tlb_check_root(CPUState *cs)
{
    return cpu_env(cs)->cr[3] & ROOT_MASK;
}

static unsigned x86_tlb_check_tag(CPUState *cs)
{
    CPUX86State *env = cpu_env(cs);

    return env->cr[4] & CR4_PCIDE_MASK ? env->cr[3] & 0xfff : 0;
}

/* As a walk of mmu_translate() has it: XD is the other way round. */
static uint64_t x86_tlb_check_rights(CPUState *cs, const uint64_t *entry,
                                     unsigned n)
{
    uint64_t rights = X86_UPPER_RIGHTS;

    for (unsigned i = 0; i < n; i++) {
        rights &= le64_to_cpu(entry[i]) ^ PG_NX_MASK;
    }
    return rights;
}

static uint32_t x86_tlb_check_frame(uint64_t pte)
{
    return (pte & PG_ADDRESS_MASK) >> TARGET_PAGE_BITS;
}

const TLBCheckOps x86_tlb_check_ops = {
    .want = x86_tlb_check_want,
    .walk = x86_tlb_check_walk,
    .pc = x86_tlb_check_pc,
    .root = x86_tlb_check_root,
    .tag = x86_tlb_check_tag,
    .rights = x86_tlb_check_rights,
    .frame = x86_tlb_check_frame,
};

bool x86_tlb_check_cpuid(CPUX86State *env)
{
    uint64_t arg[3] = { env->regs[R_ESI], env->regs[R_EDI], env->regs[R_EDX] };
    uint64_t out[3];
    int result;

    if ((uint32_t)env->regs[R_EAX] != TLB_CHECK_LEAF) {
        return false;
    }
    result = tlb_check_command(env_cpu(env), !(env->hflags & HF_CPL_MASK),
                               (uint32_t)env->regs[R_ECX], arg, out);
    if (result < 0) {
        return false;
    }
    env->regs[R_EAX] = result;
    env->regs[R_EBX] = out[0];
    env->regs[R_ECX] = out[1];
    env->regs[R_EDX] = out[2];
    return true;
}
