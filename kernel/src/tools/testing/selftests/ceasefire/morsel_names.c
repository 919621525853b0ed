// SPDX-License-Identifier: GPL-2.0
/*
 * Morsels with names: who may use them and how, that they stay without a process and go with
 * the name, the group that pays, and the errors of each misuse.
 *
 * Each case mounts a file system of its own, which goes with the process.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "group.h"
#include "ktap.h"
#include "morsels.h"
#include "peer.h"

#define AT	"/mnt"
#define POOL	AT "/pool"
#define SIZE	(2 * UNIT)
#define OWN	WORD(0x5a)
#define NOBODY	65534

static void mounted(void)
{
	/* Skips without morsels. */
	close(morsel_make(UNIT));
	MUST(unshare(CLONE_NEWNS));
	MUST(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	MUST(mount("ceasefire", AT, "morsel", 0, NULL));
}

static int pool_open(int flags)
{
	return (int)MUST(open(POOL, flags | O_CLOEXEC, 0600));
}

static void pool_fill(int fd, size_t pages)
{
	char *p;

	MUST(ftruncate(fd, SIZE));
	p = morsel_map(fd, SIZE, PROT_READ | PROT_WRITE);
	morsel_fill(p, pages, OWN);
	MUST(munmap(p, SIZE));
}

/* With pages of it, and nobody has it open. */
static void pool_make(size_t pages)
{
	int fd = pool_open(O_RDWR | O_CREAT | O_EXCL);

	pool_fill(fd, pages);
	close(fd);
}

/* What a child finds to be wrong: a line of this file, or 0. */
static int found_by_child(int (*what)(void))
{
	int *line = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int found, status;
	pid_t pid;

	ENSURE(line != MAP_FAILED, "mmap: %m");
	*line = -1;
	pid = (pid_t)MUST(fork());
	if (!pid) {
		*line = what();
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0));
	ENSURE(WIFEXITED(status), "the child ended with status %#x", status);
	found = *line;
	munmap(line, PAGE);
	return found;
}

/* The line of the first thing that is not as it has to be, or what was found before. */
static int check(int found, bool right, int line)
{
	return found ?: right ? 0 : line;
}

#define RIGHT(cond)	(wrong = check(wrong, cond, __LINE__))
#define FAILS(call, error)						\
	(errno = 0, RIGHT((long)(call) == -1 && errno == (error)))

static int find_pool(void)
{
	int fd = open(POOL, O_RDWR), wrong = 0;
	char *p;

	RIGHT(fd >= 0);
	p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	RIGHT(p != MAP_FAILED);
	if (wrong)
		return wrong;
	RIGHT(morsel_count(p, 700, OWN) == 700);
	p[699 * PAGE] = 7;
	return wrong;
}

/* It is there without a process, for others, until it has no name and no user. */
static void stay(void)
{
	long before;
	int fd, line;
	char *p;

	mounted();
	before = morsel_sysfs("pages");
	pool_make(700);
	ENSURE(morsel_sysfs("pages") >= before + 700, "gone when it was closed");
	line = found_by_child(find_pool);
	ENSURE(!line, "another process: line %d", line);
	fd = pool_open(O_RDWR);
	p = morsel_map(fd, SIZE, PROT_READ | PROT_WRITE);
	ENSURE(p[699 * PAGE] == 7, "not what the other one has written");
	MUST(unlink(POOL));
	REFUSED(open(POOL, O_RDWR), ENOENT);
	close(fd);
	ENSURE(morsel_count(p, 699, OWN) == 699, "gone with its name");
	MUST(munmap(p, SIZE));
	ENSURE(morsel_sysfs("pages") == before, "%ld pages are left",
	       morsel_sysfs("pages") - before);
}

/* All goes with the mount. */
static void unmounted(void)
{
	long before;
	int fd;
	char *p;

	/* Folders count as well. */
	before = morsel_sysfs("pages");
	mounted();
	pool_make(700);
	MUST(mkdir(AT "/folder", 0700));
	fd = (int)MUST(open(AT "/folder/other", O_RDWR | O_CREAT, 0600));
	pool_fill(fd, 300);
	p = morsel_map(fd, SIZE, PROT_READ);
	close(fd);
	REFUSED(umount(AT), EBUSY);
	ENSURE(morsel_count(p, 300, OWN) == 300, "it was taken away");
	MUST(munmap(p, SIZE));
	MUST(umount(AT));
	ENSURE(morsel_sysfs("pages") == before, "%ld pages are left",
	       morsel_sysfs("pages") - before);
}

static int look_as_nobody(void)
{
	struct morsel_range all = { 0, SIZE };
	struct morsel_vec vec = { .ranges = (uintptr_t)&all, .nr = 1 };
	unsigned int force = MORSEL_FORCE;
	char byte = 1, *p;
	int fd, wrong = 0;

	RIGHT(!setresgid(NOBODY, NOBODY, NOBODY));
	RIGHT(!setresuid(NOBODY, NOBODY, NOBODY));
	FAILS(open(POOL, O_RDWR), EACCES);
	FAILS(truncate(POOL, 0), EACCES);
	FAILS(open(POOL, O_RDONLY | O_TRUNC), EACCES);
	FAILS(unlink(POOL), EPERM);
	FAILS(rename(POOL, AT "/mine"), EPERM);
	FAILS(chmod(POOL, 0666), EPERM);
	fd = open(POOL, O_RDONLY);
	RIGHT(fd >= 0);
	FAILS(mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
	      EACCES);
	p = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
	RIGHT(p != MAP_FAILED);
	if (wrong)
		return wrong;
	RIGHT(morsel_count(p, 700, OWN) == 700);
	FAILS(mprotect(p, SIZE, PROT_READ | PROT_WRITE), EACCES);
	FAILS(mprotect(p, SIZE, PROT_READ | PROT_EXEC), EACCES);
	FAILS(write(fd, &byte, 1), EBADF);
	FAILS(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			PAGE), EBADF);
	FAILS(madvise(p, PAGE, MADV_REMOVE), EACCES);
	FAILS(ftruncate(fd, 0), EINVAL);
	FAILS(ioctl(fd, MORSEL_IOC_DEPOPULATE, &vec), EPERM);
	FAILS(ioctl(fd, MORSEL_IOC_POPULATE, &vec), EPERM);
	FAILS(ioctl(fd, MORSEL_IOC_DESTROY, &force), EPERM);
	/* Nothing of its own is refused. */
	fd = open(AT "/mine", O_RDWR | O_CREAT | O_EXCL, 0600);
	RIGHT(fd >= 0 && !ftruncate(fd, SIZE));
	RIGHT(!unlink(AT "/mine"));
	return wrong;
}

/* Who may read it can only read it. */
static void rights(void)
{
	struct stat is;
	int line, fd;
	char *p;

	mounted();
	pool_make(700);
	MUST(chmod(POOL, 0644));
	line = found_by_child(look_as_nobody);
	ENSURE(!line, "line %d", line);
	fd = pool_open(O_RDONLY);
	p = morsel_map(fd, SIZE, PROT_READ);
	ENSURE(morsel_count(p, 700, OWN) == 700, "it was changed");
	MUST(fstat(fd, &is));
	ENSURE(is.st_size == SIZE && is.st_blocks >= 8 * 700, "size %ld, %ld blocks",
	       (long)is.st_size, (long)is.st_blocks);
}

static int execute_pool(void)
{
	char path[] = POOL, *words[] = { path, NULL };
	int wrong = 0;

	FAILS(execv(path, words), EACCES);
	return wrong;
}

/* What it is not: a place for programs, devices, and links that lead elsewhere. */
static void refused(void)
{
	int fd, line;

	mounted();
	pool_make(1);
	MUST(chmod(POOL, 0755));
	fd = pool_open(O_RDWR);
	REFUSED(mmap(NULL, SIZE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0),
		EPERM);
	REFUSED(mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, fd, 0), EINVAL);
	line = found_by_child(execute_pool);
	ENSURE(!line, "executed: %m");
	REFUSED(mknod(AT "/pipe", S_IFIFO | 0600, 0), EPERM);
	REFUSED(mknod(AT "/null", S_IFCHR | 0600, 0x103), EPERM);
	REFUSED(symlink("/etc/passwd", AT "/link"), EPERM);
	REFUSED(open(POOL, O_RDWR | O_DIRECT), EINVAL);
	REFUSED(mount("ceasefire", "/tmp", "morsel", 0, "mode=17777"), EINVAL);
	REFUSED(mount("ceasefire", "/tmp", "morsel", 0, "size=1G"), EINVAL);
	MUST(mount("ceasefire", "/tmp", "morsel", 0, "mode=0710,uid=1,gid=2"));
}

static void not_allowed(void)
{
	const char *path = "/sys/kernel/mm/ceasefire/morsel/enabled";
	int made, unnamed, errors[2], there;

	mounted();
	pool_make(1);
	ENSURE(write_text(path, "never"), "%s: %m", path);
	made = open(AT "/new", O_RDWR | O_CREAT, 0600);
	errors[0] = errno;
	unnamed = open(AT, O_RDWR | O_TMPFILE, 0600);
	errors[1] = errno;
	there = open(POOL, O_RDWR);
	ENSURE(write_text(path, "ask"), "%s: %m", path);
	ENSURE(made < 0 && errors[0] == EPERM, "made although root does not allow it");
	ENSURE(unnamed < 0 && errors[1] == EPERM, "made without a name");
	ENSURE(there >= 0, "what is there cannot be opened");
}

/* Names take memory, and are not without a limit. */
static void limited(void)
{
	long most = morsel_sysfs("limit"), before;
	char path[40];
	int i, error = 0;

	mounted();
	before = morsel_sysfs("pages");
	morsel_set("limit", before + 100);
	for (i = 0; i < 1000 && !error; i++) {
		snprintf(path, sizeof(path), AT "/%d", i);
		if (i % 2 ? mkdir(path, 0700) : mknod(path, S_IFREG | 0600, 0))
			error = errno;
	}
	morsel_set("limit", most);
	ENSURE(error == ENOMEM && i <= 101, "%d names, error %d", i, error);
	MUST(umount(AT));
	ENSURE(morsel_sysfs("pages") <= before, "%ld pages are left",
	       morsel_sysfs("pages") - before);
}

/* Folders, names and links are as in other file systems. */
static void folders(void)
{
	struct statfs fs;
	struct stat is;
	char path[40];
	int fd;

	mounted();
	MUST(mkdir(AT "/one", 0700));
	MUST(mkdir(AT "/two", 0700));
	pool_make(10);
	MUST(link(POOL, AT "/one/same"));
	MUST(rename(AT "/one/same", AT "/two/other"));
	REFUSED(rmdir(AT "/two"), ENOTEMPTY);
	MUST(rmdir(AT "/one"));
	MUST(unlink(POOL));
	fd = (int)MUST(open(AT "/two/other", O_RDWR));
	MUST(fstat(fd, &is));
	ENSURE(is.st_nlink == 1 && morsel_stat(fd).pages == 10, "%d links",
	       (int)is.st_nlink);
	close(fd);
	/* One that gets its name when it is filled. */
	fd = (int)MUST(open(AT, O_RDWR | O_TMPFILE, 0600));
	pool_fill(fd, 20);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	MUST(linkat(AT_FDCWD, path, AT_FDCWD, POOL, AT_SYMLINK_FOLLOW));
	close(fd);
	fd = pool_open(O_RDONLY);
	ENSURE(morsel_stat(fd).pages == 20, "%llu pages",
	       (unsigned long long)morsel_stat(fd).pages);
	MUST(statfs(AT, &fs));
	ENSURE((long)fs.f_blocks == morsel_sysfs("limit") &&
	       (long)fs.f_bfree <= morsel_sysfs("limit") - 30 &&
	       fs.f_bsize == (long)PAGE, "df: %ld of %ld", (long)fs.f_bfree,
	       (long)fs.f_blocks);
}

/* Changed by write() and by what takes away, as for other files. */
static void times(void)
{
	struct stat before, after;
	char byte = 1;
	int fd;

	mounted();
	pool_make(2);
	fd = pool_open(O_RDWR);
	MUST(fstat(fd, &before));
	sleep_ms(50);
	ENSURE(pwrite(fd, &byte, 1, 0) == 1, "pwrite: %m");
	MUST(fstat(fd, &after));
	ENSURE(memcmp(&before.st_mtim, &after.st_mtim, sizeof(after.st_mtim)),
	       "not by write()");
	before = after;
	sleep_ms(50);
	MUST(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE));
	MUST(fstat(fd, &after));
	ENSURE(memcmp(&before.st_mtim, &after.st_mtim, sizeof(after.st_mtim)),
	       "not by a hole");
	before = after;
	sleep_ms(50);
	MUST(truncate(POOL, PAGE));
	MUST(fstat(fd, &after));
	ENSURE(memcmp(&before.st_mtim, &after.st_mtim, sizeof(after.st_mtim)),
	       "not by truncate()");
}

/* The group that has made it pays, also when nobody is in it any more. */
static void charged(void)
{
	long before, now;
	int fd;

	mounted();
	group_start();
	fd = pool_open(O_RDWR | O_CREAT);
	before = group_value(GROUP_OWN, "memory.current");
	pool_fill(fd, 1000);
	group_leave();
	close(fd);
	now = group_value(GROUP_OWN, "memory.current") - before;
	/* Some were paid for ahead. */
	ENSURE(now >= 900 * (long)PAGE, "%ld bytes are in the group", now);
	MUST(unlink(POOL));
	now = group_value(GROUP_OWN, "memory.current") - before;
	ENSURE(now <= (long)MIB, "%ld bytes stay in it", now);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "stay", stay, 0 },
		{ "unmounted", unmounted, 0 },
		{ "rights", rights, 0 },
		{ "refused", refused, 0 },
		{ "not_allowed", not_allowed, 0 },
		{ "limited", limited, 0 },
		{ "folders", folders, 0 },
		{ "times", times, 0 },
		{ "charged", charged, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
