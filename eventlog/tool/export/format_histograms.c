/* histograms: one row per bucket, `run,tag,step,left,right,count,wall_time`, of both generations of histograms. */
#include "eventlog/tool/export/export.h"

#include "base/number.h"
#include "eventlog/format/value_content.h"
#include "eventlog/tool/export/value_list.h"

#include <stdlib.h>
#include <string.h>

static int histograms_start(struct export *x, struct error *e)
{
    if (!(x->state = calloc(1, sizeof(struct value_list))))
        return error_memory(e, NULL, "for histograms");
    output_text(x->out,
                x->tsv ? "run\ttag\tstep\tleft\tright\tcount\twall_time" : "run,tag,step,left,right,count,wall_time");
    output_text(x->out, x->line_end);
    return OK;
}

static int histograms_value(struct export *x, const struct scalar_series *s, const struct event *event,
                            const struct event_value *v, struct error *e)
{
    struct buffer rows = BUFFER_EMPTY;
    size_t count;
    int rc = OK;

    if (strcmp(s->plugin, "histograms") != 0)
        return OK;
    if (!histogram_content_rows(v->bytes, v->length, &rows, &count))
        x->unread++;
    else
        rc = value_list_add(x->state, s->number, event->step, event->wall_time, rows.data, rows.length, e);
    buffer_release(&rows);
    return rc;
}

static void histograms_run_again(struct export *x)
{
    value_list_release(x->state);
}

static void write_rows(struct export *x, const struct buffer *prefix, const struct value_item *item)
{
    for (size_t at = 0; at + sizeof(struct histogram_row) <= item->length; at += sizeof(struct histogram_row)) {
        struct histogram_row row;
        char *room, *p;

        memcpy(&row, item->bytes + at, sizeof row);
        output_bytes(x->out, prefix->data, prefix->length);
        p = room = output_room(x->out, 256);
        p += number_text_integer(item->step, p);
        *p++ = x->between;
        p += export_csv_double(row.left, p);
        *p++ = x->between;
        p += export_csv_double(row.right, p);
        *p++ = x->between;
        p += export_csv_double(row.count, p);
        *p++ = x->between;
        p += export_time(x, item->wall_time, p);
        p = stpcpy(p, x->line_end);
        output_filled(x->out, (size_t)(p - room));
    }
    x->points++;
}

struct histograms_place {
    size_t tag;  /* of the series among the sorted ones */
    size_t item; /* in reading order */
    int64_t step;
};

static int by_place(const void *a, const void *b)
{
    const struct histograms_place *x = a, *y = b;

    if (x->tag != y->tag)
        return x->tag < y->tag ? -1 : 1;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

static int histograms_run_read(struct export *x, const char *run, const struct scalar_run *scalars, struct error *e)
{
    struct value_list *list = x->state;
    size_t *tags = malloc((scalars->count + 1) * sizeof *tags); /* number of a series -> its index by tag */
    struct histograms_place *places = malloc((list->count + 1) * sizeof *places);
    struct buffer prefix = BUFFER_EMPTY;
    int good = tags && places;

    for (size_t i = 0; good && i < scalars->count; i++)
        tags[scalars->series[i].number] = i;
    for (size_t i = 0; good && i < list->count; i++)
        places[i] = (struct histograms_place){ tags[list->items[i].series], i, list->items[i].step };
    if (good && list->count && strcmp(x->options->order, "file") != 0)
        qsort(places, list->count, sizeof *places, by_place);
    for (size_t i = 0; good && i < list->count; i++) {
        const struct scalar_series *s = &scalars->series[places[i].tag];

        buffer_clear(&prefix);
        export_prefix(x, run, s, &prefix);
        if ((good = buffer_ok(&prefix)))
            write_rows(x, &prefix, &list->items[places[i].item]);
    }
    buffer_release(&prefix);
    free(tags);
    free(places);
    value_list_release(list);
    return good ? OK : error_memory(e, NULL, "for the histograms of run %s", run);
}

static int histograms_finish(struct export *x, int commit, struct error *e)
{
    (void)commit;
    (void)e;
    if (x->state)
        value_list_release(x->state);
    free(x->state);
    return OK;
}

const struct export_format format_histograms = {
    .name = "histograms",
    .help = "a row for each bucket",
    .extensions = "csv tsv",
    .takes = "order=file time tsv crlf",
    .start = histograms_start,
    .finish = histograms_finish,
    .value = histograms_value,
    .run_read = histograms_run_read,
    .run_again = histograms_run_again,
};
