// SPDX-License-Identifier: GPL-2.0
/* The server that gives page-cache pages away, see fuse_server.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "env.h"
#include "fuse_server.h"
#include "ktap.h"

#define ROOT_INODE	1
#define FILE_INODE	2
#define FOREVER		3600
#define MAX_TRANSFER	(128 * 1024)

static struct {
	int device, source, pipe[2];
	size_t size;
} server;

static char request[MAX_TRANSFER + PAGE];

static void reply(uint64_t unique, int error, const void *data, size_t size)
{
	static char out[PAGE];
	struct fuse_out_header header = {
		.len = (uint32_t)(sizeof(header) + size),
		.error = error, .unique = unique,
	};

	memcpy(out, &header, sizeof(header));
	if (size)
		memcpy(out + sizeof(header), data, size);
	/* The request may have been interrupted: nobody waits then. */
	if (write(server.device, out, header.len) < 0 && errno != ENOENT)
		_exit(1);
}

static void fill_attr(struct fuse_attr *attr, uint64_t inode)
{
	memset(attr, 0, sizeof(*attr));
	attr->ino = inode;
	attr->blksize = PAGE;
	attr->nlink = 1;
	if (inode == ROOT_INODE) {
		attr->mode = S_IFDIR | 0755;
	} else {
		attr->mode = S_IFREG | 0600;
		attr->size = server.size;
	}
}

static void do_init(const struct fuse_in_header *in)
{
	struct fuse_init_out out = {
		.major = FUSE_KERNEL_VERSION, .minor = 31,
		.max_readahead = MAX_TRANSFER,
		.flags = FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_MAX_PAGES,
		.max_background = 8, .congestion_threshold = 6,
		.max_write = MAX_TRANSFER, .time_gran = 1,
		.max_pages = MAX_TRANSFER / PAGE,
	};

	reply(in->unique, 0, &out, sizeof(out));
}

static void do_lookup(const struct fuse_in_header *in, const char *name)
{
	struct fuse_entry_out out = {
		.nodeid = FILE_INODE, .entry_valid = FOREVER,
		.attr_valid = FOREVER,
	};

	if (strcmp(name, "file")) {
		reply(in->unique, -ENOENT, NULL, 0);
		return;
	}
	fill_attr(&out.attr, FILE_INODE);
	reply(in->unique, 0, &out, sizeof(out));
}

static void do_getattr(const struct fuse_in_header *in)
{
	struct fuse_attr_out out = { .attr_valid = FOREVER };

	fill_attr(&out.attr, in->nodeid);
	reply(in->unique, 0, &out, sizeof(out));
}

static void do_open(const struct fuse_in_header *in)
{
	struct fuse_open_out out = { .fh = 1, .open_flags = FOPEN_KEEP_CACHE };

	reply(in->unique, 0, &out, sizeof(out));
}

/* A header that was written, then pages that are moved. */
static void do_read(const struct fuse_in_header *in,
		    const struct fuse_read_in *read_in)
{
	struct fuse_out_header header = { .unique = in->unique };
	loff_t at = (loff_t)read_in->offset;
	size_t size = read_in->size, moved = 0;

	if (read_in->offset >= server.size)
		size = 0;
	else if (size > server.size - read_in->offset)
		size = server.size - read_in->offset;
	header.len = (uint32_t)(sizeof(header) + size);
	if (write(server.pipe[1], &header, sizeof(header)) != sizeof(header))
		_exit(1);
	while (moved < size) {
		ssize_t n = splice(server.source, &at, server.pipe[1], NULL,
				   size - moved, 0);

		if (n <= 0)
			_exit(1);
		moved += (size_t)n;
	}
	if (splice(server.pipe[0], NULL, server.device, NULL, header.len,
		   SPLICE_F_MOVE) < 0)
		_exit(1);
}

static void do_write(const struct fuse_in_header *in,
		     const struct fuse_write_in *write_in)
{
	struct fuse_write_out out = { .size = write_in->size };

	reply(in->unique, 0, &out, sizeof(out));
}

static void serve(void)
{
	const struct fuse_in_header *in = (const void *)request;
	const void *body = request + sizeof(*in);

	while (read(server.device, request, sizeof(request)) > 0) {
		switch (in->opcode) {
		case FUSE_INIT:
			do_init(in);
			break;
		case FUSE_LOOKUP:
			do_lookup(in, body);
			break;
		case FUSE_GETATTR:
		case FUSE_SETATTR:
			do_getattr(in);
			break;
		case FUSE_OPEN:
		case FUSE_OPENDIR:
			do_open(in);
			break;
		case FUSE_READ:
			do_read(in, body);
			break;
		case FUSE_WRITE:
			do_write(in, body);
			break;
		case FUSE_RELEASE:
		case FUSE_RELEASEDIR:
		case FUSE_FLUSH:
		case FUSE_FSYNC:
			reply(in->unique, 0, NULL, 0);
			break;
		case FUSE_FORGET:
		case FUSE_BATCH_FORGET:
		case FUSE_INTERRUPT:
			break;
		default:
			reply(in->unique, -ENOSYS, NULL, 0);
		}
	}
	_exit(0);
}

pid_t fuse_server_start(int source, size_t pages)
{
	char options[128];
	pid_t pid;

	server.device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (server.device < 0)
		ktap_skip("no /dev/fuse");
	server.source = source;
	server.size = pages * PAGE;
	MUST(pipe2(server.pipe, O_CLOEXEC));
	MUST(fcntl(server.pipe[1], F_SETPIPE_SZ, MIB));
	MUST(unshare(CLONE_NEWNS));
	MUST(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0", server.device);
	MUST(mount("ceasefire", "/mnt", "fuse", MS_NOSUID | MS_NODEV, options));
	pid = (pid_t)MUST(fork());
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve();
	}
	/* With the server gone the connection is to end. */
	close(server.device);
	return pid;
}
