#include "trainer/server/table_parts.h"

#include "trainer/optimizers/gradient_norm.h"

#include <stdlib.h>

size_t table_parts_tables(const struct network *n)
{
    size_t count, tables = 0;
    const struct variable *v = network_variables(n, &count);

    for (size_t i = 0; i < count; i++)
        tables += v[i].row_width > 0;
    return tables;
}

static size_t parts_of(const struct table *t, int partitions)
{
    return partitions < t->rows ? (size_t)partitions : (size_t)t->rows;
}

/* Fills tables and their ids; returns the number of parts. */
static size_t list_tables(struct table_parts *p, const struct network *n, int partitions, int64_t *rows)
{
    size_t count, parts = 0;
    const struct variable *v = network_variables(n, &count);

    *rows = 0;
    for (size_t i = 0; i < count; i++) {
        struct table *t = &p->tables[p->table_count];
        const int64_t own = v[i].row_width ? (int64_t)(v[i].count / v[i].row_width) : 0;

        if (!own || *rows + own > INT32_MAX) {
            *rows += own;
            continue;
        }
        *t = (struct table){ i, v[i].offset, v[i].row_width, (int32_t)*rows, (int32_t)own };
        *rows += own;
        parts += parts_of(t, partitions);
        p->table_count++;
    }
    return parts;
}

static void cut(struct table_parts *p, int partitions)
{
    for (size_t i = 0; i < p->table_count; i++) {
        const struct table *t = &p->tables[i];
        const int32_t count = (int32_t)parts_of(t, partitions), rows = t->rows / count, more = t->rows % count;
        int32_t first = t->first;

        for (int32_t k = 0; k < count; k++) {
            p->parts[p->count++] = (struct table_part){ i, first, rows + (k < more), 0 };
            first += rows + (k < more);
        }
    }
}

static size_t reals_of(const struct table_parts *p, const struct table_part *part)
{
    return (size_t)part->rows * p->tables[part->table].width;
}

/* The largest part that is not placed yet (server -1). */
static struct table_part *largest(const struct table_parts *p)
{
    struct table_part *found = NULL;

    for (size_t i = 0; i < p->count; i++)
        if (p->parts[i].server < 0 && (!found || reals_of(p, &p->parts[i]) > reals_of(p, found)))
            found = &p->parts[i];
    return found;
}

static int place(struct table_parts *p, struct error *e)
{
    size_t *held = calloc((size_t)p->servers, sizeof *held);
    struct table_part *part;

    if (!held)
        return error_memory(e, NULL, "to place tables on %d servers", p->servers);
    for (size_t i = 0; i < p->count; i++)
        p->parts[i].server = -1;
    while ((part = largest(p))) {
        int least = 0;

        for (int j = 1; j < p->servers; j++)
            least = held[j] < held[least] ? j : least;
        part->server = least;
        held[least] += reals_of(p, part);
    }
    free(held);
    return OK;
}

int table_parts_make(struct table_parts *out, const struct network *n, int servers, int partitions, struct error *e)
{
    const size_t tables = table_parts_tables(n);
    struct table_parts p = { .servers = servers };
    int64_t rows = 0;
    size_t parts = 0;
    int rc = OK;

    if ((p.tables = calloc(tables + 1, sizeof *p.tables))) {
        parts = list_tables(&p, n, partitions, &rows);
        p.parts = calloc(parts + 1, sizeof *p.parts);
    }
    if (!p.tables || !p.parts)
        rc = error_memory(e, NULL, "for %zu parts of tables", parts);
    else if (rows > INT32_MAX)
        rc = error_set(e, ERR_ARG, "the model's tables have %lld rows; at most %d can be on servers", (long long)rows,
                       INT32_MAX);
    if (rc == OK) {
        p.rows = (int32_t)rows;
        cut(&p, partitions);
        rc = place(&p, e);
    }
    if (rc < 0) {
        table_parts_release(&p);
        return rc;
    }
    *out = p;
    return OK;
}

void table_parts_release(struct table_parts *p)
{
    free(p->tables);
    free(p->parts);
    *p = (struct table_parts){ 0 };
}

const struct table_part *table_parts_find(const struct table_parts *p, int32_t id)
{
    size_t low = 0, high = p->count;

    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;

        if (p->parts[middle].first <= id)
            low = middle;
        else
            high = middle;
    }
    return &p->parts[low];
}

size_t table_parts_rows_most(const struct table_parts *p, const struct network *n, size_t samples)
{
    const struct model *m = network_model(n);
    const size_t tokens = samples * (size_t)m->height * (size_t)m->width;
    size_t most = 0;

    for (size_t i = 0; i < p->table_count; i++)
        most += tokens < (size_t)p->tables[i].rows ? tokens : (size_t)p->tables[i].rows;
    return most;
}

int table_parts_most(const struct table_parts *p)
{
    int32_t most = 1;

    for (size_t t = 0; t < p->table_count; t++)
        most = p->tables[t].rows > most ? p->tables[t].rows : most;
    return most < 1 << 30 ? (int)most : 1 << 30;
}

size_t table_parts_widest(const struct table_parts *p)
{
    size_t widest = 0;

    for (size_t i = 0; i < p->table_count; i++)
        widest = p->tables[i].width > widest ? p->tables[i].width : widest;
    return widest;
}

void table_parts_held(const struct table_parts *p, struct gradient_part *held)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct table_part *part = &p->parts[i];
        const struct table *t = &p->tables[part->table];
        const size_t from = t->offset + (size_t)(part->first - t->first) * t->width;

        held[i] = (struct gradient_part){ .from = from,
                                          .to = from + (size_t)part->rows * t->width,
                                          .holder = part->server };
    }
}
