/* Does the reader take a made checkpoint as it was made? Opened, read and checked as `checkpoint verify` does. */
#include "checkpoint/bundle_check.h"
#include "checkpoint/tensor_batch.h"
#include "checkpoint/tensor_bundle.h"
#include "checkpoint/tensor_stream.h"
#include "tests/fuzz/made_checkpoint.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LARGEST = 1 << 20, PIECE = 1021, VARIANT = 21, BATCH_EVERY = 4 };

static void put_file(const char *path, const struct buffer *bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0 || (bytes->length && write(fd, bytes->data, bytes->length) != (ssize_t)bytes->length) || close(fd) < 0)
        abort();
}

void made_checkpoint_write(const struct made_checkpoint *c, const char *prefix)
{
    char path[512];

    snprintf(path, sizeof path, "%s.index", prefix);
    put_file(path, &c->index);
    for (int i = 0; i < c->shards; i++) {
        snprintf(path, sizeof path, "%s.data-%05d-of-%05d", prefix, i, c->shards);
        if (c->shard_there[i])
            put_file(path, &c->shard[i]);
        else
            unlink(path);
    }
}

/* What is read of one tensor, whole and in pieces. */
struct values {
    char *whole, *pieces;
    size_t bytes;
};

static int read_pieces(struct tensor_bundle *b, const struct tensor_entry *entry, struct values *v, struct error *e)
{
    struct tensor_stream *s;
    size_t at = 0, got;
    int rc = tensor_stream_open(&s, b, entry, e);

    if (rc != OK)
        return rc;
    do {
        char piece[PIECE];

        rc = tensor_stream_read(s, piece, sizeof piece, &got, e);
        if (rc == OK && got > v->bytes - at)
            abort();
        if (rc == OK && got)
            memcpy(v->pieces + at, piece, got);
        at += rc == OK ? got : 0;
    } while (rc == OK && got);
    if (rc == OK && at != v->bytes)
        abort();
    tensor_stream_close(s);
    return rc;
}

/* Both ways say the same, and give the same bytes; variants come in pieces only. */
static int read_tensor(struct tensor_bundle *b, const struct tensor_entry *entry, struct values *v, struct error *e)
{
    struct error other = { 0 };
    int pieces, whole;

    if (tensor_entry_bytes(entry) > LARGEST)
        abort(); /* no file is so long */
    v->bytes = (size_t)tensor_entry_bytes(entry);
    v->whole = calloc(1, v->bytes + 1);
    v->pieces = calloc(1, v->bytes + 1);
    if (!v->whole || !v->pieces)
        abort();
    pieces = read_pieces(b, entry, v, e);
    if (entry->type == VARIANT)
        return pieces;
    whole = tensor_bundle_read(b, entry, v->whole, v->bytes, &other);
    if (whole != pieces || (whole != OK && !other.message[0]) ||
        (whole == OK && memcmp(v->whole, v->pieces, v->bytes) != 0))
        abort();
    return pieces;
}

/* All tensors at once, which is the same again. */
static void read_batch(struct tensor_bundle *b, const struct values *v, size_t count, int rc)
{
    struct tensor_batch_item *item = calloc(count + 1, sizeof *item);
    size_t items = 0;

    if (!item)
        abort();
    for (size_t i = 0; i < count; i++) {
        const struct tensor_entry *entry = tensor_bundle_entry(b, i);
        char *out = malloc(v[i].bytes + 1);

        if (!out)
            abort();
        if (entry->type == VARIANT)
            free(out);
        else
            item[items++] = (struct tensor_batch_item){ entry, out, v[i].bytes };
    }
    if (tensor_batch_read(b, item, items, 1, NULL) != rc)
        abort();
    for (size_t i = 0, at = 0; i < count; i++)
        if (tensor_bundle_entry(b, i)->type != VARIANT) {
            if (rc == OK && memcmp(item[at].out, v[i].whole, v[i].bytes) != 0)
                abort();
            free(item[at++].out);
        }
    free(item);
}

static int same_tensor(const struct made_tensor *made, const struct tensor_entry *entry, const struct values *v)
{
    if (entry->name_length != made->name.length || memcmp(entry->name, made->name.data, made->name.length) != 0 ||
        entry->type != made->type || entry->rank != made->rank || v->bytes != made->bytes.length)
        return 0;
    for (int d = 0; d < made->rank; d++)
        if (entry->shape[d] != made->shape[d])
            return 0;
    return memcmp(v->pieces, buffer_text(&made->bytes), made->bytes.length) == 0;
}

/* How opening and reading end: OK, or the first error; *same: all is what was made. */
static int read_all(const struct made_checkpoint *c, const char *prefix, int *same, struct error *e)
{
    struct tensor_bundle *b = NULL;
    int rc = tensor_bundle_open(&b, prefix, e), plain = rc;
    size_t count = b ? tensor_bundle_count(b) : 0;
    struct values *values = calloc(count + 1, sizeof *values);

    if (!values || (rc != OK && b))
        abort();
    *same = rc == OK && count == c->count;
    for (size_t i = 0; i < count; i++) {
        const struct tensor_entry *entry = tensor_bundle_entry(b, i);
        struct error why = { 0 };
        int read = read_tensor(b, entry, &values[i], &why);

        if (read != OK && !why.message[0])
            abort();
        if (read == OK)
            *same = *same && same_tensor(&c->tensor[i], entry, &values[i]);
        if (rc == OK && (rc = read) != OK)
            *e = why;
        if (plain == OK && entry->type != VARIANT)
            plain = read;
    }
    if (b && c->index.length % BATCH_EVERY == 0)
        read_batch(b, values, count, plain);
    for (size_t i = 0; i < count; i++) {
        free(values[i].whole);
        free(values[i].pieces);
    }
    free(values);
    tensor_bundle_close(b);
    return rc;
}

static void take_problem(void *context, const struct error *problem)
{
    struct error *first = context;

    if (!problem->message[0])
        abort();
    if (first->code == OK)
        *first = *problem;
}

/* What `checkpoint verify` finds first. */
static int verify(const char *prefix, struct error *e)
{
    struct bundle_check check = { .problem = take_problem, .context = e };
    struct tensor_bundle *b = NULL;
    struct error why = { 0 };
    int rc = tensor_bundle_open_damaged(&b, prefix, take_problem, e, &why);

    if (rc == OK)
        rc = bundle_check(&check, b, &why);
    if (rc != OK)
        take_problem(e, &why);
    tensor_bundle_close(b);
    return e->code;
}

int made_checkpoint_judge(const struct made_checkpoint *c, const char *prefix, struct error *e)
{
    const char *damage = buffer_text(&c->damage);
    struct error reading = { 0 }, checking = { 0 };
    int same, read = read_all(c, prefix, &same, &reading), checked = verify(prefix, &checking);

    if (read != OK && !reading.message[0])
        abort();
    if (read != OK && read != ERR_ARG && checked == OK) /* ERR_ARG: not supported */
        return error_set(e, ERR_CORRUPT, "%s: verify finds nothing where reading says: %s", damage, reading.message);
    switch (c->verdict) {
    case MADE_SOUND:
        if (read != OK || checked != OK)
            return error_set(e, ERR_CORRUPT, "a sound one is refused: %s",
                             read != OK ? reading.message : checking.message);
        return same ? OK : error_set(e, ERR_CORRUPT, "a sound one reads as something else");
    case MADE_DAMAGED:
        return read == OK && checked == OK ? error_set(e, ERR_CORRUPT, "%s: accepted as sound", damage) : OK;
    case MADE_EITHER: break;
    }
    return OK;
}
