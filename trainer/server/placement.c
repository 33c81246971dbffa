#include "trainer/server/placement.h"

#include "trainer/collective/narrowing.h"

#include <stdlib.h>
#include <string.h>

struct part {
    struct extent extent;
    int server;
};

static size_t length_of(struct extent x)
{
    return x.to - x.from;
}

static int larger_first(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    size_t m = length_of(x->extent), n = length_of(y->extent);

    if (m != n)
        return m < n ? 1 : -1;
    return (x->extent.from > y->extent.from) - (x->extent.from < y->extent.from);
}

static int lower_first(const void *a, const void *b)
{
    const struct part *x = a, *y = b;

    return (x->extent.from > y->extent.from) - (x->extent.from < y->extent.from);
}

static size_t parts_of(struct extent x, size_t most)
{
    return length_of(x) > most ? (length_of(x) - 1) / most + 1 : 1;
}

/* Fills `parts` with the divided variables; returns how many. parts may be NULL to count. */
static size_t cut(const struct extent *variables, size_t count, size_t most, struct part *parts)
{
    size_t made = 0;

    for (size_t i = 0; i < count; i++) {
        size_t n = parts_of(variables[i], most), length = length_of(variables[i]), from = variables[i].from;

        for (size_t k = 0; length > 0 && k < n; k++) {
            size_t take = length / n + (k < length % n);

            if (parts)
                parts[made].extent = (struct extent){ from, from + take };
            from += take;
            made++;
        }
    }
    return made;
}

/* From the largest to the smallest, each on the server that has least. */
static void place_largest_first(struct placement *out, struct part *parts, size_t n)
{
    qsort(parts, n, sizeof *parts, larger_first);
    for (size_t i = 0; i < n; i++) {
        int least = 0;

        for (int s = 1; s < out->servers; s++)
            if (out->held[s] < out->held[least])
                least = s;
        parts[i].server = least;
        out->held[least] += length_of(parts[i].extent);
    }
}

/* Neighbours on one server become one item. */
static void join_parts(struct placement *out, struct part *parts, size_t n)
{
    qsort(parts, n, sizeof *parts, lower_first);
    for (size_t i = 0; i < n; i++) {
        struct placed *last = out->count ? &out->items[out->count - 1] : NULL;

        if (last && last->server == parts[i].server && last->extent.to == parts[i].extent.from)
            last->extent.to = parts[i].extent.to;
        else
            out->items[out->count++] = (struct placed){ parts[i].extent, parts[i].server };
    }
}

int placement_make(struct placement *out, const struct extent *variables, size_t count, int servers, struct error *e)
{
    size_t total = 0, most, n;
    struct part *parts;

    for (size_t i = 0; i < count; i++)
        total += length_of(variables[i]);
    most = (total + (size_t)servers - 1) / (size_t)servers;
    if (servers > 1 && most > PLACEMENT_LEAST)
        most = most / PLACEMENT_PARTS > PLACEMENT_LEAST ? most / PLACEMENT_PARTS : PLACEMENT_LEAST;
    most += !most;
    n = cut(variables, count, most, NULL);
    parts = calloc(n + 1, sizeof *parts);
    *out = (struct placement){ .items = calloc(n + 1, sizeof *out->items),
                               .held = calloc((size_t)servers, sizeof *out->held),
                               .servers = servers };
    if (!parts || !out->items || !out->held) {
        free(parts);
        placement_release(out);
        return error_memory(e, NULL, "to place %zu variables on %d servers", count, servers);
    }
    cut(variables, count, most, parts);
    place_largest_first(out, parts, n);
    join_parts(out, parts, n);
    free(parts);
    return OK;
}

int placement_of(struct placement *out, const struct network *n, int servers, int dense, struct error *e)
{
    size_t count, placed = 0;
    const struct variable *v = network_variables(n, &count);
    struct extent *extents = calloc(count + 1, sizeof *extents);
    int rc;

    if (!extents)
        return error_memory(e, NULL, "to place %zu variables", count);
    for (size_t i = 0; i < count; i++) {
        const size_t from = network_exchange_place(n, &v[i]);

        if (!dense || !v[i].row_width)
            extents[placed++] = (struct extent){ from, from + v[i].count };
    }
    rc = placement_make(out, extents, placed, servers, e);
    out->shared = (struct extent){ network_exchange_count(n) - 1, network_exchange_count(n) };
    free(extents);
    return rc;
}

void placement_release(struct placement *p)
{
    free(p->items);
    free(p->held);
    memset(p, 0, sizeof *p);
}

/* Adds a piece to the current packet, opening another when it is full. Returns how much was added. */
static size_t put_piece(struct packing *p, size_t limit, struct extent x)
{
    struct packet *k = p->packet_count ? &p->packets[p->packet_count - 1] : NULL;
    size_t take;

    if (!k || k->length == limit) {
        k = &p->packets[p->packet_count++];
        *k = (struct packet){ p->piece_count, 0, p->length, 0, 0 };
    }
    take = length_of(x) < limit - k->length ? length_of(x) : limit - k->length;
    if (k->pieces > 0 && p->pieces[p->piece_count - 1].from == x.to) {
        p->pieces[p->piece_count - 1].from -= take;
    } else {
        p->pieces[p->piece_count++] = (struct extent){ x.to - take, x.to };
        k->pieces++;
    }
    k->length += take;
    k->low = x.to - take;
    p->length += take;
    return take;
}

int packing_make(struct packing *out, const struct placement *p, int server, size_t limit, struct error *e)
{
    const size_t packets = (p->held[server] + length_of(p->shared)) / limit + 1;
    struct extent shared = p->shared;

    memset(out, 0, sizeof *out);
    out->pieces = calloc(1 + p->count + packets + 1, sizeof *out->pieces);
    out->packets = calloc(packets + 1, sizeof *out->packets);
    if (!out->pieces || !out->packets) {
        packing_release(out);
        return error_memory(e, NULL, "to plan the messages of a server");
    }
    while (shared.to > shared.from)
        shared.to -= put_piece(out, limit, shared);
    for (size_t i = p->count; i-- > 0;) {
        struct extent x = p->items[i].extent;

        if (p->items[i].server != server)
            continue;
        while (x.to > x.from)
            x.to -= put_piece(out, limit, x);
    }
    return OK;
}

void packing_release(struct packing *p)
{
    free(p->pieces);
    free(p->packets);
    memset(p, 0, sizeof *p);
}

size_t packing_shared_at(const struct packing *p)
{
    return length_of(p->pieces[0]) - 1;
}

void packing_gather(const struct packing *p, size_t k, const real *vector, real *packed)
{
    const struct packet *packet = &p->packets[k];

    for (size_t i = 0; i < packet->pieces; i++) {
        struct extent x = p->pieces[packet->first_piece + i];

        memcpy(packed, vector + x.from, length_of(x) * sizeof *packed);
        packed += length_of(x);
    }
}

size_t packing_bytes(const struct packing *p, size_t k, size_t rounded)
{
    const struct packet *packet = &p->packets[k];
    size_t bytes = 0;

    for (size_t i = 0; i < packet->pieces; i++)
        bytes += narrowing_bytes(p->pieces[packet->first_piece + i], rounded);
    return bytes;
}

/* How many elements of a piece are below `rounded`. */
static size_t rounded_of(struct extent x, size_t rounded)
{
    return rounded <= x.from ? 0 : rounded < x.to ? rounded - x.from : length_of(x);
}

void packing_narrow(const struct packing *p, size_t k, size_t rounded, real *packed)
{
    const struct packet *packet = &p->packets[k];
    char *to = (char *)packed;

    for (size_t i = 0; i < packet->pieces && rounded; i++) {
        const struct extent x = p->pieces[packet->first_piece + i];

        narrowing_pack(packed, (struct extent){ 0, length_of(x) }, rounded_of(x, rounded), to);
        packed += length_of(x);
        to += narrowing_bytes(x, rounded);
    }
}

/* From the last piece, since each moves up. */
void packing_widen(const struct packing *p, size_t k, size_t rounded, real *packed)
{
    const struct packet *packet = &p->packets[k];
    const char *from = (const char *)packed + packing_bytes(p, k, rounded);
    real *to = packed + packet->length;

    for (size_t i = packet->pieces; i-- > 0 && rounded;) {
        const struct extent x = p->pieces[packet->first_piece + i];

        from -= narrowing_bytes(x, rounded);
        to -= length_of(x);
        memmove(to, from, narrowing_bytes(x, rounded));
        narrowing_unpack(to, (struct extent){ 0, length_of(x) }, rounded_of(x, rounded), to);
    }
}
