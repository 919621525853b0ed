// SPDX-License-Identifier: GPL-2.0
/*
 * prctl(PR_FPR, PR_FPR_SET_AUTO): whole processes. Which mappings it is for, who
 * inherits it, who must not (I2), and what 32-bit callers see.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "context.h"
#include "env.h"
#include "file.h"
#include "ktap.h"

#define PAGES	16
#define LENGTH	(PAGES * PAGE)
#define NOBODY	65534
#define PRCTL_OF_32_BITS	172

static int set_auto(unsigned long bytes)
{
	return prctl(PR_FPR, PR_FPR_SET_AUTO, bytes, 0, 0);
}

static uint64_t get_auto(void)
{
	uint64_t bytes = 1;

	MUST(prctl(PR_FPR, PR_FPR_GET_AUTO, &bytes, 0, 0));
	return bytes;
}

static bool recycles(const struct tfile *f)
{
	char *p = mmap(NULL, LENGTH, PROT_READ, MAP_SHARED, f->fd, 0);
	bool found;

	ENSURE(p != MAP_FAILED, "mmap: %m");
	found = smaps_has_flag(p, "fr");
	MUST(munmap(p, LENGTH));
	return found;
}

static void by_size(void)
{
	struct tfile f;

	file_make(&f, ON_TMPFS, PAGES, 1);
	ENSURE(!get_auto() && !recycles(&f), "it is not off by default");
	MUST(set_auto(LENGTH));
	ENSURE(recycles(&f), "a file of just that size is not treated");
	MUST(set_auto(LENGTH - 1));
	ENSURE(!recycles(&f), "a larger file is treated");
	MUST(set_auto(~0UL));
	ENSURE(recycles(&f) && get_auto() == ~0UL, "~0 does not mean all");
	MUST(set_auto(0));
	ENSURE(!recycles(&f), "it cannot be switched off");
}

/* Exit status of a program that says whether it has the switch. */
static int run_asker(const char *path, uid_t uid)
{
	int status;
	pid_t child = MUST(fork());

	if (!child) {
		if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
			_exit(3);
		execl(path, "fpr_prctl", "--ask", NULL);
		_exit(127);
	}
	MUST(waitpid(child, &status, 0));
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void inherited(void)
{
	int got;

	MUST(set_auto(~0UL));
	got = run_asker("/proc/self/exe", 0);
	ENSURE(got == 1, "the program that was executed says %d", got);
}

/* Who starts a set-user-ID program must not decide that for it. */
static void privileged(void)
{
	char path[] = "/run/ceasefire-ask-XXXXXX";
	struct stat own;
	int from, to, got;

	from = MUST(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
	MUST(fstat(from, &own));
	to = MUST(mkostemp(path, O_CLOEXEC));
	ENSURE(sendfile(to, from, NULL, (size_t)own.st_size) == own.st_size,
	       "no copy of the program: %m");
	MUST(fchmod(to, 0755));
	close(to);
	MUST(set_auto(~0UL));
	got = run_asker(path, NOBODY);
	if (got == 1) {
		MUST(chmod(path, 04755));
		got = run_asker(path, NOBODY);
		unlink(path);
		ENSURE(got == 0, "a set-user-ID program says %d", got);
		return;
	}
	unlink(path);
	ktap_fail("a program without privileges says %d", got);
}

static long prctl_of_32_bits(long operation, long argument)
{
	long ret;

	asm volatile("int $0x80" : "=a" (ret)
		     : "a" ((long)PRCTL_OF_32_BITS), "b" ((long)PR_FPR),
		       "c" (operation), "d" (argument), "S" (0L), "D" (0L)
		     : "memory", "r8", "r9", "r10", "r11");
	return (int)ret;
}

static void of_32_bits(void)
{
	uint64_t *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	ENSURE(at != MAP_FAILED, "mmap: %m");
	if (prctl_of_32_bits(PR_FPR_SET_AUTO, -1) == -ENOSYS)
		ktap_skip("no 32-bit system calls");
	ENSURE(get_auto() == ~0UL, "~0UL has become %#lx",
	       (unsigned long)get_auto());
	ENSURE(!prctl_of_32_bits(PR_FPR_GET_AUTO, (long)at), "prctl fails");
	ENSURE(*at == ~0UL, "it stores %#lx", (unsigned long)*at);
}

static void wrong_use(void)
{
	ENSURE(prctl(PR_FPR, 99, 0, 0, 0) == -1 && errno == EINVAL,
	       "an unknown operation is accepted");
	ENSURE(prctl(PR_FPR, PR_FPR_SET_AUTO, 0, 1, 0) == -1 && errno == EINVAL,
	       "an unused argument is accepted");
	ENSURE(prctl(PR_FPR, PR_FPR_GET_AUTO, 8, 0, 0) == -1 && errno == EFAULT,
	       "a bad pointer is accepted");
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "by_size", by_size, 0 },
		{ "inherited", inherited, 0 },
		{ "privileged", privileged, 0 },
		{ "of_32_bits", of_32_bits, 0 },
		{ "wrong_use", wrong_use, 0 },
	};

	if (argc == 2 && !strcmp(argv[1], "--ask"))
		return get_auto() != 0;
	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
