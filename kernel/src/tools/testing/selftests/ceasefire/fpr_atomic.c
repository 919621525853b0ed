// SPDX-License-Identifier: GPL-2.0
/*
 * I6: frames are parked wherever they are freed, without waiting for another
 * CPU there: the last reference of a page may go in an interrupt, when a
 * connection ends or a disk has read what it is to write.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "env.h"
#include "file.h"
#include "ktap.h"
#include "map.h"
#include "peer.h"
#include "stranger.h"

#define PAGES		64
#define OWN		0x5a
#define ROUNDS		20

static void expect_no_secret(const char *p, struct stranger *stranger)
{
	size_t secrets;

	stranger_fill(stranger, FILL_ANON, 1);
	secrets = peer_count(p, PAGES, WORD(SECRET));
	ENSURE(!secrets, "%zu of %d pages of another process are readable",
	       secrets, PAGES);
}

static void loopback_up(void)
{
	/* A network of our own: nobody else's packets, and it goes with us. */
	struct { char name[16]; short flags; char rest[30]; } request = {
		.name = "lo", .flags = 0x41,	/* up, running */
	};
	int fd;

	MUST(unshare(CLONE_NEWNET));
	fd = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
	MUST(syscall(SYS_ioctl, fd, 0x8914 /* SIOCSIFFLAGS */, &request));
	close(fd);
}

/* A connection through which little goes: the rest waits with the sender. */
static void connect_narrow(int *sender, int *receiver)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int listener = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	socklen_t length = sizeof(address);
	int smallest = 1, large = 4 * (int)MIB;

	MUST(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &smallest,
			sizeof(smallest)));
	MUST(bind(listener, (void *)&address, sizeof(address)));
	MUST(listen(listener, 1));
	MUST(getsockname(listener, (void *)&address, &length));
	*sender = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(setsockopt(*sender, SOL_SOCKET, SO_SNDBUFFORCE, &large,
			sizeof(large)));
	MUST(connect(*sender, (void *)&address, sizeof(address)));
	*receiver = (int)MUST(accept(listener, NULL, NULL));
	close(listener);
}

/*
 * The pages wait in a connection for a receiver who does not read. The file
 * has let go of them. Then the receiver hangs up, and the network, in a
 * softirq, is the last to hold them.
 */
static void connection_reset(void)
{
	struct stranger stranger;
	int round, ends[2];
	struct tfile f;
	long parks;

	stranger_start(&stranger);
	loopback_up();
	MUST(pipe2(ends, O_CLOEXEC));
	MUST(fcntl(ends[1], F_SETPIPE_SZ, MIB));
	file_make(&f, ON_TMPFS, PAGES, OWN);
	peer_start(1);
	hold_debts();
	parks = vmstat("fpr_park");
	for (round = 0; round < ROUNDS; round++) {
		char *p = leave_stale(&f, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
		int sender, receiver;
		size_t sent = 0;
		loff_t at = 0;

		while (at < (loff_t)(PAGES * PAGE))
			ENSURE(splice(f.fd, &at, ends[1], NULL,
				      PAGES * PAGE - (size_t)at, 0) > 0,
			       "splice: %m");
		file_drop(&f);
		connect_narrow(&sender, &receiver);
		while (sent < PAGES * PAGE) {
			ssize_t n = splice(ends[0], NULL, sender, NULL,
					   PAGES * PAGE - sent, 0);

			ENSURE(n > 0, "splice into a connection: %m");
			sent += (size_t)n;
		}
		close(receiver);
		expect_no_secret(p, &stranger);
		close(sender);
		file_fill(&f, 0, PAGES, OWN);
	}
	parks = vmstat("fpr_park") - parks;
	ktap_note("%ld frames parked", parks);
	ENSURE(parks >= ROUNDS * PAGES / 2,
	       "%ld of %d frames were parked: not freed by the network?",
	       parks, ROUNDS * PAGES);
	stranger_stop(&stranger);
}

#define NULLB	"/mnt/nullb/ceasefire"
#define NODE	"/dev/ceasefire"

/* A null device that completes its requests late, from a timer interrupt. */
static int slow_disk(unsigned int completion_ms)
{
	double end = seconds() + 10;
	char text[32];
	int fd;

	MUST(unshare(CLONE_NEWNS));
	MUST(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	if (mount("ceasefire", "/mnt", "configfs", 0, NULL) ||
	    mkdir(NULLB, 0755))
		ktap_skip("no null_blk with configfs");
	snprintf(text, sizeof(text), "%u", completion_ms * 1000000);
	ENSURE(write_text(NULLB "/irqmode", "2") &&
	       write_text(NULLB "/completion_nsec", text) &&
	       write_text(NULLB "/size", "64") &&
	       write_text(NULLB "/power", "1"),
	       "the null device cannot be set up: %m");
	while ((fd = open(NODE, O_RDWR | O_DIRECT | O_CLOEXEC)) < 0) {
		ENSURE(seconds() < end, NODE ": %m");
		sleep_ms(10);
	}
	return fd;
}

static void no_disk(int fd)
{
	close(fd);
	write_text(NULLB "/power", "0");
	rmdir(NULLB);
}

/*
 * Pages of a mapping are written to a disk that takes its time. The mapping
 * and the file are gone before the disk is done with them.
 */
static void disk_completes(void)
{
	static struct iocb requests[PAGES];
	static struct io_event events[PAGES];
	struct iocb *list[PAGES];
	aio_context_t context = 0;
	struct stranger stranger;
	int round, disk, i;
	struct tfile f;
	long parks;

	stranger_start(&stranger);
	disk = slow_disk(200);
	if (syscall(SYS_io_setup, PAGES, &context))
		ktap_skip("no asynchronous I/O");
	file_make(&f, ON_TMPFS, PAGES, OWN);
	peer_start(1);
	hold_debts();
	leave_stale(&f, 0, PAGES, PROT_READ, MAP_SHARED, OWN);
	parks = vmstat("fpr_park");
	for (round = 0; round < ROUNDS; round++) {
		char *p = fpr_map(&f, 0, PAGES, PROT_READ, MAP_SHARED);

		peer_touch(p, PAGES);
		for (i = 0; i < PAGES; i++) {
			requests[i] = (struct iocb){
				.aio_lio_opcode = IOCB_CMD_PWRITE,
				.aio_fildes = (uint32_t)disk,
				.aio_buf = (uintptr_t)p + (size_t)i * PAGE,
				.aio_nbytes = PAGE,
				.aio_offset = (int64_t)i * (int64_t)PAGE,
			};
			list[i] = &requests[i];
		}
		ENSURE(syscall(SYS_io_submit, context, PAGES, list) == PAGES,
		       "io_submit: %m");
		fpr_unmap(p, PAGES);
		file_drop(&f);
		ENSURE(syscall(SYS_io_getevents, context, PAGES, PAGES, events,
			       NULL) == PAGES, "io_getevents: %m");
		for (i = 0; i < PAGES; i++)
			ENSURE(events[i].res == (int64_t)PAGE,
			       "a write failed: %lld",
			       (long long)events[i].res);
		expect_no_secret(p, &stranger);
		file_fill(&f, 0, PAGES, OWN);
	}
	parks = vmstat("fpr_park") - parks;
	ktap_note("%ld frames parked", parks);
	ENSURE(parks >= ROUNDS * PAGES / 2, "%ld of %d frames were parked",
	       parks, ROUNDS * PAGES);
	syscall(SYS_io_destroy, context);
	no_disk(disk);
	stranger_stop(&stranger);
}

int main(int argc, char **argv)
{
	static const struct ktap_case cases[] = {
		{ "connection_reset", connection_reset, 0 },
		{ "disk_completes", disk_completes, 0 },
	};

	return ktap_main(argc, argv, cases, KTAP_COUNT(cases));
}
