/* SPDX-License-Identifier: GPL-2.0-only */
/* held.h - stop a thread between the library and the kernel; see held.c. */
#ifndef TESTS_HELD_H
#define TESTS_HELD_H

/* The answer to MARK_HELD once the thread is held. */
#define HELD_YES 4712

/* What became of the program in which a thread was held. */
struct held {
	int status;		/* exit status, 128 + signal */
	int was_held;		/* a call with the flag was */
	int waited;		/* system calls of the other until it was let go */
};

struct held held_run(char *const *argv, char *const *env);

#endif /* TESTS_HELD_H */
