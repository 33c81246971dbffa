#include "eventlog/tool/export/export_columns.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
    const struct tag_index_entry *x = *(const struct tag_index_entry *const *)a;
    const struct tag_index_entry *y = *(const struct tag_index_entry *const *)b;

    return bytes_compare(x->text, x->length, y->text, y->length);
}

int export_columns_find(struct export_columns *c, const struct export *x, const struct export_run *runs, size_t count,
                        struct error *e)
{
    memset(c, 0, sizeof *c);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < runs[i].scalars.count; k++) {
            const struct scalar_series *s = &runs[i].scalars.series[k];

            if (s->count && tag_index_add(&c->tags, s->tag, s->tag_length) == TAG_INDEX_NONE)
                return error_memory(e, NULL, "for %zu columns", c->tags.count + 1);
        }
    if (!(c->order = malloc((c->tags.count + 1) * sizeof *c->order)))
        return error_memory(e, NULL, "for %zu columns", c->tags.count);
    for (size_t i = 0; i < c->tags.count; i++)
        c->order[i] = &c->tags.entries[i];
    if (strcmp(x->options->columns, "first") != 0)
        qsort(c->order, c->tags.count, sizeof *c->order, by_name);
    for (size_t i = 0; i < c->tags.count; i++)
        c->tags.entries[c->order[i] - c->tags.entries].value = i;
    return OK;
}

void export_columns_release(struct export_columns *c)
{
    tag_index_release(&c->tags);
    free(c->order);
    c->order = NULL;
}

size_t export_columns_place(struct export_columns *c, const struct scalar_series *s)
{
    return c->tags.entries[tag_index_find(&c->tags, s->tag, s->tag_length)].value;
}

int export_columns_value(const struct export *x, const char *run, const struct scalar_series *s, size_t first,
                         size_t next, double *value, unsigned *from, struct error *e)
{
    size_t at = x->duplicate == EXPORT_FIRST ? first : next - 1;
    double sum = 0;

    *value = s->points[at].value;
    *from = scalar_series_from(s, at);
    if (next - first == 1)
        return OK;
    if (x->duplicate == EXPORT_ERROR)
        return error_set(e, ERR_ARG, "run %s, tag %s: step %lld has %zu points; choose with --dup=last, first or mean",
                         run, s->tag, (long long)s->points[first].step, next - first);
    if (x->duplicate == EXPORT_MEAN) {
        for (size_t i = first; i < next; i++)
            sum += s->points[i].value;
        *value = sum / (double)(next - first);
        *from = 0;
    }
    return OK;
}
