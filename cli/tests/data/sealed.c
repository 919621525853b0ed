// SPDX-License-Identifier: GPL-2.0-only
/*
 * Becomes a program that may make no system calls but execve(), write(), exit_group()
 * and prctl(), and tells what that asks for: of each prctl() that is right in all
 * arguments the error is the number below, of any other one it is 99. Any other
 * call kills it.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ERROR(number) (SECCOMP_RET_ERRNO | (number))
#define LOAD(field, half)						\
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS,				\
		 offsetof(struct seccomp_data, field) + 4 * (half))
#define IS(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, value)

/* All five arguments, of the third one both halves. Goes on behind it if one differs. */
#define CALL(option, operation, low, high, number)			\
	LOAD(args[0], 0), IS(option, 0, 11),				\
	LOAD(args[1], 0), IS(operation, 0, 9),				\
	LOAD(args[2], 0), IS(low, 0, 7),				\
	LOAD(args[2], 1), IS(high, 0, 5),				\
	LOAD(args[3], 0), IS(0, 0, 3),					\
	LOAD(args[4], 0), IS(0, 0, 1),					\
	RETURN(ERROR(number))

int main(int argc, char **argv, char **envp)
{
	/* linux/ceasefire.h */
	enum { FPR = 0x465052, LATR = 0x4c415452, SHARERS = 0x53485253 };
	struct sock_filter code[] = {
		LOAD(nr, 0),
		IS(SYS_execve, 4, 0),
		IS(SYS_write, 3, 0),
		IS(SYS_exit_group, 2, 0),
		IS(SYS_prctl, 2, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		RETURN(SECCOMP_RET_ALLOW),
		CALL(FPR, 1, 0xffffffff, 0xffffffff, 101),
		CALL(FPR, 1, 0x80000000, 0, 102),
		CALL(FPR, 3, 2, 0, 103),
		CALL(LATR, 1, 1, 0, 104),
		CALL(SHARERS, 1, 1, 0, 105),
		RETURN(ERROR(99)),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	if (argc < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		perror("sealed");
		return 1;
	}
	execve(argv[1], argv + 1, envp);
	return 1;
}
