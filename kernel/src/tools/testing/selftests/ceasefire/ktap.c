// SPDX-License-Identifier: GPL-2.0
/* Runner of the attack tests, see ktap.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "checker.h"
#include "context.h"
#include "env.h"
#include "ktap.h"

#define EXIT_SKIPPED	4
#define EXIT_RETRY	5
#define EXIT_DOUBT	6

/* Of a case that has nothing to attack with. */
#define TRIES		5
/* So often it is no moment of a busy machine. */
#define LEAST_DOUBTS	2

/* Shared between the runner and the process of the case. */
struct report {
	char skip[200];
	char expected_log[64];
	bool failed;
};

static struct report *report;
static int kmsg = -1;

static const char *const log_troubles[] = {
	"WARNING: ", "BUG: ", "kernel BUG at", "Oops", "general protection", ": bad p",
	"possible recursive locking", "possible circular locking",
	"inconsistent lock state", "suspicious RCU usage", "rcu_preempt",
	"soft lockup", "blocked for more than", "memory corruption",
	"Bad page state", "Bad rss-counter", "non-zero pgtables_bytes",
	"page dumped because",
};

static void print_lines(FILE *to, const char *format, va_list args)
{
	char text[1024];
	char *line, *rest = text;

	vsnprintf(text, sizeof(text), format, args);
	while ((line = strsep(&rest, "\n")))
		fprintf(to, "# %s\n", line);
	fflush(to);
}

void ktap_note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_lines(stdout, format, args);
	va_end(args);
}

void ktap_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_lines(stdout, format, args);
	va_end(args);
	report->failed = true;
	_exit(1);
}

void ktap_retry(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_lines(stdout, format, args);
	va_end(args);
	_exit(EXIT_RETRY);
}

void ktap_doubt(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_lines(stdout, format, args);
	va_end(args);
	_exit(EXIT_DOUBT);
}

void ktap_skip(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(report->skip, sizeof(report->skip), format, args);
	va_end(args);
	_exit(EXIT_SKIPPED);
}

void ktap_expect_log(const char *part)
{
	snprintf(report->expected_log, sizeof(report->expected_log), "%s",
		 part);
}

static void open_kmsg(void)
{
	kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (kmsg >= 0)
		lseek(kmsg, 0, SEEK_END);
}

/* True when nothing bad was logged since the last call. */
static bool log_is_clean(void)
{
	char record[4096];
	bool clean = true;
	ssize_t n;

	if (kmsg < 0)
		return true;
	for (;;) {
		char *text, *end;
		size_t i;

		n = read(kmsg, record, sizeof(record) - 1);
		if (n < 0 && errno == EPIPE)
			continue;	/* overwritten, go on with the rest */
		if (n <= 0)
			return clean;
		record[n] = '\0';
		text = strchr(record, ';');
		text = text ? text + 1 : record;
		end = strchr(text, '\n');
		if (end)
			*end = '\0';
		if (report->expected_log[0] &&
		    strstr(text, report->expected_log))
			continue;
		for (i = 0; i < KTAP_COUNT(log_troubles); i++) {
			if (!strstr(text, log_troubles[i]))
				continue;
			printf("# kernel log: %s\n", text);
			clean = false;
			break;
		}
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Wait for @pid; on timeout kill its process group. Returns a wait status. */
static int wait_case(pid_t pid, unsigned int timeout, bool *timed_out)
{
	double end = now() + timeout;
	int status;

	*timed_out = false;
	for (;;) {
		struct timespec nap = { .tv_nsec = 5000000 };
		pid_t done = waitpid(pid, &status, WNOHANG);

		if (done == pid)
			break;
		if (done < 0 && errno != EINTR)
			return 1 << 8;
		if (!*timed_out && now() > end) {
			*timed_out = true;
			kill(-pid, SIGKILL);
			kill(pid, SIGKILL);
		}
		nanosleep(&nap, NULL);
	}
	kill(-pid, SIGKILL);	/* what the case left running */
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	return status;
}

/*
 * An idle CPU keeps the address space that ran there last. The kernel checks
 * what is left of it when it lets go.
 */
static void visit_all_cpus(void)
{
	int cpu;

	for (cpu = online_cpus() - 1; cpu >= 0; cpu--)
		pin_to_cpu(cpu);
}

/* With nothing to attack with a case has run in vain, and nobody knows more. */
enum verdict { PASSED, FAILED, DOUBTFUL, VAIN };

static enum verdict verdict_of(int status)
{
	switch (status) {
	case 0:
	case EXIT_SKIPPED:
		return PASSED;
	case EXIT_RETRY:
		return VAIN;
	case EXIT_DOUBT:
		return DOUBTFUL;
	default:
		return FAILED;
	}
}

static enum verdict run_case(const struct ktap_case *c)
{
	struct fpr_settings settings;
	enum verdict verdict = FAILED;
	bool timed_out, ok = true;
	long contexts, groups, parked;
	int status;
	pid_t pid;

	memset(report, 0, sizeof(*report));
	fpr_save_settings(&settings);
	contexts = fpr_sysfs("contexts");
	groups = fpr_sysfs("groups");
	parked = fpr_sysfs("parked");
	fflush(stdout);
	pid = fork();
	if (pid < 0) {
		printf("# fork: %m\n");
		return FAILED;
	}
	if (!pid) {
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		checker_watch();
		if (lazy())
			MUST(context_lazy(1));
		c->run();
		fflush(stdout);
		_exit(0);
	}
	setpgid(pid, pid);
	status = wait_case(pid, c->timeout ? c->timeout : KTAP_TIMEOUT,
			   &timed_out);
	fpr_restore_settings(&settings);
	if (timed_out) {
		printf("# not done after %u s\n",
		       c->timeout ? c->timeout : KTAP_TIMEOUT);
		ok = false;
	} else if (WIFSIGNALED(status)) {
		printf("# killed by signal %d (%s)\n", WTERMSIG(status),
		       strsignal(WTERMSIG(status)));
		ok = false;
	} else {
		verdict = verdict_of(WEXITSTATUS(status));
	}
	/* I6: exit leaves no context, no group and no parked frame behind. */
	if (!fpr_wait_sysfs_at_most("contexts", contexts, LEFT_LIMIT_S)) {
		printf("# %ld contexts are left, %ld before the case\n",
		       fpr_sysfs("contexts"), contexts);
		ok = false;
	}
	if (!fpr_wait_sysfs_at_most("groups", groups, LEFT_LIMIT_S)) {
		printf("# %ld groups are left, %ld before the case\n",
		       fpr_sysfs("groups"), groups);
		ok = false;
	}
	if (!fpr_wait_sysfs_at_most("parked", parked, LEFT_LIMIT_S)) {
		printf("# %ld frames are still parked, %ld before the case\n",
		       fpr_sysfs("parked"), parked);
		ok = false;
	}
	visit_all_cpus();
	return log_is_clean() && ok ? verdict : FAILED;
}

/* PASSED also if it was skipped. */
static enum verdict try_case(const struct ktap_case *c)
{
	enum verdict verdict = VAIN;
	int tries, doubts = 0;

	for (tries = 0; tries < TRIES && verdict >= DOUBTFUL; tries++) {
		verdict = run_case(c);
		doubts += verdict == DOUBTFUL;
	}
	if (verdict < DOUBTFUL)
		return verdict;
	return doubts >= LEAST_DOUBTS ? DOUBTFUL : VAIN;
}

static bool selected(const char *name, int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (!fnmatch(argv[i], name, 0))
			return true;
	return argc < 2;
}

static int usage(const char *program, const struct ktap_case *cases,
		 size_t count, const char *unknown)
{
	size_t i;

	if (unknown)
		fprintf(stderr, "%s: no case '%s'; see %s -l\n", program,
			unknown, program);
	for (i = 0; !unknown && i < count; i++)
		puts(cases[i].name);
	return unknown ? 2 : 0;
}

int ktap_main(int argc, char **argv, const struct ktap_case *cases,
	      size_t count)
{
	size_t i, planned = 0, number = 0, failed = 0, vain = 0, skipped = 0;
	int a;

	if (argc == 2 && !strcmp(argv[1], "-l"))
		return usage(argv[0], cases, count, NULL);
	for (a = 1; a < argc; a++) {
		bool known = false;

		for (i = 0; i < count; i++)
			known |= !fnmatch(argv[a], cases[i].name, 0);
		if (!known)
			return usage(argv[0], cases, count, argv[a]);
	}
	for (i = 0; i < count; i++)
		planned += selected(cases[i].name, argc, argv);

	setvbuf(stdout, NULL, _IOLBF, 0);
	report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (report == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	printf("KTAP version 1\n");
	if (!fpr_supported()) {
		printf("1..0 # SKIP no /sys/kernel/mm/ceasefire/fpr: boot a kernel with FPR\n");
		return EXIT_SKIPPED;
	}
	printf("1..%zu\n", planned);
	open_kmsg();
	/* The peers have the other CPUs for themselves. */
	pin_to_cpu(0);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (i = 0; i < count; i++) {
		enum verdict verdict;
		bool ok;

		if (!selected(cases[i].name, argc, argv))
			continue;
		verdict = try_case(&cases[i]);
		ok = verdict == PASSED;
		printf("%s %zu %s", ok ? "ok" : "not ok", ++number,
		       cases[i].name);
		if (ok && report->skip[0]) {
			printf(" # SKIP %s", report->skip);
			skipped++;
		}
		printf("\n");
		failed += !ok;
		vain += verdict == VAIN;
	}
	if (failed)
		return vain == failed ? EXIT_RETRY : 1;
	return skipped && skipped == planned ? EXIT_SKIPPED : 0;
}
