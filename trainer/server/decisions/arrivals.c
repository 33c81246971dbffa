#include "trainer/server/decisions/arrivals.h"

#include "base/bytes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char magic[8] = { 'a', 'r', 'r', 'i', 'v', 'a', 'l', 's' };

enum { FORMAT = 1 };

void arrivals_put_header(const struct arrivals_header *h, uint8_t bytes[ARRIVALS_HEADER_BYTES])
{
    memset(bytes, 0, ARRIVALS_HEADER_BYTES);
    memcpy(bytes, magic, sizeof magic);
    put_le32(bytes + 8, FORMAT);
    put_le32(bytes + 12, (uint32_t)h->workers);
    put_le32(bytes + 16, (uint32_t)h->aggregate);
    put_le32(bytes + 20, (uint32_t)h->tokens);
    put_le64(bytes + 24, (uint64_t)h->staleness);
    put_le64(bytes + 32, (uint64_t)h->first_step);
}

void arrivals_put(const struct arrival *a, uint8_t bytes[ARRIVALS_PUSH_BYTES])
{
    put_le32(bytes, a->step);
    put_le32(bytes + 4, a->worker);
    put_le32(bytes + 8, a->version);
}

static int parse_header(struct arrivals_header *h, const char *name, const uint8_t *bytes, size_t n, struct error *e)
{
    uint32_t workers, aggregate, tokens;

    if (n < ARRIVALS_HEADER_BYTES || memcmp(bytes, magic, sizeof magic) != 0)
        return error_set(e, ERR_CORRUPT, "%s: not a record of --record", name);
    if (get_le32(bytes + 8) != FORMAT)
        return error_set(e, ERR_CORRUPT, "%s: format %" PRIu32 " is of another version of this program", name,
                         get_le32(bytes + 8));
    workers = get_le32(bytes + 12);
    aggregate = get_le32(bytes + 16);
    tokens = get_le32(bytes + 20);
    h->staleness = (int64_t)get_le64(bytes + 24);
    h->first_step = (int64_t)get_le64(bytes + 32);
    if (workers < 1 || workers > ARRIVALS_WORKERS_MAX || aggregate > workers || tokens > 1 || h->staleness < -1 ||
        h->first_step < 0)
        return error_set(e, ERR_CORRUPT, "%s: damaged header", name);
    h->workers = (int)workers;
    h->aggregate = (int)aggregate;
    h->tokens = (int)tokens;
    return OK;
}

/* 1: push `a` may follow in step `step`, of which `used` pushes have come. */
static int is_in_order(const struct arrivals_header *h, const struct arrival *a, int64_t step, int used)
{
    if (a->worker >= (uint32_t)h->workers || a->step != step || a->version > a->step)
        return 0;
    return h->aggregate == 0 || used == 0 || a->version == a->step;
}

int arrivals_parse(struct arrivals *out, const char *name, const uint8_t *bytes, size_t n, struct error *e)
{
    size_t count, whole = 0;
    int used = 0, rc;

    memset(out, 0, sizeof *out);
    if ((rc = parse_header(&out->header, name, bytes, n, e)) < 0)
        return rc;
    count = (n - ARRIVALS_HEADER_BYTES) / ARRIVALS_PUSH_BYTES;
    if (!(out->items = malloc((count + 1) * sizeof *out->items)))
        return error_memory(e, NULL, "for %zu pushes of %s", count, name);
    for (size_t i = 0; i < count; i++) {
        const uint8_t *at = bytes + ARRIVALS_HEADER_BYTES + i * ARRIVALS_PUSH_BYTES;
        struct arrival *a = &out->items[i];

        *a = (struct arrival){ get_le32(at), get_le32(at + 4), get_le32(at + 8) };
        if (!is_in_order(&out->header, a, out->steps, used)) {
            arrivals_release(out);
            return error_set(e, ERR_CORRUPT, "%s: damaged at push %zu", name, i);
        }
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

void arrivals_release(struct arrivals *a)
{
    free(a->items);
    memset(a, 0, sizeof *a);
}
