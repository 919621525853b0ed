// SPDX-License-Identifier: GPL-2.0
/*
 * MAP_FPR is a hint: it is accepted with every type of mapping, changes
 * nothing that a program can see besides the address, and where it cannot be
 * honoured the mapping works as without it and the reason is counted.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <arpa/inet.h>
#include <net/ethernet.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "env.h"
#include "file.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"

#define PAGES		16
#define LENGTH		(PAGES * PAGE)
#define OWN		0x5a

#define INELIGIBLE	"fpr_map_ineligible_"

static struct tfile file;

static void honoured(int flags)
{
	char *p;

	file_make(&file, ON_TMPFS, PAGES, OWN);
	p = fpr_map(&file, 0, PAGES, PROT_READ, flags);
	ENSURE(smaps_has_flag(p, "fr"), "no 'fr' in smaps");
	ENSURE(*p == OWN, "wrong data");
	MUST(munmap(p, LENGTH));
	p = mmap(NULL, LENGTH, PROT_READ, flags, file.fd, 0);
	ENSURE(p != MAP_FAILED, "mmap: %m");
	ENSURE(!smaps_has_flag(p, "fr"), "'fr' in smaps without the flag");
}

static void flag_private(void)
{
	honoured(MAP_PRIVATE);
}

static void flag_shared(void)
{
	honoured(MAP_SHARED);
}

static void flag_validate(void)
{
	void *p;

	honoured(MAP_SHARED_VALIDATE);
	/* An unknown flag is still refused. */
	p = mmap(NULL, LENGTH, PROT_READ,
		 MAP_SHARED_VALIDATE | MAP_FPR | 0x2000000, file.fd, 0);
	ENSURE(p == MAP_FAILED && errno == EOPNOTSUPP,
	       "an unknown flag was accepted");
}

static void flag_with_others(void)
{
	static const int others[] = {
		MAP_POPULATE, MAP_LOCKED, MAP_NORESERVE, MAP_NONBLOCK,
		MAP_POPULATE | MAP_NONBLOCK, MAP_DENYWRITE, MAP_STACK,
	};
	size_t i;

	file_make(&file, ON_TMPFS, PAGES, OWN);
	for (i = 0; i < KTAP_COUNT(others); i++) {
		char *p = fpr_map(&file, 0, PAGES, PROT_READ,
				  MAP_PRIVATE | others[i]);

		ENSURE(p[LENGTH - 1] == OWN, "wrong data");
		MUST(munmap(p, LENGTH));
	}
}

/* Every error is the same with the flag. */
static void same_errors(void)
{
	int read_only, write_only, directory, closed;
	char path[64];
	struct {
		size_t length;
		int prot, flags;
		int *fd;
		off_t offset;
	} calls[] = {
		{ 0, PROT_READ, MAP_SHARED, &file.fd, 0 },
		{ LENGTH, PROT_READ, MAP_SHARED, &file.fd, 1 },
		{ LENGTH, PROT_READ, MAP_SHARED, &closed, 0 },
		{ LENGTH, PROT_READ, 0, &file.fd, 0 },
		{ LENGTH, PROT_WRITE, MAP_SHARED, &read_only, 0 },
		{ LENGTH, PROT_READ, MAP_PRIVATE, &write_only, 0 },
		{ LENGTH, PROT_READ, MAP_PRIVATE, &directory, 0 },
		{ 1UL << 47, PROT_READ, MAP_SHARED, &file.fd, 0 },
		{ ~0UL, PROT_READ, MAP_SHARED, &file.fd, 0 },
		{ LENGTH, PROT_READ, MAP_SHARED, &file.fd,
		  (off_t)(~0UL & ~(PAGE - 1)) },
	};
	size_t i;

	file_make(&file, ON_TMPFS, PAGES, OWN);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file.fd);
	read_only = (int)MUST(open(path, O_RDONLY | O_CLOEXEC));
	write_only = (int)MUST(open(path, O_WRONLY | O_CLOEXEC));
	directory = (int)MUST(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	closed = 999;
	for (i = 0; i < KTAP_COUNT(calls); i++) {
		int plain, flagged;
		void *p;

		p = mmap(NULL, calls[i].length, calls[i].prot, calls[i].flags,
			 *calls[i].fd, calls[i].offset);
		plain = p == MAP_FAILED ? errno : 0;
		p = mmap(NULL, calls[i].length, calls[i].prot,
			 calls[i].flags | MAP_FPR, *calls[i].fd,
			 calls[i].offset);
		flagged = p == MAP_FAILED ? errno : 0;
		ENSURE(plain && plain == flagged,
		       "call %zu: error %d without the flag, %d with it", i,
		       plain, flagged);
	}
}

/* Beyond the end of the file there is a signal, as ever. */
static void beyond_end(void)
{
	char *p;

	file_make(&file, ON_TMPFS, 1, OWN);
	p = fpr_map(&file, 0, 2, PROT_READ, MAP_SHARED);
	ENSURE(*p == OWN, "wrong data");
	ENSURE(probe_read(p + PAGE) == FAULTED, "a page beyond the end");
}

/* mprotect of a part and back, a hole, a move: the flag stays with the rest. */
static void split_and_merge(void)
{
	char *p, *q;

	file_make(&file, ON_TMPFS, PAGES, OWN);
	p = fpr_map(&file, 0, PAGES, PROT_READ, MAP_SHARED);
	MUST(mprotect(p + 4 * PAGE, PAGE, PROT_NONE));
	ENSURE(smaps_has_flag(p, "fr") && smaps_has_flag(p + 4 * PAGE, "fr") &&
	       smaps_has_flag(p + 5 * PAGE, "fr"), "a part lost the flag");
	MUST(mprotect(p + 4 * PAGE, PAGE, PROT_READ));
	ENSURE(smaps_has_flag(p, "fr"), "the whole lost the flag");
	MUST(munmap(p + 8 * PAGE, PAGE));
	ENSURE(probe_read(p + 9 * PAGE) == WORD(OWN), "wrong data");
	q = mremap(p, 8 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		   p + 512 * PAGE);
	ENSURE(q == p + 512 * PAGE, "mremap: %m");
	ENSURE(probe_read(q) == WORD(OWN), "wrong data after a move");
	MUST(munmap(q, 8 * PAGE));
	MUST(munmap(p + 9 * PAGE, LENGTH - 9 * PAGE));
}

/* The mapping works, has no flag, and @reason was counted. */
static void check_ineligible(char *p, const char *reason, long before)
{
	char name[64];

	ENSURE(p != MAP_FAILED, "mmap: %m");
	snprintf(name, sizeof(name), INELIGIBLE "%s", reason);
	ENSURE(!smaps_has_flag(p, "fr"), "'fr' in smaps");
	ENSURE(vmstat(name) == before + 1, "%s rose by %ld, not by 1", name,
	       vmstat(name) - before);
}

static void check_content(const char *p)
{
	size_t seen;

	ENSURE(probe_read(p) == WORD(OWN), "wrong data");
	peer_start(1);
	peer_touch(p, PAGES);
	fpr_unmap_flushes((void *)p, PAGES);
	seen = peer_count(p, PAGES, WORD(OWN));
	ENSURE(!seen, "the peer reads %zu pages after the munmap", seen);
}

static void by_fixed_address(void)
{
	long before = vmstat(INELIGIBLE "address");
	char *at = mmap(NULL, LENGTH, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	char *p;

	file_make(&file, ON_TMPFS, PAGES, OWN);
	p = mmap(at, LENGTH, PROT_READ, MAP_SHARED | MAP_FIXED | MAP_FPR,
		 file.fd, 0);
	check_ineligible(p, "address", before);
	ENSURE(p == at, "another address than the fixed one");
	check_content(p);
}

static void by_hint(void)
{
	long before = vmstat(INELIGIBLE "address");
	char *at = (char *)0x200000000000;
	char *p;

	file_make(&file, ON_TMPFS, PAGES, OWN);
	p = mmap(at, LENGTH, PROT_READ, MAP_SHARED | MAP_FPR, file.fd, 0);
	check_ineligible(p, "address", before);
	ENSURE(p == at, "the hint was not taken");
	check_content(p);
}

static void by_low_address(void)
{
	long before = vmstat(INELIGIBLE "address");
	char *p;

	file_make(&file, ON_TMPFS, PAGES, OWN);
	p = mmap(NULL, LENGTH, PROT_READ, MAP_SHARED | MAP_32BIT | MAP_FPR,
		 file.fd, 0);
	check_ineligible(p, "address", before);
	ENSURE((uintptr_t)p < 1UL << 31, "%p is not a low address", p);
	check_content(p);
}

/* The call of a 32-bit program, which a 64-bit one can make, too. */
static void by_32_bit_call(void)
{
	long before = vmstat(INELIGIBLE "address"), result;

	file_make(&file, ON_TMPFS, PAGES, OWN);
	asm volatile("push	%%rbp\n"
		     "xor	%%ebp, %%ebp\n"
		     "int	$0x80\n"
		     "pop	%%rbp\n"
		     : "=a" (result)
		     : "a" (192L), "b" (0L), "c" (LENGTH), "d" (PROT_READ),
		       "S" (MAP_SHARED | MAP_FPR), "D" (file.fd)
		     : "memory", "cc", "r8", "r9", "r10", "r11");
	if ((int)result == -ENOSYS)
		ktap_skip("no 32-bit calls");
	ENSURE((unsigned long)result < -4095U, "mmap2: error %d",
	       -(int)result);
	check_ineligible((char *)(uintptr_t)(uint32_t)result, "address",
			 before);
	check_content((char *)(uintptr_t)(uint32_t)result);
}

static void by_hugetlb(void)
{
	long before = vmstat(INELIGIBLE "file");
	char *p;
	int fd;

	if (!write_text("/proc/sys/vm/nr_hugepages", "2") ||
	    read_number("/proc/sys/vm/nr_hugepages") < 1)
		ktap_skip("no huge pages");
	fd = memfd_create("ceasefire", MFD_HUGETLB | MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 2 * MIB))
		ktap_skip("no file of huge pages");
	p = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FPR,
		 fd, 0);
	check_ineligible(p, "file", before);
	*p = OWN;
	MUST(munmap(p, 2 * MIB));
	close(fd);
	write_text("/proc/sys/vm/nr_hugepages", "0");
}

static char *map_anonymous(int flags)
{
	return mmap(NULL, LENGTH, PROT_READ | PROT_WRITE,
		    flags | MAP_ANONYMOUS | MAP_FPR, -1, 0);
}

static void flag_anonymous(void)
{
	long before = vmstat("fpr_map");
	char *p = map_anonymous(MAP_PRIVATE);

	ENSURE(p != MAP_FAILED, "mmap: %m");
	ENSURE(smaps_has_flag(p, "fr"), "no 'fr' in smaps");
	ENSURE(vmstat("fpr_map") == before + 1, "the mapping is not counted");
	memset(p, OWN, LENGTH);
	/* Whether it skips is up to the tags of its frames: fpr_anon has that. */
	ENSURE(probe_read(p) == WORD(OWN), "wrong data");
	MUST(munmap(p, LENGTH));
	ENSURE(probe_read(p) == FAULTED, "the mapping is still there");
}

/* What processes share, and what grows by itself. */
static void by_anonymous(void)
{
	static const int kinds[] = { MAP_SHARED, MAP_PRIVATE | MAP_GROWSDOWN };
	size_t i;

	for (i = 0; i < KTAP_COUNT(kinds); i++) {
		long before = vmstat(INELIGIBLE "file");
		char *p = map_anonymous(kinds[i]);

		check_ineligible(p, "file", before);
		memset(p, OWN, LENGTH);
		check_content(p);
		MUST(munmap(p, LENGTH));
	}
}

static void by_packet_ring(void)
{
	struct tpacket_req ring = {
		.tp_block_size = PAGE, .tp_block_nr = PAGES,
		.tp_frame_size = PAGE, .tp_frame_nr = PAGES,
	};
	long before = vmstat(INELIGIBLE "file");
	int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	char *p;

	if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &ring,
				 sizeof(ring)))
		ktap_skip("no packet ring: %s", strerror(errno));
	p = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FPR, fd,
		 0);
	check_ineligible(p, "file", before);
	probe_read(p);
	peer_start(1);
	peer_touch(p, PAGES);
	fpr_unmap_flushes(p, PAGES);
}

static void by_perf_ring(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY, .disabled = 1,
	};
	long before = vmstat(INELIGIBLE "file");
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	char *p;

	if (fd < 0)
		ktap_skip("no perf events: %s", strerror(errno));
	p = mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FPR,
		 fd, 0);
	check_ineligible(p, "file", before);
	peer_start(1);
	peer_touch(p, 9);
	fpr_unmap_flushes(p, 9);
}

static void by_io_uring(void)
{
	struct io_uring_params params = { 0 };
	long before = vmstat(INELIGIBLE "file");
	int fd = (int)syscall(SYS_io_uring_setup, 64, &params);
	char *p;

	if (fd < 0)
		ktap_skip("no io_uring: %s", strerror(errno));
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FPR, fd,
		 IORING_OFF_SQ_RING);
	check_ineligible(p, "file", before);
	peer_start(1);
	peer_touch(p, 1);
	fpr_unmap_flushes(p, 1);
}

static void by_secret_memory(void)
{
	long before = vmstat(INELIGIBLE "file");
	int fd = (int)syscall(447 /* memfd_secret */, 0);
	char *p;

	if (fd < 0 || ftruncate(fd, LENGTH))
		ktap_skip("no secret memory: %s", strerror(errno));
	p = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FPR, fd,
		 0);
	check_ineligible(p, "file", before);
	memset(p, OWN, LENGTH);
	check_content(p);
}

static void by_switch(void)
{
	long before = vmstat(INELIGIBLE "disabled");
	char *p;

	file_make(&file, ON_TMPFS, PAGES, OWN);
	fpr_set("enabled", 0);
	p = mmap(NULL, LENGTH, PROT_READ, MAP_SHARED | MAP_FPR, file.fd, 0);
	check_ineligible(p, "disabled", before);
	check_content(p);
}

/* Switched off while mappings exist: they flush from then on. */
static void switched_off_later(void)
{
	size_t seen;
	char *p;

	file_make(&file, ON_TMPFS, PAGES, OWN);
	peer_start(1);
	hold_debts();
	leave_stale(&file, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
	p = fpr_map(&file, 0, PAGES, PROT_READ, MAP_SHARED);
	peer_touch(p, PAGES);
	fpr_set("enabled", 0);
	fpr_unmap_flushes(p, PAGES);
	seen = peer_count(p, PAGES, WORD(OWN));
	ENSURE(!seen, "the peer reads %zu pages after the munmap", seen);
	fpr_set("enabled", 1);
	leave_stale(&file, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
}

static void by_size(void)
{
	long before = vmstat(INELIGIBLE "limit");
	size_t length = 32 * MIB;
	char *p;

	fpr_arena_size(64 * MIB);
	file_make(&file, ON_TMPFS, PAGES, OWN);
	MUST(ftruncate(file.fd, (off_t)length));
	p = mmap(NULL, length, PROT_READ, MAP_SHARED | MAP_FPR, file.fd, 0);
	check_ineligible(p, "limit", before);
	ENSURE(probe_read(p) == WORD(OWN), "wrong data");
	MUST(munmap(p, length));
}

/* Only this CPU runs the process: a local flush is cheaper than a debt. */
static void alone(void)
{
	long before = vmstat("fpr_flush_local");
	long skips = vmstat("fpr_skip");
	int i;

	file_make(&file, ON_TMPFS, PAGES, OWN);
	for (i = 0; i < 10; i++) {
		char *p = fpr_map(&file, 0, PAGES, PROT_READ, MAP_SHARED);

		probe_read(p);
		MUST(munmap(p, LENGTH));
		/* The hooks are switched on with the first mapping. */
		sleep_ms(5);
	}
	ENSURE(vmstat("fpr_flush_local") > before, "no local flush counted");
	ENSURE(vmstat("fpr_skip") == skips, "skipped for nobody");
}

static void settings(void)
{
	static const char *const refused[][2] = {
		{ "enabled", "maybe" }, { "pool_limit", "many" },
		{ "pool_limit", "-1" }, { "debt_age_ms", "0" },
		{ "debt_age_ms", "soon" }, { "debt_age_ms", "99999999" },
	};
	char path[128];
	size_t i;

	for (i = 0; i < KTAP_COUNT(refused); i++) {
		snprintf(path, sizeof(path),
			 "/sys/kernel/mm/ceasefire/fpr/%s", refused[i][0]);
		ENSURE(!write_text(path, refused[i][1]), "%s takes '%s'",
		       refused[i][0], refused[i][1]);
	}
	fpr_set("debt_age_ms", 250);
	ENSURE(fpr_sysfs("debt_age_ms") == 250, "debt_age_ms is not kept");
	fpr_set("pool_limit", 77);
	ENSURE(fpr_sysfs("pool_limit") == 77, "pool_limit is not kept");
	ENSURE(!access("/sys/kernel/mm/ceasefire/features", R_OK),
	       "no list of features");
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "flag_private", flag_private, 0 },
		{ "flag_shared", flag_shared, 0 },
		{ "flag_validate", flag_validate, 0 },
		{ "flag_anonymous", flag_anonymous, 0 },
		{ "flag_with_others", flag_with_others, 0 },
		{ "same_errors", same_errors, 0 },
		{ "beyond_end", beyond_end, 0 },
		{ "split_and_merge", split_and_merge, 0 },
		{ "by_fixed_address", by_fixed_address, 0 },
		{ "by_hint", by_hint, 0 },
		{ "by_low_address", by_low_address, 0 },
		{ "by_32_bit_call", by_32_bit_call, 0 },
		{ "by_hugetlb", by_hugetlb, 0 },
		{ "by_anonymous", by_anonymous, 0 },
		{ "by_packet_ring", by_packet_ring, 0 },
		{ "by_perf_ring", by_perf_ring, 0 },
		{ "by_io_uring", by_io_uring, 0 },
		{ "by_secret_memory", by_secret_memory, 0 },
		{ "by_switch", by_switch, 0 },
		{ "switched_off_later", switched_off_later, 0 },
		{ "by_size", by_size, 0 },
		{ "alone", alone, 0 },
		{ "settings", settings, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
