#include "eventlog/server/store/shared_bytes.h"

#include <stdlib.h>
#include <sys/mman.h>

/* Bytes from which on pages of 2 MiB save more than they waste: each small one costs a fault. */
enum { LARGE = 8 * 1024 * 1024 };

struct shared_bytes *shared_bytes_new(size_t size)
{
    struct shared_bytes *s = malloc(sizeof *s);

    if (!s)
        return NULL;
    *s = (struct shared_bytes){ .size = size, .references = 1 };
    if (size < LARGE) {
        s->bytes = malloc(size);
    } else {
        s->bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (s->bytes == MAP_FAILED)
            s->bytes = NULL;
        else
            madvise(s->bytes, size, MADV_HUGEPAGE); /* small ones do as well */
    }
    if (s->bytes)
        return s;
    free(s);
    return NULL;
}

struct shared_bytes *shared_bytes_keep(struct shared_bytes *s)
{
    __atomic_fetch_add(&s->references, 1, __ATOMIC_RELAXED);
    return s;
}

void shared_bytes_drop(struct shared_bytes *s)
{
    if (!s || __atomic_fetch_sub(&s->references, 1, __ATOMIC_ACQ_REL) != 1)
        return;
    if (s->size < LARGE)
        free(s->bytes);
    else
        munmap(s->bytes, s->size);
    free(s);
}
