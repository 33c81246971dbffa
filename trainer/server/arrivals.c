#include "trainer/server/arrivals.h"

#include "base/bytes.h"
#include "base/crc32c.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char magic[8] = { 'a', 'r', 'r', 'i', 'v', 'a', 'l', 's' };

enum { FORMAT = 2, HEADER_CRC = ARRIVALS_HEADER_BYTES - 4, MODEL_AT = 64, DATA_AT = MODEL_AT + ARRIVALS_NAME };

static const uint32_t end_mark = UINT32_MAX;

void arrivals_put_header(const struct arrivals_header *h, uint8_t bytes[ARRIVALS_HEADER_BYTES])
{
    memset(bytes, 0, ARRIVALS_HEADER_BYTES);
    memcpy(bytes, magic, sizeof magic);
    put_le32(bytes + 8, FORMAT);
    put_le32(bytes + 12, (uint32_t)h->workers);
    put_le32(bytes + 16, (uint32_t)h->aggregate);
    put_le64(bytes + 24, (uint64_t)h->staleness);
    put_le64(bytes + 32, (uint64_t)h->first_step);
    put_le64(bytes + 40, (uint64_t)h->batch);
    put_le64(bytes + 48, h->seed);
    put_le64(bytes + 56, h->training);
    memcpy(bytes + MODEL_AT, h->model, ARRIVALS_NAME);
    memcpy(bytes + DATA_AT, h->data, ARRIVALS_NAME);
    put_le32(bytes + HEADER_CRC, crc32c(bytes, HEADER_CRC));
}

void arrivals_put(const struct arrival *a, uint8_t bytes[ARRIVALS_PUSH_BYTES])
{
    put_le32(bytes, a->step);
    put_le32(bytes + 4, a->worker);
    put_le32(bytes + 8, a->version);
}

void arrivals_put_end(uint32_t pushes, uint32_t crc, uint8_t bytes[ARRIVALS_PUSH_BYTES])
{
    put_le32(bytes, end_mark);
    put_le32(bytes + 4, pushes);
    put_le32(bytes + 8, crc);
}

static int parse_header(struct arrivals_header *h, const char *name, const uint8_t *bytes, size_t n, struct error *e)
{
    uint32_t workers, aggregate;

    if (n < MODEL_AT - 16 || memcmp(bytes, magic, sizeof magic) != 0) /* the header of the first format */
        return error_set(e, ERR_CORRUPT, "%s: not a record of --record", name);
    if (get_le32(bytes + 8) != FORMAT)
        return error_set(e, ERR_CORRUPT, "%s: format %" PRIu32 " is of another version of this program", name,
                         get_le32(bytes + 8));
    if (n < ARRIVALS_HEADER_BYTES)
        return error_set(e, ERR_CORRUPT, "%s: not a record of --record", name);
    if (get_le32(bytes + HEADER_CRC) != crc32c(bytes, HEADER_CRC))
        return error_set(e, ERR_CORRUPT, "%s: damaged at byte 0: its header does not have its checksum", name);
    workers = get_le32(bytes + 12);
    aggregate = get_le32(bytes + 16);
    h->staleness = (int64_t)get_le64(bytes + 24);
    h->first_step = (int64_t)get_le64(bytes + 32);
    h->batch = (int64_t)get_le64(bytes + 40);
    h->seed = get_le64(bytes + 48);
    h->training = get_le64(bytes + 56);
    memcpy(h->model, bytes + MODEL_AT, sizeof h->model);
    memcpy(h->data, bytes + DATA_AT, sizeof h->data);
    if (workers < 1 || workers > ARRIVALS_WORKERS_MAX || aggregate > workers || get_le32(bytes + 20) ||
        h->staleness < -1 || h->first_step < 0 || h->batch < 0 || h->model[ARRIVALS_NAME - 1] ||
        h->data[ARRIVALS_NAME - 1])
        return error_set(e, ERR_CORRUPT, "%s: damaged at byte 12: its header has impossible numbers", name);
    h->workers = (int)workers;
    h->aggregate = (int)aggregate;
    return OK;
}

/* 1: push `a` may follow in step `step`, of which `used` pushes have come. */
static int is_in_order(const struct arrivals_header *h, const struct arrival *a, int64_t step, int used)
{
    if (a->worker >= (uint32_t)h->workers || a->step != step || a->version > a->step)
        return 0;
    return h->aggregate == 0 || used == 0 || a->version == a->step;
}

/* 1: the bytes from `at` on are the end of a whole record of so many pushes. */
static int is_end(const uint8_t *bytes, size_t n, size_t at, size_t pushes)
{
    return at + ARRIVALS_PUSH_BYTES == n && get_le32(bytes + at + 4) == (uint32_t)pushes &&
           get_le32(bytes + at + 8) == crc32c(bytes, at);
}

int arrivals_parse(struct arrivals *out, const char *name, const uint8_t *bytes, size_t n, struct error *e)
{
    size_t count, whole = 0, at = ARRIVALS_HEADER_BYTES;
    int used = 0, rc;

    memset(out, 0, sizeof *out);
    if ((rc = parse_header(&out->header, name, bytes, n, e)) < 0)
        return rc;
    count = (n - ARRIVALS_HEADER_BYTES) / ARRIVALS_PUSH_BYTES;
    if (!(out->items = malloc((count + 1) * sizeof *out->items)))
        return error_memory(e, NULL, "for %zu pushes of %s", count, name);
    for (size_t i = 0; i < count; i++) {
        struct arrival *a = &out->items[i];

        *a = (struct arrival){ get_le32(bytes + at), get_le32(bytes + at + 4), get_le32(bytes + at + 8) };
        if (a->step == end_mark && is_end(bytes, n, at, i)) {
            out->complete = 1;
            break;
        }
        if (!is_in_order(&out->header, a, out->steps, used)) {
            arrivals_release(out);
            return error_set(e, ERR_CORRUPT, "%s: damaged at byte %zu, or before it", name, at);
        }
        at += ARRIVALS_PUSH_BYTES;
        used += out->header.aggregate == 0 || a->version == a->step;
        if (used >= out->header.aggregate) {
            used = 0;
            out->steps++;
            whole = i + 1;
        }
    }
    out->count = whole;
    return OK;
}

/* The part of arrivals_fit() that is not about servers: what was trained. */
static int is_same_training(const char *name, const struct arrivals_header *then, const struct arrivals_header *now,
                            struct error *e)
{
    if (strcmp(then->model, now->model) != 0)
        return error_set(e, ERR_ARG, "%s is of a run with --model %s, and this one has %s", name, then->model,
                         now->model);
    if (strcmp(then->data, now->data) != 0)
        return error_set(e, ERR_ARG, "%s is of a run with --data %s, and this one has %s", name, then->data, now->data);
    if (then->batch != now->batch)
        return error_set(e, ERR_ARG,
                         "%s is of a run with %" PRId64 " samples a step of each worker, and this one has %" PRId64
                         "; give its --batch-size or --global-batch",
                         name, then->batch, now->batch);
    if (then->seed != now->seed)
        return error_set(e, ERR_ARG, "%s is of a run with --seed %" PRIu64 ", and this one has %" PRIu64, name,
                         then->seed, now->seed);
    if (then->training != now->training)
        return error_set(e, ERR_ARG,
                         "%s is of a run with another optimizer, learning rate, schedule, --shard, --augment or "
                         "--micro-shards; give the options of that run",
                         name);
    return OK;
}

int arrivals_fit(const struct arrivals *a, const char *name, const struct arrivals_header *now, int64_t max_steps,
                 struct error *e)
{
    const struct arrivals_header *h = &a->header;
    char how[2][64];
    const struct arrivals_header *const both[] = { h, now };

    if (h->workers != now->workers)
        return error_set(e, ERR_ARG, "%s is of a run with %d worker%s, and here are %d", name, h->workers,
                         h->workers == 1 ? "" : "s", now->workers);
    for (int i = 0; i < 2; i++) {
        if (both[i]->aggregate)
            snprintf(how[i], sizeof how[i], "--replicas-to-aggregate %d", both[i]->aggregate);
        else if (both[i]->staleness >= 0)
            snprintf(how[i], sizeof how[i], "--async --staleness %" PRId64, both[i]->staleness);
        else
            snprintf(how[i], sizeof how[i], "--async");
    }
    if (strcmp(how[0], how[1]) != 0)
        return error_set(e, ERR_ARG, "%s is of a run with %s, and this one has %s", name, how[0], how[1]);
    if (h->first_step != now->first_step)
        return error_set(e, ERR_ARG,
                         "%s is of a run that began at step %" PRId64 ", and this one begins at step %" PRId64
                         "; begin with the same checkpoint, or with --resume never",
                         name, h->first_step, now->first_step);
    if (max_steps - h->first_step > a->steps)
        return error_set(e, ERR_ARG,
                         "%s ends at step %" PRId64 "%s, before --max-steps %" PRId64 "; train to at most that", name,
                         h->first_step + a->steps, a->complete ? "" : ", where its run was killed", max_steps);
    return is_same_training(name, h, now, e);
}

void arrivals_release(struct arrivals *a)
{
    free(a->items);
    memset(a, 0, sizeof *a);
}
