#include "trainer/server/row_packet.h"

#include <string.h>

size_t row_packet_names_size(size_t rows)
{
    return sizeof(struct row_packet_head) + rows * sizeof(int32_t);
}

size_t row_packet_values_room(const struct table_parts *p, size_t rows)
{
    return sizeof(struct row_packet_head) + rows * table_parts_widest(p) * sizeof(real);
}

/* The table that has this id. */
static const struct table *table_of(const struct table_parts *p, int32_t id)
{
    const struct table *t = p->tables;

    while (id - t->first >= t->rows)
        t++;
    return t;
}

static int is_held(const struct table_parts *p, int server, int32_t id)
{
    return server < 0 || table_parts_find(p, id)->server == server;
}

size_t row_packet_values_size(const struct table_parts *p, const int32_t *ids, size_t rows)
{
    size_t reals = 0;

    for (size_t i = 0; i < rows; i++)
        reals += table_of(p, ids[i])->width;
    return sizeof(struct row_packet_head) + reals * sizeof(real);
}

size_t row_packet_put_names(void *bytes, const struct row_packet_head *head, const int32_t *ids)
{
    memcpy(bytes, head, sizeof *head);
    if (head->count)
        memcpy((char *)bytes + sizeof *head, ids, (size_t)head->count * sizeof *ids);
    return row_packet_names_size((size_t)head->count);
}

/* Ids that ascend, are rows, and are this server's. */
static int check_ids(const struct table_parts *p, int server, const int32_t *ids, size_t count, struct error *e)
{
    for (size_t i = 0; i < count; i++) {
        if (ids[i] < 0 || ids[i] >= p->rows || (i && ids[i] <= ids[i - 1]))
            return error_set(e, ERR_CORRUPT, "a message names row %d after %d, of %d rows", ids[i], i ? ids[i - 1] : -1,
                             p->rows);
        if (!is_held(p, server, ids[i]))
            return error_set(e, ERR_CORRUPT, "a message for server %d names row %d, which is on server %d", server,
                             ids[i], table_parts_find(p, ids[i])->server);
    }
    return OK;
}

int row_packet_get_names(const void *bytes, size_t room, const struct table_parts *p, int server,
                         struct row_packet_head *head, const int32_t **ids, struct error *e)
{
    if (room < sizeof *head)
        return error_set(e, ERR_CORRUPT, "a message of %zu bytes has no head", room);
    memcpy(head, bytes, sizeof *head);
    if (head->count < 0 || (size_t)head->count > (room - sizeof *head) / sizeof **ids)
        return error_set(e, ERR_CORRUPT, "a message of at most %zu bytes names %d rows", room, head->count);
    *ids = (const int32_t *)(const void *)((const char *)bytes + sizeof *head);
    return check_ids(p, server, *ids, (size_t)head->count, e);
}

size_t row_packet_take_values(const struct table_parts *p, const int32_t *ids, size_t rows, const real *parameters,
                              real *values)
{
    size_t at = 0;

    for (size_t i = 0; i < rows; i++) {
        const struct table *t = table_of(p, ids[i]);

        memcpy(values + at, parameters + t->offset + (size_t)(ids[i] - t->first) * t->width, t->width * sizeof *values);
        at += t->width;
    }
    return at;
}

size_t row_packet_give_values(const struct table_parts *p, const int32_t *ids, size_t rows, real *parameters,
                              const real *values)
{
    size_t at = 0;

    for (size_t i = 0; i < rows; i++) {
        const struct table *t = table_of(p, ids[i]);

        memcpy(parameters + t->offset + (size_t)(ids[i] - t->first) * t->width, values + at, t->width * sizeof *values);
        at += t->width;
    }
    return at;
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

/* Where the values begin, behind so many ids. */
static size_t values_at(size_t vectors, size_t rows)
{
    const size_t ids = sizeof(struct row_packet_head) + vectors * sizeof(struct row_packet_part);

    return (ids + rows * sizeof(int32_t) + sizeof(real) - 1) / sizeof(real) * sizeof(real);
}

size_t row_packet_sums_room(const struct table_parts *p, size_t rows, size_t vectors)
{
    return values_at(vectors, rows) + rows * table_parts_widest(p) * sizeof(real);
}

/* Writes the ids of this server's rows of a vector. Returns how many. */
static int32_t put_ids(int32_t *ids, const struct table_parts *p, int server, const struct row_gradient *g)
{
    int32_t rows = 0;

    for (size_t t = 0; t < p->table_count; t++)
        for (size_t i = 0; i < g[t].count; i++) {
            const int32_t id = p->tables[t].first + g[t].rows[i];

            if (is_held(p, server, id))
                ids[rows++] = id;
        }
    return rows;
}

/* Writes their values. Returns how many reals. */
static size_t put_values(real *values, const struct table_parts *p, int server, const struct row_gradient *g)
{
    size_t at = 0;

    for (size_t t = 0; t < p->table_count; t++)
        for (size_t i = 0; i < g[t].count; i++)
            if (is_held(p, server, p->tables[t].first + g[t].rows[i])) {
                memcpy(values + at, g[t].values + i * g[t].width, g[t].width * sizeof *values);
                at += g[t].width;
            }
    return at;
}

size_t row_packet_put_sums(void *bytes, const struct row_packet_head *head, const struct table_parts *p, int server,
                           const struct row_gradient *gradients, const real *weights)
{
    const size_t vectors = (size_t)head->count;
    char *parts = (char *)bytes + sizeof *head;
    int32_t *ids = (int32_t *)(void *)(parts + vectors * sizeof(struct row_packet_part));
    size_t rows = 0, reals = 0;

    memcpy(bytes, head, sizeof *head);
    for (size_t v = 0; v < vectors; v++) {
        struct row_packet_part part = { .weight = (double)weights[v] };

        part.rows = put_ids(ids + rows, p, server, gradients + v * p->table_count);
        memcpy(parts + v * sizeof part, &part, sizeof part);
        rows += (size_t)part.rows;
    }
    for (size_t v = 0; v < vectors; v++)
        reals += put_values((real *)(void *)((char *)bytes + values_at(vectors, rows)) + reals, p, server,
                            gradients + v * p->table_count);
    return values_at(vectors, rows) + reals * sizeof(real);
}

/* Sets a vector's gradients; its ids become rows of the tables. Returns the end of its values. */
static const real *split(const struct table_parts *p, int32_t *ids, size_t rows, const real *values,
                         struct row_gradient *gradients)
{
    for (size_t t = 0, i = 0; t < p->table_count; t++) {
        const struct table *table = &p->tables[t];
        const size_t begin = i;

        for (; i < rows && ids[i] - table->first < table->rows; i++)
            ids[i] -= table->first;
        gradients[t] = (struct row_gradient){ table->variable, i - begin, table->width, ids + begin, values };
        values += (i - begin) * table->width;
    }
    return values;
}

/* The rows of all vectors; weights are set. */
static int read_parts(const char *parts, size_t vectors, size_t most, real *weights, size_t *rows, struct error *e)
{
    *rows = 0;
    for (size_t v = 0; v < vectors; v++) {
        struct row_packet_part part;

        memcpy(&part, parts + v * sizeof part, sizeof part);
        if (part.rows < 0 || (size_t)part.rows > most - *rows)
            return error_set(e, ERR_CORRUPT, "a message has %d rows in a sum, of at most %zu", part.rows, most - *rows);
        weights[v] = (real)part.weight;
        *rows += (size_t)part.rows;
    }
    return OK;
}

int row_packet_get_sums(void *bytes, size_t room, const struct table_parts *p, int server, size_t vectors, size_t most,
                        struct row_packet_head *head, struct row_gradient *gradients, real *weights, struct error *e)
{
    char *const parts = (char *)bytes + sizeof *head;
    int32_t *ids = (int32_t *)(void *)(parts + vectors * sizeof(struct row_packet_part));
    size_t rows, at = 0;
    const real *values;
    int rc;

    if (room < row_packet_sums_room(p, most, vectors))
        return error_set(e, ERR_CORRUPT, "%zu bytes have no room for %zu rows in %zu sums", room, most, vectors);
    memcpy(head, bytes, sizeof *head);
    if (head->count < 0 || (size_t)head->count != vectors)
        return error_set(e, ERR_CORRUPT, "a message has %d sums, not %zu", head->count, vectors);
    if ((rc = read_parts(parts, vectors, most, weights, &rows, e)) < 0)
        return rc;
    values = (const real *)(const void *)((const char *)bytes + values_at(vectors, rows));
    for (size_t v = 0; v < vectors; v++) {
        struct row_packet_part part;

        memcpy(&part, parts + v * sizeof part, sizeof part);
        if ((rc = check_ids(p, server, ids + at, (size_t)part.rows, e)) < 0)
            return rc;
        values = split(p, ids + at, (size_t)part.rows, values, gradients + v * p->table_count);
        at += (size_t)part.rows;
    }
    return OK;
}
