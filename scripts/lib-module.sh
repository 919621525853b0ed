# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# A module that includes each hooked header by itself. Sourced by check-headers and by
# tests/packages/test-kernel.

# Headers that hooks edit and that stand alone in Linux: drivers may include them first.
HEADERS=(asm/{mmu,pgtable,pgtable_types,tlbflush}.h
	linux/{hugetlb,memcontrol,mm,mm_types,mmzone,sched,vm_event_item}.h linux/ceasefire.h)

# write_module FOLDER: the source of the module hello; each header is the first that one of its
# files includes.
write_module() {
	local header name objects=(main.o)
	mkdir -p "$1"
	cat >"$1/main.c" <<-'END'
		#include <linux/mm.h>
		#include <linux/module.h>
		static int __init hello(void)
		{
			return current->mm ? 0 : -EINVAL;
		}
		module_init(hello);
		MODULE_LICENSE("GPL");
	END
	for header in "${HEADERS[@]}"; do
		name=${header//[.\/]/_}
		printf '#include <%s>\n' "$header" >"$1/$name.c"
		objects+=("$name.o")
	done
	printf '%s\n' 'obj-m := hello.o' "hello-y := ${objects[*]}" >"$1/Makefile"
}
