#include "checkpoint/tensor_batch.h"

#include "base/crc32c.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

enum {
    TASK = 1 << 22,  /* bytes one thread takes at a time */
    PIECE = 1 << 18, /* read and summed while it is in the cache */
    THREADS_MAX = 64,
};

/* a run of an item's bytes, or a whole item */
struct task {
    size_t item;
    uint64_t at;
    size_t bytes;
    int whole; /* 1: read by tensor_bundle_read(), which handles strings, slices and unreadable tensors */
    uint32_t crc;
    struct error error;
};

struct batch {
    struct tensor_bundle *bundle;
    const struct tensor_batch_item *items;
    struct task *tasks;
    size_t count;
    atomic_size_t next;
    atomic_int failed;
};

static void run_task(const struct batch *s, struct task *t)
{
    const struct tensor_batch_item *item = &s->items[t->item];

    if (t->whole) {
        tensor_bundle_read(s->bundle, item->entry, item->out, item->bytes, &t->error);
        return;
    }
    for (size_t done = 0; done < t->bytes && t->error.code == OK; done += PIECE) {
        const size_t n = t->bytes - done < PIECE ? t->bytes - done : PIECE;

        tensor_bundle_read_piece(s->bundle, item->entry, t->at + done, (char *)item->out + t->at + done, n, &t->crc,
                                 &t->error);
    }
}

static void *work(void *context)
{
    struct batch *s = context;
    size_t i;

    while (!atomic_load(&s->failed) && (i = atomic_fetch_add(&s->next, 1)) < s->count) {
        run_task(s, &s->tasks[i]);
        if (s->tasks[i].error.code != OK)
            atomic_store(&s->failed, 1);
    }
    return NULL;
}

static int divisible(const struct tensor_batch_item *item)
{
    return !item->entry->slices && tensor_type_size(item->entry->type) && item->entry->size > TASK &&
           item->bytes == (uint64_t)item->entry->size;
}

static size_t tasks_of(const struct tensor_batch_item *item)
{
    return divisible(item) ? (item->bytes - 1) / TASK + 1 : 1;
}

static int list_tasks(struct batch *s, size_t count, struct error *e)
{
    size_t all = 0, k = 0;

    for (size_t i = 0; i < count; i++)
        all += tasks_of(&s->items[i]); /* at most one more for each TASK bytes of memory: no overflow */
    if (!(s->tasks = calloc(all + 1, sizeof *s->tasks)))
        return error_memory(e, NULL, "for a list of %zu pieces of tensors", all);
    s->count = all;
    for (size_t i = 0; i < count; i++) {
        const size_t pieces = tasks_of(&s->items[i]), bytes = s->items[i].bytes;

        for (size_t p = 0; p < pieces; p++) {
            const size_t at = p * TASK, left = bytes - at;

            s->tasks[k++] = (struct task){
                .item = i, .at = at, .whole = !divisible(&s->items[i]), .bytes = pieces > 1 && left > TASK ? TASK : left
            };
        }
    }
    return OK;
}

/* The CRCs of a tensor's pieces make the tensor's. */
static int check(const struct batch *s, struct error *e)
{
    for (size_t k = 0; k < s->count;) {
        const struct task *first = &s->tasks[k];
        uint32_t crc = 0;
        int rc;

        for (; k < s->count && s->tasks[k].item == first->item; k++) {
            if (s->tasks[k].error.code != OK)
                return error_copy(e, &s->tasks[k].error);
            crc = crc32c_combine(crc, s->tasks[k].crc, s->tasks[k].bytes);
        }
        if (!first->whole && !atomic_load(&s->failed) &&
            (rc = tensor_bundle_check_crc(s->bundle, s->items[first->item].entry, crc, e)) != OK)
            return rc;
    }
    return OK;
}

int tensor_batch_read(struct tensor_bundle *b, const struct tensor_batch_item *items, size_t count, int threads,
                      struct error *e)
{
    struct batch s = { .bundle = b, .items = items };
    pthread_t helpers[THREADS_MAX];
    int started = 0, rc;

    if ((rc = list_tasks(&s, count, e)) != OK)
        return rc;
    while (started < threads - 1 && started < THREADS_MAX && (size_t)started + 1 < s.count &&
           pthread_create(&helpers[started], NULL, work, &s) == 0)
        started++;
    work(&s);
    while (started)
        pthread_join(helpers[--started], NULL);
    rc = check(&s, e);
    free(s.tasks);
    return rc;
}
