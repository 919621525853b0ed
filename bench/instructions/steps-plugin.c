// SPDX-License-Identifier: GPL-2.0-only
/*
 * steps-plugin.c - which code a guest runs between two marks
 *
 * What: a plugin of QEMU's translator. A mark is an instruction that does
 *       nothing and that nobody else has (mark.h). Of what the CPU that runs it
 *       does until the next mark,
 *         out=FILE     has each block of code: 16 bytes, its address and the
 *                      number of its instructions,
 *         total=FILE   has the number of instructions: 8 bytes.
 * Who:  `ceasefire bench instructions --profile` (out), see
 *       cli/ceasefire/bench/cost/profile.py; `beside-cost` (total), cost/marked.py.
 *
 * The declarations are the part of QEMU's plugin interface, version 1 (QEMU 4.2
 * to 8), that is used here; Debian has no package with the header. All CPUs are
 * emulated by one thread, as under -icount.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void (*run_callback)(unsigned int cpu, void *data);

extern void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id,
		void (*callback)(uint64_t id, struct qemu_plugin_tb *block));
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block,
		run_callback callback, int flags, void *data);
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
		run_callback callback, int flags, void *data);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *block);
extern struct qemu_plugin_insn *
qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
extern const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
extern size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

__attribute__((visibility("default"))) int
qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv);

struct block {
	uint64_t address, instructions;
};

/* nopl MARK(%rax) */
static const unsigned char mark[] = { 0x0f, 0x1f, 0x80, 0xf1, 0x5e, 0xea, 0x0c };
/* The CPU that has begun; no other one is counted. */
static bool noting;
static unsigned int noted_cpu;
static uint64_t total;
static bool only_total;
static FILE *out;

static void on_block(unsigned int cpu, void *data)
{
	const struct block *block = data;

	if (!noting || cpu != noted_cpu)
		return;
	total += block->instructions;
	if (!only_total && fwrite(block, sizeof(*block), 1, out) != 1)
		abort();
}

static void on_mark(unsigned int cpu, void *data)
{
	(void)data;
	noting = !noting;
	noted_cpu = cpu;
	if (!noting && only_total && fwrite(&total, sizeof(total), 1, out) != 1)
		abort();
	if (!noting && fflush(out))
		abort();
	total = 0;
}

static void on_translation(uint64_t id, struct qemu_plugin_tb *tb)
{
	size_t count = qemu_plugin_tb_n_insns(tb);
	/* Stays: nobody says when a block is forgotten. */
	struct block *block = malloc(sizeof(*block));

	(void)id;
	if (!block)
		abort();
	*block = (struct block){ qemu_plugin_tb_vaddr(tb), count };
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, 0, block);
	for (size_t i = 0; i < count; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		if (qemu_plugin_insn_size(insn) == sizeof(mark) &&
		    !memcmp(qemu_plugin_insn_data(insn), mark, sizeof(mark)))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark, 0,
							       NULL);
	}
}

int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv)
{
	(void)info;
	const char *path = argc == 1 ? strchr(argv[0], '=') : NULL;

	only_total = path && !strncmp(argv[0], "total=", 6);
	if (!path || (!only_total && strncmp(argv[0], "out=", 4) != 0)) {
		fputs("steps-plugin: give out=FILE or total=FILE\n", stderr);
		return 1;
	}
	out = fopen(++path, "wb");
	if (!out) {
		perror(path);
		return 1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	return 0;
}
