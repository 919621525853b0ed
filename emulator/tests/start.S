/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The test guest: boot, exceptions, ring 3.
 *
 * A multiboot image that QEMU loads with -kernel. It identity-maps the first
 * GiB with supervisor pages, enters long mode on one CPU and calls guest_main.
 */
#define LEAF 0x40544c42

	.section .boot, "ax"
	.code32
	.align 4
	.long 0x1badb002, 0, -0x1badb002

	.globl _start
_start:
	cld
	mov $stack_end, %esp
	mov %ebx, multiboot_info
	lgdt gdt_pointer
	ljmp $0x38, $1f
1:	mov $0x10, %eax
	mov %eax, %ds
	mov %eax, %es
	mov %eax, %ss

	/* CR4.PCIDE outside long mode must fault: the handler counts and skips. */
	mov $gp32, %eax
	mov %ax, idt32 + 13 * 8
	movw $0x38, idt32 + 13 * 8 + 2
	movw $0x8e00, idt32 + 13 * 8 + 4
	shr $16, %eax
	mov %ax, idt32 + 13 * 8 + 6
	lidt idt32_pointer
	mov %cr4, %eax
	or $(1 << 17), %eax
	mov %eax, %cr4

	/* PML4[0] -> PDPT[0] -> 512 pages of 2 MiB */
	movl $boot_pdpt + 3, boot_pml4
	movl $boot_pd + 3, boot_pdpt
	mov $boot_pd, %edi
	mov $0x83, %eax
	mov $512, %ecx
1:	mov %eax, (%edi)
	add $0x200000, %eax
	add $8, %edi
	loop 1b

	mov $boot_pml4, %eax
	mov %eax, %cr3
	mov $(1 << 5 | 1 << 7), %eax		/* PAE, PGE */
	mov %eax, %cr4
	mov $0xc0000080, %ecx
	rdmsr
	or $(1 << 8 | 1 << 11), %eax		/* LME, NXE */
	wrmsr
	mov $0x80010013, %eax			/* PG, WP, NE, MP, PE */
	mov %eax, %cr0
	ljmp $0x08, $start64

gp32:	incl gp_outside_long_mode
	add $4, %esp
	addl $3, (%esp)				/* mov %eax, %cr4 */
	iret

	.code64
start64:
	mov $0x10, %eax
	mov %eax, %ds
	mov %eax, %es
	mov %eax, %ss
	mov $stack_end, %rsp
	/* TSS: the stack of exceptions from ring 3 */
	mov $tss, %rax
	mov %ax, gdt + 0x28 + 2
	shr $16, %rax
	mov %al, gdt + 0x28 + 4
	mov %ah, gdt + 0x28 + 7
	movq $isr_stack_end, tss + 4
	mov $0x28, %eax
	ltr %ax
	call guest_main
1:	hlt
	jmp 1b

	.text
/*
 * int catch_call(void (*fn)(void *), void *arg): call it; 0, or the vector of
 * the exception that ended it.
 */
	.globl catch_call
catch_call:
	push %rbx
	push %rbp
	push %r12
	push %r13
	push %r14
	push %r15
	pushq catch_rsp
	mov %rsp, catch_rsp
	mov %rdi, %rax
	mov %rsi, %rdi
	call *%rax
	xor %eax, %eax
caught:
	mov catch_rsp, %rsp
	popq catch_rsp
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbp
	pop %rbx
	ret

/* u64 run_user(struct user_call *): rax of ring 3 at its int $0x80 */
	.globl run_user
run_user:
	push %rbx
	push %rbp
	push %r12
	push %r13
	push %r14
	push %r15
	mov %rsp, user_rsp
	mov %rdi, %rax
	push $0x1b
	push 8(%rax)				/* stack */
	pushfq
	push $0x23
	push (%rax)				/* entry */
	mov 16(%rax), %rdi
	mov 24(%rax), %rsi
	mov 32(%rax), %rdx
	mov 40(%rax), %rcx
	iretq

	.globl isr_syscall
isr_syscall:
	mov user_rsp, %rsp
	mov $0x10, %ecx
	mov %ecx, %ss
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbp
	pop %rbx
	stac
	ret

	.macro isr vector
	.globl isr_\vector
isr_\vector:
	.if \vector == 6
	push $0
	.endif
	mov $\vector, %eax
	jmp fault
	.endm
	isr 6
	isr 13
	isr 14

/* rsp: error code, rip, ... Nobody expects to come back from a fault. */
fault:
	pop fault_error
	pop fault_rip
	mov %cr2, %rcx
	mov %rcx, fault_address
	cmpq $0, catch_rsp
	jne 1f
	mov %eax, %edi
	call fault_uncaught
1:	mov $0x10, %ecx
	mov %ecx, %ss
	stac
	jmp caught

/* Runs at another address than it is linked to. */
	.text
	.align 64
	.globl slid_read
slid_read:
	mov (%rdi), %rax
	ret

/* Ring 3 runs these, in a page that the tests map for it. */
	.section .user, "ax"
	.align 4096
	.globl user_read, user_write, user_cpuid, user_invpcid
user_read:
	mov (%rdi), %rax
	int $0x80
user_write:
	mov %rsi, (%rdi)
	xor %eax, %eax
	int $0x80
user_cpuid:					/* command, a, b, c */
	mov %rcx, %r9
	mov %edi, %ecx
	mov %rdx, %rdi
	mov %r9, %rdx
	mov $LEAF, %eax
	cpuid
	int $0x80
user_invpcid:
	invpcid (%rdi), %rsi
	int $0x80
	.align 4096

	.data
	.align 8
gdt:	.quad 0
	.quad 0x00209b0000000000		/* 08: code */
	.quad 0x00cf93000000ffff		/* 10: data */
	.quad 0x00cff3000000ffff		/* 18: user data */
	.quad 0x0020fb0000000000		/* 20: user code */
	.quad 0x0000890000000067, 0		/* 28: TSS */
	.quad 0x00cf9b000000ffff		/* 38: 32-bit code */
gdt_end:
gdt_pointer:
	.word gdt_end - gdt - 1
	.long gdt
idt32_pointer:
	.word 14 * 8 - 1
	.long idt32

	.globl multiboot_info, gp_outside_long_mode
	.globl fault_error, fault_rip, fault_address
multiboot_info:		.long 0
gp_outside_long_mode:	.long 0
catch_rsp:		.quad 0
user_rsp:		.quad 0
fault_error:		.quad 0
fault_rip:		.quad 0
fault_address:		.quad 0

	.bss
	.align 4096
	.globl boot_pml4
boot_pml4:	.skip 4096
boot_pdpt:	.skip 4096
boot_pd:	.skip 4096
idt32:		.skip 4096
tss:		.skip 4096
stack:		.skip 16384
stack_end:
isr_stack:	.skip 16384
isr_stack_end:
