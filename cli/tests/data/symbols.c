// SPDX-License-Identifier: GPL-2.0-only
/*
 * Symbols of all kinds: local, weak, aliases, without a size, nested in another
 * one, a gap behind one, calls through the PLT. Never run.
 */
#include <stdlib.h>

static __attribute__((noinline)) int local_one(int x)
{
	return x * 3 + 1;
}

__attribute__((weak, noinline)) int weak_one(int x)
{
	return local_one(x) ^ 5;
}

int plain_one(int x) __attribute__((alias("__long_name_of_one")));
int __weak_alias(int x) __attribute__((weak, alias("__long_name_of_one")));

__attribute__((noinline)) int __long_name_of_one(int x)
{
	return weak_one(x) - 7;
}

/* The size ends the symbol before the code does, as in hand-written code. */
__asm__(".text\n"
	".p2align 6\n"
	".globl short_one\n"
	".type short_one, @function\n"
	"short_one:\n"
	"	xor %eax, %eax\n"
	"	ret\n"
	".size short_one, .-short_one\n"
	"	.fill 61, 1, 0x90\n"
	/* Neither type nor size: up to the next symbol. */
	".globl bare_one\n"
	"bare_one:\n"
	"	xor %eax, %eax\n"
	"	ret\n"
	/* One in the middle of another. */
	".globl outer_one\n"
	".type outer_one, @function\n"
	"outer_one:\n"
	"	.fill 32, 1, 0x90\n"
	"inner_one:\n"
	".type inner_one, @function\n"
	"	.fill 16, 1, 0x90\n"
	".size inner_one, .-inner_one\n"
	"	.fill 32, 1, 0x90\n"
	"	ret\n"
	".size outer_one, .-outer_one\n");

int main(int argc, char **argv)
{
	/* Through the PLT. */
	return atoi(argv[argc - 1]) + plain_one(argc) + rand();
}
