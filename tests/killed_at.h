/*
 * killed_at.h - a call in a child process that is stopped or killed before its system call number N: with N = 0, 1, 2,
 * ... that is every moment that others can see.
 */
#ifndef TESTS_KILLED_AT_H
#define TESTS_KILLED_AT_H

#include "tests/check.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

/* The child, stopped; ptrace(PTRACE_DETACH) has it go on. 0: the call was over before, and returned 0. Skips the test
 * where there is no ptrace. */
static pid_t stopped_at(int (*call)(void *context), void *context, int calls)
{
    int status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (!child) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
            _exit(3);
        raise(SIGSTOP);
        _exit(call(context) == 0 ? 0 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 3)
        skip();
    for (int i = 0; i < 2 * calls; i++) { /* a stop on the way in, and one on the way out */
        assert_int_equal(ptrace(PTRACE_SYSCALL, child, NULL, NULL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status)) {
            assert_int_equal(WEXITSTATUS(status), 0);
            return 0;
        }
        assert_true(WIFSTOPPED(status));
    }
    return child;
}

/* 1: it was over before, and returned 0. */
static inline int killed_at(int (*call)(void *context), void *context, int calls)
{
    pid_t child = stopped_at(call, context, calls);
    int status;

    if (!child)
        return 1;
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return 0;
}

#endif
