#include "trainer/server/tables/table_move.h"

#include "trainer/server/tables/table_protocol.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 28 /* bytes of a message */ };

static const enum optimizer_array_kind table_arrays[] = { ARRAY_WEIGHTS, ARRAY_SLOT_1, ARRAY_SLOT_2, ARRAY_AVERAGES };
enum { TABLE_ARRAYS = sizeof table_arrays / sizeof *table_arrays };

/* what moves between this server and another, in one direction */
struct cargo {
    char *bytes;
    size_t size, pieces;
    struct message *messages; /* (pieces) */
};

struct move {
    const struct table_movers *movers;
    const struct table_parts *old, *parts;
    int64_t step;
    struct cargo *out, *in; /* (servers) */
};

/* Copies what moves from server `from` to `to` between the arrays and `bytes`; NULL: only counts. Returns the bytes. */
static size_t copy(const struct move *m, int from, int to, char *bytes, int into_arrays)
{
    size_t at = 0, i = 0, k = 0;

    while (i < m->old->count && k < m->parts->count) {
        const struct table_part *a = &m->old->parts[i], *b = &m->parts->parts[k];
        const struct table *t = &m->old->tables[a->table];
        const int32_t first = a->first > b->first ? a->first : b->first;
        const int32_t a_end = a->first + a->rows, b_end = b->first + b->rows, end = a_end < b_end ? a_end : b_end;
        const size_t offset = t->offset + (size_t)(first - t->first) * t->width;
        const size_t size = (size_t)(end - first) * t->width * sizeof(real);

        for (int array = 0; array < TABLE_ARRAYS && a->server == from && b->server == to; array++) {
            const struct optimizer_array values = optimizer_array(m->movers->optimizer, table_arrays[array]);

            if (values.count && bytes && into_arrays)
                memcpy(values.values + offset, bytes + at, size);
            else if (values.count && bytes)
                memcpy(bytes + at, values.values + offset, size);
            at += values.count ? size : 0;
        }
        i += a_end == end;
        k += b_end == end;
    }
    return at;
}

static int cargo_new(struct cargo *c, size_t size)
{
    c->size = size;
    c->pieces = (size + PIECE - 1) / PIECE;
    c->bytes = size ? malloc(size) : NULL;
    c->messages = size ? calloc(c->pieces, sizeof *c->messages) : NULL;
    return !size || (c->bytes && c->messages);
}

static int load(struct move *m, struct error *e)
{
    for (int j = 0; j < m->movers->servers; j++) {
        if (j == m->movers->server)
            continue;
        if (!cargo_new(&m->out[j], copy(m, m->movers->server, j, NULL, 0)) ||
            !cargo_new(&m->in[j], copy(m, j, m->movers->server, NULL, 1)))
            return error_memory(e, NULL, "to move rows");
        copy(m, m->movers->server, j, m->out[j].bytes, 0);
    }
    return OK;
}

static int begin(struct move *m, struct error *e)
{
    int rc = OK;

    for (int j = 0; j < m->movers->servers; j++) {
        struct cargo *const both[] = { &m->in[j], &m->out[j] };

        for (int outward = 0; outward < 2; outward++)
            for (size_t i = 0; i < both[outward]->pieces && rc == OK; i++) {
                const size_t at = i * PIECE, left = both[outward]->size - at, n = left < PIECE ? left : PIECE;
                char *bytes = both[outward]->bytes + at;
                struct message *message = &both[outward]->messages[i];

                rc = outward ? world_send(m->movers->world, m->movers->workers + j, TAG_MOVE, bytes, n, message, e)
                             : world_receive(m->movers->world, m->movers->workers + j, TAG_MOVE, bytes, n, message, e);
            }
    }
    return rc;
}

static int finish(struct move *m, struct error *e)
{
    char name[WORLD_NAME_MAX];
    struct patience p;
    int rc = OK;

    patience_init(&p, m->movers->world, world_deadline(m->movers->world));
    for (int j = 0; j < m->movers->servers; j++) {
        struct cargo *const both[] = { &m->in[j], &m->out[j] };

        for (int outward = 0; outward < 2; outward++)
            for (size_t i = 0; i < both[outward]->pieces; i++)
                while ((rc = message_done(m->movers->world, &both[outward]->messages[i], e)) <= 0) {
                    if (rc < 0)
                        return rc;
                    if (patience_pause(&p))
                        continue;
                    world_name(m->movers->world, m->movers->workers + j, name, sizeof name);
                    if ((rc = patience_over(&p, e, "at step %" PRId64 ", as server %d, for %s to move rows of tables",
                                            m->step, m->movers->server, name)) < 0)
                        return rc;
                }
        copy(m, j, m->movers->server, m->in[j].bytes, 1);
    }
    return OK;
}

int table_move(const struct table_movers *movers, const struct table_parts *old, const struct table_parts *parts,
               int64_t step, struct error *e)
{
    struct move m = { movers, old, parts, step, NULL, NULL };
    int rc = OK;

    m.out = calloc((size_t)movers->servers, sizeof *m.out);
    m.in = calloc((size_t)movers->servers, sizeof *m.in);
    if (!m.out || !m.in)
        rc = error_memory(e, NULL, "to move rows");
    if (rc == OK && (rc = load(&m, e)) == OK && (rc = begin(&m, e)) == OK)
        rc = finish(&m, e);
    for (int j = 0; j < movers->servers && m.out && m.in; j++) {
        free(m.out[j].bytes);
        free(m.out[j].messages);
        free(m.in[j].bytes);
        free(m.in[j].messages);
    }
    free(m.out);
    free(m.in);
    return rc;
}
