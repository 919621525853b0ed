// SPDX-License-Identifier: GPL-2.0
/*
 * Memory failure in a morsel: the page goes, from all who use it, and nobody takes zeroes for
 * what was lost; the rest stays, and the frame is never used again.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#include "frames.h"
#include "ktap.h"
#include "map.h"
#include "morsels.h"
#include "peer.h"
#include "stranger.h"
#include "worker.h"

#define OWN	WORD(0x5a)
#define PAGES	700
/* The page that breaks. */
#define AT	305
/* In another table, and in another entry of a direct-mapped TLB. */
#define ELSEWHERE	(UNIT + 32 * PAGE)
#define KPF_PGTABLE	(1ULL << 26)

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE	23
#endif
#ifndef EHWPOISON
#define EHWPOISON	133
#endif

static int morsel;
static char *p;

static void start(void)
{
	/* What Linux says of each signal. */
	ktap_expect_log("due to hardware memory corruption");
	morsel = morsel_make_of(GIB, GIB);
	p = morsel_map(morsel, GIB, PROT_READ | PROT_WRITE);
	ENSURE(!morsel_populate(morsel, 0, UNIT), "populate");
	morsel_fill(p, PAGES, OWN);
}

static uint64_t break_page(size_t page)
{
	uint64_t frame = frame_of(p + page * PAGE);

	ENSURE(frame, "no frame number");
	ENSURE(frame_give_up("hard", frame), "memory_failure() says: %m");
	return frame;
}

static void give_back(uint64_t frame)
{
	uint64_t flags;

	frame_flags_read(frame, &flags, 1);
	ENSURE(flags & KPF_HWPOISON && !(flags & KPF_BUDDY),
	       "the frame is free again, flags %#llx",
	       (unsigned long long)flags);
	ENSURE(frame_take_back(frame), "unpoison: %m");
}

/* All who map it lose the page, and only that. */
static void goes(void)
{
	char bytes[3 * PAGE];
	uint64_t frame;

	need_cpus(2);
	peer_start(1);
	start();
	/* No more than its TLB holds. */
	peer_touch(p + (AT - 2) * PAGE, 5);
	frame = break_page(AT);
	ENSURE(peer_count(p + AT * PAGE, 1, FAULTED) == 1, "the peer reads it");
	ENSURE(probe_read(p + AT * PAGE) == FAULTED, "it can be read");
	ENSURE(!probe_write(p + AT * PAGE, OWN), "it can be written to");
	ENSURE(peer_count(p, AT, OWN) == AT &&
	       peer_count(p + (AT + 1) * PAGE, PAGES - AT - 1, OWN) ==
	       PAGES - AT - 1, "others are gone, too");
	ENSURE(morsel_stat(morsel).pages == PAGES - 1, "%llu pages",
	       (unsigned long long)morsel_stat(morsel).pages);
	REFUSED(pread(morsel, bytes, PAGE, AT * PAGE), EIO);
	REFUSED(pwrite(morsel, bytes, PAGE, AT * PAGE), EIO);
	ENSURE(pread(morsel, bytes, sizeof(bytes), (AT - 1) * PAGE) == PAGE,
	       "a read does not end before it");
	REFUSED(madvise(p, PAGES * PAGE, MADV_POPULATE_WRITE), EHWPOISON);
	ENSURE(!morsel_populate(morsel, 0, PAGES * PAGE), "populate");
	ENSURE(probe_read(p + AT * PAGE) == FAULTED, "there is another page");
	/* Who says so gets a new one. */
	ENSURE(!morsel_depopulate(morsel, AT * PAGE, PAGE), "depopulate");
	ENSURE(!probe_read(p + AT * PAGE), "the page that was taken away");
	ENSURE(probe_write(p + AT * PAGE, OWN), "it cannot be written to");
	ENSURE(frame_of(p + AT * PAGE) != frame, "the same frame");
	give_back(frame);
}

static sigjmp_buf caught;
static volatile int code;
static void *volatile where;

static void on_bus(int signal, siginfo_t *info, void *context)
{
	(void)context;
	code = info->si_code;
	where = info->si_addr;
	siglongjmp(caught, signal);
}

/* Who has used it is told which one it was, at once and at each later access. */
static void told(void)
{
	struct sigaction action = { .sa_sigaction = on_bus,
				    .sa_flags = SA_SIGINFO };
	uint64_t frame;

	start();
	frame = frame_of(p + AT * PAGE);
	ENSURE(frame, "no frame number");
	MUST(sigaction(SIGBUS, &action, NULL));
	if (!sigsetjmp(caught, 1)) {
		MUST(madvise(p + AT * PAGE, PAGE, MADV_HWPOISON));
		ktap_fail("no signal");
	}
	ENSURE(code == BUS_MCEERR_AR && where == p + AT * PAGE,
	       "code %d at page %ld", code, (long)((char *)where - p) / (long)PAGE);
	code = 0;
	if (!sigsetjmp(caught, 1)) {
		(void)*(volatile char *)(p + AT * PAGE + 100);
		ktap_fail("it can be read");
	}
	ENSURE(code == BUS_MCEERR_AR, "code %d", code);
	ENSURE(morsel_count(p, AT, OWN) == AT, "others are gone, too");
	give_back(frame);
}

static long read_there(long page)
{
	char *q = mmap(NULL, GIB, PROT_READ, MAP_SHARED, morsel, 0);

	if (q == MAP_FAILED)
		return -errno;
	return probe_read(q + (page - 1) * PAGE) == OWN &&
	       probe_read(q + page * PAGE) == FAULTED &&
	       probe_read(q + (page + 1) * PAGE) == OWN;
}

/* Another process, which maps it later. */
static void of_others(void)
{
	struct stranger other;
	uint64_t frame;

	start();
	stranger_start(&other);
	frame = break_page(AT);
	ENSURE(stranger_call(&other, read_there, AT) == 1,
	       "another process sees something else");
	stranger_stop(&other);
	give_back(frame);
}

/* Its copies lead to the same page, by the same table or by one of their own. */
static void of_copies(void)
{
	long before = morsel_sysfs("pages");
	int copies[2], i;
	uint64_t frame;
	char *q[2];

	start();
	for (i = 0; i < 2; i++) {
		copies[i] = morsel_copy(morsel);
		q[i] = mmap(NULL, GIB, PROT_READ | PROT_WRITE, MAP_SHARED,
			    copies[i], 0);
		ENSURE(q[i] != MAP_FAILED, "mmap: %m");
		ENSURE(probe_read(q[i] + AT * PAGE) == OWN, "other data");
	}
	/* The second has a table of its own. */
	ENSURE(probe_write(q[1], OWN), "it cannot be written to");
	frame = break_page(AT);
	for (i = 0; i < 2; i++) {
		ENSURE(probe_read(q[i] + AT * PAGE) == FAULTED,
		       "copy %d still has it", i);
		ENSURE(probe_read(q[i] + (AT + 1) * PAGE) == OWN,
		       "copy %d has lost another page", i);
		ENSURE(!morsel_depopulate(copies[i], AT * PAGE, PAGE),
		       "depopulate");
		ENSURE(probe_write(q[i] + AT * PAGE, OWN), "no new page");
	}
	ENSURE(probe_read(p + AT * PAGE) == FAULTED, "the origin has another page");
	for (i = 0; i < 2; i++) {
		MUST(munmap(q[i], GIB));
		close(copies[i]);
	}
	close(morsel);
	MUST(munmap(p, GIB));
	sleep_ms(100);
	ENSURE(morsel_sysfs("pages") == before, "%ld pages are left",
	       morsel_sysfs("pages") - before);
	give_back(frame);
}

/* All is counted and paid for as before, and the block that it was in goes without it. */
static void goes_with_the_rest(void)
{
	long before = morsel_sysfs("pages");
	uint64_t frames[3];

	start();
	frames[0] = break_page(AT);
	ENSURE(!morsel_depopulate(morsel, 0, UNIT), "depopulate");
	ENSURE(!probe_read(p + AT * PAGE), "its table was cut");
	frames[1] = break_page(600);
	/* By itself, and with the object. */
	frames[2] = break_page(AT);
	close(morsel);
	MUST(munmap(p, GIB));
	sleep_ms(100);
	ENSURE(morsel_sysfs("pages") == before, "%ld pages are left",
	       morsel_sysfs("pages") - before);
	give_back(frames[0]);
	give_back(frames[1]);
	give_back(frames[2]);
}

/* What was cut, and waits to be freed. */
static void that_waits(void)
{
	const char *delay = "/sys/kernel/debug/ceasefire/clean_delay_us";
	struct morsel_range all = { 0, UNIT };
	struct morsel_vec vec = { .ranges = (uintptr_t)&all, .nr = 1,
				  .flags = MORSEL_ASYNC };
	uint64_t frame;

	start();
	frame = frame_of(p + AT * PAGE);
	if (!write_text(delay, "500000"))
		ktap_skip("no delays: boot the debug kernel");
	MUST(ioctl(morsel, MORSEL_IOC_DEPOPULATE, &vec));
	ENSURE(frame_give_up("hard", frame), "memory_failure() says: %m");
	ENSURE(write_text(delay, "0"), "%s: %m", delay);
	ENSURE(!probe_read(p + AT * PAGE), "it was cut before");
	MUST(fsync(morsel));
	ENSURE(morsel_stat(morsel).pages <= PAGES - 512 + 1, "%llu pages",
	       (unsigned long long)morsel_stat(morsel).pages);
	give_back(frame);
}

static void give_up(void *frame)
{
	if (!frame_give_up("hard", *(uint64_t *)frame))
		ktap_note("memory_failure() says: %m");
}

/* Nobody has it open, and its file system is unmounted meanwhile. */
static void unmounted(void)
{
	const char *delay = "/sys/kernel/debug/ceasefire/clean_delay_us";
	long before = morsel_sysfs("pages");
	struct worker other;
	uint64_t frame;

	close(morsel_make(UNIT));
	worker_start(&other, -1, NULL);
	MUST(unshare(CLONE_NEWNS));
	MUST(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	MUST(mount("ceasefire", "/mnt", "morsel", 0, NULL));
	morsel = (int)MUST(open("/mnt/pool", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
	MUST(ftruncate(morsel, UNIT));
	p = morsel_map(morsel, UNIT, PROT_READ | PROT_WRITE);
	morsel_fill(p, 512, OWN);
	frame = frame_of(p + AT * PAGE);
	ENSURE(frame, "no frame number");
	MUST(munmap(p, UNIT));
	close(morsel);
	if (!write_text(delay, "1000000"))
		ktap_skip("no delays: boot the debug kernel");
	worker_begin(&other, give_up, &frame);
	sleep_ms(300);
	MUST(umount("/mnt"));
	worker_end(&other);
	ENSURE(write_text(delay, "0"), "%s: %m", delay);
	sleep_ms(100);
	ENSURE(morsel_sysfs("pages") == before, "%ld pages are left",
	       morsel_sysfs("pages") - before);
	give_back(frame);
}

#define FRAMES	(GIB / PAGE + 0x100000)

static uint64_t before[FRAMES], after[FRAMES];

/* A page table of a morsel is none of its pages, whatever it has where these have theirs. */
static void page_table(void)
{
	unsigned int found = 0;
	uint64_t flags;
	size_t i;

	frame_flags_read(0, before, FRAMES);
	start();
	frame_flags_read(0, after, FRAMES);
	for (i = 0; i < FRAMES && found < 16; i++) {
		if (!(after[i] & ~before[i] & KPF_PGTABLE))
			continue;
		found++;
		if (!frame_give_up("hard", i))
			continue;
		/* One of another process, which has ended meanwhile? */
		frame_flags_read(i, &flags, 1);
		ENSURE(!(flags & KPF_PGTABLE), "frame %zu is a page table", i);
		frame_take_back(i);
	}
	PREMISE(found >= 3, "%u new page tables", found);
	ENSURE(morsel_count(p, PAGES, OWN) == PAGES, "pages are gone");
}

/* It and the page of the epoch that waits. What may be reached is used elsewhere if many wait. */
static void use_elsewhere(uint64_t word)
{
	int i;

	morsel_set("lazy_limit", 1);
	for (i = 0; i < 2; i++)
		ENSURE(pwrite(morsel, &word, sizeof(word), ELSEWHERE + i * PAGE) ==
		       sizeof(word), "pwrite: %m");
}

/*
 * Its page was given up without a flush, and is used nowhere, or at another offset: who still
 * has it cached loses it.
 */
static void given_up(bool goes_round)
{
	uint64_t frame, word = OWN;

	pin_to_cpu(0);
	peer_start(1);
	ktap_expect_log("due to hardware memory corruption");
	morsel = morsel_make_lazy(GIB, GIB);
	p = morsel_map(morsel, GIB, PROT_READ | PROT_WRITE);
	morsel_epoch_waits(morsel, 5 * UNIT);
	morsel_fill(p, 1, OWN);
	peer_touch(p, 1);
	PREMISE(peer_count(p, 1, OWN) == 1, "the peer does not read it");
	frame = frame_of(p);
	ENSURE(frame, "no frame number");
	ENSURE(!morsel_give_up(morsel, 0, PAGE), "give up");
	if (goes_round) {
		word = WORD(0x33);
		use_elsewhere(word);
		PREMISE(frame_of(p + ELSEWHERE) == frame ||
			frame_of(p + ELSEWHERE + PAGE) == frame, "it was not taken");
	}
	ENSURE(frame_give_up("hard", frame), "memory_failure() says: %m");
	ENSURE(!peer_count(p, 1, word), "the peer reads it");
	MUST(fsync(morsel));
	give_back(frame);
}

static void in_pool(void)
{
	given_up(false);
}

static void gone_round(void)
{
	given_up(true);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "goes", goes, 0 },
		{ "told", told, 0 },
		{ "of_others", of_others, 0 },
		{ "of_copies", of_copies, 0 },
		{ "goes_with_the_rest", goes_with_the_rest, 0 },
		{ "that_waits", that_waits, 0 },
		{ "unmounted", unmounted, 0 },
		{ "page_table", page_table, 0 },
		{ "in_pool", in_pool, 0 },
		{ "gone_round", gone_round, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
