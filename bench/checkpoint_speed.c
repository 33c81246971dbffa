/*
 * checkpoint_speed - writes and reads checkpoints of noise, and says how long each took.
 * usage: checkpoint_speed MEGABYTES TENSORS THREADS     then, a line each on standard input: write|read|fresh PREFIX
 *
 * write: all tensors into a bundle, down to the disk. read: open, all tensors into memory that is there already, as an
 * evaluator reads them, every CRC checked. fresh: the same into memory taken for it, as a framework without a net does.
 * Memory is aligned as a network's and a framework's is; copying to 16 bytes behind a page's begin, where malloc puts
 * large blocks, takes a fifth longer on some processors. Answers each line with the seconds it took.
 */
#include "base/clock.h"
#include "base/random.h"
#include "checkpoint/tensor_batch.h"
#include "checkpoint/tensor_bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct work {
    size_t tensors, bytes; /* of each */
    int threads;
    char *values, *into;
};

enum { ALIGNMENT = 64 };

static char *new_memory(size_t n)
{
    return aligned_alloc(ALIGNMENT, (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
}

static int write_all(const struct work *w, const char *prefix, struct error *e)
{
    const int64_t shape[1] = { (int64_t)(w->bytes / sizeof(float)) };
    struct tensor_bundle_writer *writer;
    int rc = tensor_bundle_writer_open(&writer, NULL, prefix, e);

    if (rc != OK)
        return rc;
    tensor_bundle_writer_use_thread(writer, w->threads > 1);
    for (size_t i = 0; i < w->tensors && rc == OK; i++) {
        char name[32];

        snprintf(name, sizeof name, "tensor_%06zu", i);
        rc = tensor_bundle_writer_add(writer, name, TENSOR_FLOAT, 1, shape, w->values + i * w->bytes, w->bytes, e);
    }
    if (rc == OK)
        return tensor_bundle_writer_finish(writer, e);
    tensor_bundle_writer_abandon(writer);
    return rc;
}

static int read_all(const struct work *w, const char *prefix, char *into, struct error *e)
{
    struct tensor_batch_item *items = calloc(w->tensors, sizeof *items);
    struct tensor_bundle *bundle = NULL;
    int rc = items ? tensor_bundle_open(&bundle, prefix, e) : error_set(e, ERR_NOMEM, "no memory for a list");

    if (rc == OK && tensor_bundle_count(bundle) != w->tensors)
        rc = error_set(e, ERR_ARG, "%s has %zu tensors, not %zu", prefix, tensor_bundle_count(bundle), w->tensors);
    if (rc == OK) {
        for (size_t i = 0; i < w->tensors; i++)
            items[i] = (struct tensor_batch_item){ tensor_bundle_entry(bundle, i), into + i * w->bytes, w->bytes };
        rc = tensor_batch_read(bundle, items, w->tensors, w->threads, e);
    }
    tensor_bundle_close(bundle);
    free(items);
    return rc;
}

static int command(const struct work *w, const char *what, const char *prefix, struct error *e)
{
    char *fresh;
    int rc;

    if (!strcmp(what, "write"))
        return write_all(w, prefix, e);
    if (!strcmp(what, "read"))
        return read_all(w, prefix, w->into, e);
    if (strcmp(what, "fresh"))
        return error_set(e, ERR_ARG, "not one of write, read, fresh: %s", what);
    if (!(fresh = new_memory(w->tensors * w->bytes)))
        return error_set(e, ERR_NOMEM, "no memory for %zu tensors", w->tensors);
    rc = read_all(w, prefix, fresh, e);
    free(fresh);
    return rc;
}

static int answer(const struct work *w)
{
    struct error e = { 0 };
    char line[4096];

    while (fgets(line, sizeof line, stdin)) {
        const double start = clock_monotonic();
        char *prefix = strchr(line, ' ');

        line[strcspn(line, "\n")] = '\0';
        if (prefix)
            *prefix++ = '\0';
        if (!prefix || command(w, line, prefix, &e) != OK) {
            fprintf(stderr, "checkpoint_speed: %s\n", prefix ? e.message : "a command and a prefix are wanted");
            return 1;
        }
        printf("%.6f\n", clock_monotonic() - start);
        fflush(stdout);
        if (!strcmp(line, "read") && memcmp(w->values, w->into, w->tensors * w->bytes) != 0) {
            fprintf(stderr, "checkpoint_speed: %s: what was read is not what was written\n", prefix);
            return 1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    const size_t megabytes = argc == 4 ? (size_t)atoi(argv[1]) : 0, tensors = argc == 4 ? (size_t)atoi(argv[2]) : 0;
    struct work w = { .tensors = tensors, .threads = argc == 4 ? atoi(argv[3]) : 0 };
    struct random r;
    int rc = 2;

    if (!megabytes || !tensors || w.threads < 1) {
        fprintf(stderr, "usage: checkpoint_speed MEGABYTES TENSORS THREADS\n");
        return rc;
    }
    w.bytes = megabytes * 1000000 / tensors / sizeof(float) * sizeof(float);
    w.values = new_memory(tensors * w.bytes);
    w.into = new_memory(tensors * w.bytes);
    if (w.values && w.into) {
        random_init(&r, 1, RANDOM_TEST, 0, 0);
        for (size_t i = 0; i < tensors * w.bytes; i += sizeof(float)) {
            const float value = (float)(int32_t)random_u32(&r);

            memcpy(w.values + i, &value, sizeof value);
        }
        memset(w.into, 1, tensors * w.bytes);
        rc = answer(&w);
    }
    free(w.values);
    free(w.into);
    return rc;
}
