// SPDX-License-Identifier: GPL-2.0-only
/*
 * awkward.c - programs in which it is dangerous to say something
 *
 * What: `awkward CASE FILE [MORE]` brings its standard error into a state in
 *       which a write kills or stops the program or lands in its data, and then
 *       maps the file. Some start themselves once more for that. Exit status 0:
 *       as without the library; 4: this file system cannot show it.
 * Who:  test-output.c.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define LENGTH 70001UL
#define CANNOT_SHOW 4
#define MOST_FILES 200

/* The library whose constructor opens and maps; see early.c. */
extern int early_errors(void);

static char **arguments;

static void die(const char *what)
{
	dprintf(STDERR_FILENO, "awkward: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int open_file(int flags)
{
	int fd = open(arguments[2], flags);

	if (fd < 0)
		die(arguments[2]);
	return fd;
}

static void map(int fd)
{
	if (mmap(NULL, LENGTH, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
		die("mmap");
}

static void start_again(const char *which)
{
	char *const argv[] = { arguments[0], (char *)which, arguments[2],
			       arguments[3], NULL };

	execve("/proc/self/exe", argv, environ);
	_exit(1);
}

static void case_plain(void)
{
	map(open_file(O_RDONLY));
}

static void no_file_space(void)
{
	const struct rlimit none = { 0, 0 };

	if (setrlimit(RLIMIT_FSIZE, &none))
		die("RLIMIT_FSIZE");
}

/* `ulimit -f`: a write is SIGXFSZ. */
static void case_file_size(void)
{
	no_file_space();
	map(open_file(O_RDONLY));
}

/* The signal that the program itself has waiting is not taken away. */
static void case_file_size_waiting(void)
{
	sigset_t set;

	no_file_space();
	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGXFSZ);
	map(open_file(O_RDONLY));
	sigpending(&set);
	if (!sigismember(&set, SIGXFSZ))
		exit(1);
}

/* Nobody reads: a write is SIGPIPE. */
static void case_pipe(void)
{
	int ends[2];

	if (pipe(ends) || dup2(ends[1], STDERR_FILENO) < 0)
		die("pipe");
	close(ends[0]);
	close(ends[1]);
	start_again("plain");
}

/* In the background of a terminal with tostop: a write is SIGTTOU. */
static void write_in_background(const char *terminal, int until)
{
	struct termios mode;
	char byte;
	int fd, status;
	pid_t pid;

	if (setsid() < 0)
		_exit(10);
	fd = open(terminal, O_RDWR);
	if (fd < 0 || tcgetattr(fd, &mode))
		_exit(11);
	mode.c_lflag |= TOSTOP;
	if (tcsetattr(fd, TCSANOW, &mode))
		_exit(12);
	pid = fork();
	if (!pid) {
		if (setpgid(0, 0) || dup2(fd, STDERR_FILENO) < 0)
			_exit(13);
		start_again("plain");
	}
	if (pid < 0 || waitpid(pid, &status, WUNTRACED) != pid)
		_exit(14);
	if (WIFSTOPPED(status)) {
		kill(pid, SIGKILL);
		_exit(15);
	}
	/* What was written may be lost with the end of the session. */
	if (status || read(until, &byte, 1) != 0)
		_exit(16);
	_exit(0);
}

static void case_terminal(void)
{
	int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	char said[1000] = "";
	int status, ends[2];
	pid_t pid;

	if (fd < 0 || grantpt(fd) || unlockpt(fd) || pipe(ends))
		die("terminal");
	pid = fork();
	if (!pid) {
		close(ends[1]);
		write_in_background(ptsname(fd), ends[0]);
	}
	/* Ends with the session when nothing is said. */
	if (read(fd, said, sizeof(said) - 1) < 0)
		said[0] = '\0';
	close(ends[1]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		die("fork");
	if (status) {
		dprintf(STDERR_FILENO, "in the background: %d\n",
			WEXITSTATUS(status));
		exit(1);
	}
	if (!strstr(said, "ceasefire["))
		die("nothing was said");
}

/* Standard error is closed from the start; the next file gets its number. */
static void case_closed(void)
{
	close(STDERR_FILENO);
	start_again("data");
}

static void case_data(void)
{
	int fd = open_file(O_RDWR);

	if (fd != STDERR_FILENO)
		exit(1);
	map(fd);
}

/* The same, but a library opens the file in its constructor: see early.c. */
static void case_closed_early(void)
{
	close(STDERR_FILENO);
	start_again("early-data");
}

static void case_early_data(void)
{
	struct stat st;

	if (fstat(STDERR_FILENO, &st) || !S_ISREG(st.st_mode))
		exit(1);
	map(STDERR_FILENO);
}

/* The log is removed, and a file of the program gets its inode number. */
static void case_log(void)
{
	int fd = open(arguments[3], O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
		die(arguments[3]);
	close(fd);
	start_again("same-number");
}

static void case_same_number(void)
{
	struct stat old, st;
	char name[1000];

	if (fstat(STDERR_FILENO, &old))
		exit(1);
	close(STDERR_FILENO);
	unlink(arguments[3]);
	for (int i = 0; i < MOST_FILES; i++) {
		int fd;

		snprintf(name, sizeof(name), "%s.%d", arguments[3], i);
		fd = open(name, O_RDWR | O_CREAT, 0600);
		if (fd < 0 || fstat(fd, &st))
			exit(1);
		if (st.st_ino != old.st_ino || st.st_dev != old.st_dev) {
			/* Keep all but the first, so that numbers are used. */
			dup(fd);
			close(fd);
			continue;
		}
		if (fd != STDERR_FILENO && dup2(fd, STDERR_FILENO) < 0)
			exit(1);
		map(open_file(O_RDONLY));
		exit(fstat(STDERR_FILENO, &st) || st.st_size);
	}
	exit(CANNOT_SHOW);
}

/* Without LD_PRELOAD: loaded and unloaded by hand, in use in between. */
static void case_unload(void)
{
	void *handle = dlopen(arguments[3], RTLD_NOW | RTLD_LOCAL);
	void *(*call)(void *, size_t, int, int, int, off_t);
	int fd = open_file(O_RDONLY);

	if (!handle)
		die(dlerror());
	*(void **)&call = dlsym(handle, "mmap");
	if (!call || dlclose(handle))
		die("dlclose");
	if (call(NULL, LENGTH, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
		die("mmap");
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "plain", case_plain },
	{ "file-size", case_file_size },
	{ "file-size-waiting", case_file_size_waiting },
	{ "pipe", case_pipe },
	{ "terminal", case_terminal },
	{ "closed", case_closed },
	{ "data", case_data },
	{ "closed-early", case_closed_early },
	{ "early-data", case_early_data },
	{ "log", case_log },
	{ "same-number", case_same_number },
	{ "unload", case_unload },
};

int main(int argc, char **argv)
{
	arguments = argv;
	if (early_errors())
		die("mapping in a constructor");
	for (size_t i = 0; argc >= 3 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(argv[1], cases[i].name) == 0) {
			cases[i].run();
			return 0;
		}
	}
	fprintf(stderr, "usage: awkward CASE FILE [MORE]\n");
	return 2;
}
