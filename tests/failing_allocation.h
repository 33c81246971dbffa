/*
 * failing_allocation.h - for tests of want of memory: allocation number fail_at since `calls` was set to 0 fails. The
 * linker puts the functions below in the place of malloc and its kin (WRAP in the Makefile) for all calls of the
 * program but those of libraries.
 */
#ifndef TESTS_FAILING_ALLOCATION_H
#define TESTS_FAILING_ALLOCATION_H

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_long fail_at, calls; /* fail_at 0: none */

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t n);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t n);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t n);

static inline int fails(void)
{
    long at = atomic_load(&fail_at);

    if (!at || atomic_fetch_add(&calls, 1) + 1 != at)
        return 0;
    errno = ENOMEM;
    return 1;
}

void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t n)
{
    return fails() ? NULL : __real_realloc(old, n);
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t n)
{
    return fails() ? NULL : __real_strndup(text, n);
}

#endif
