/* eventlog downsample: fewer points of each series. */
#include "eventlog/rewrite/downsample.h"

#include "base/human.h"
#include "eventlog/format/tag_index.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/rewrite/rewrite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct series {
    int others;          /* not all values are numbers */
    double *x, *y;       /* step and number of each value */
    uint8_t *keep;
    size_t count, capacity, next; /* next: of the second reading */
};

struct sampling {
    struct rewrite rewrite;
    int64_t every, most;
    struct tag_index tags; /* of the run at hand; items: struct series */
    uint64_t thinned; /* series */
};

static struct series *series_of(struct sampling *s, const struct event_value *v, struct error *e)
{
    struct series *series = tag_index_item(&s->tags, v->tag, v->tag_length);

    if (!series)
        error_memory(e, NULL, "for %zu tags", s->tags.count + 1);
    return series;
}

/* First reading: all points. */
static int gather(void *context, uint64_t offset, const uint8_t *data, size_t n, const struct event *event,
                  struct error *e)
{
    struct sampling *s = context;
    struct event_values values;
    struct event_value v;

    (void)offset;
    (void)data;
    (void)n;
    event_values_init(&values, event);
    while (event->what == EVENT_SUMMARY && event_values_next(&values, &v)) {
        struct series *series = series_of(s, &v, e);

        if (!series)
            return ERR_NOMEM;
        if (series->count == series->capacity) {
            size_t more = series->capacity ? series->capacity * 2 : 8;
            double *x = realloc(series->x, more * sizeof *x), *y = NULL;

            if (x) {
                series->x = x;
                y = realloc(series->y, more * sizeof *y);
            }
            if (!y)
                return error_memory(e, NULL, "for %zu points", more);
            series->y = y;
            series->capacity = more;
        }
        series->x[series->count] = (double)event->step;
        series->y[series->count++] = v.is_number ? v.number : NAN;
        series->others |= !v.is_number;
    }
    return OK;
}

static void downsample_forget(struct sampling *s)
{
    const struct series *series = s->tags.items;

    for (size_t i = 0; i < s->tags.count; i++) {
        free(series[i].x);
        free(series[i].y);
        free(series[i].keep);
    }
    tag_index_release(&s->tags);
}

static int downsample_begin_run(void *context, const struct log_run *run, struct error *e)
{
    struct sampling *s = context;
    int rc = OK;

    downsample_forget(s);
    s->rewrite.looking_ahead = 1;
    for (size_t k = 0; rc == OK && k < run->file_count; k++)
        rc = rewrite_read(&s->rewrite, run->name, run->files[k], gather, s, e);
    s->rewrite.looking_ahead = 0;
    for (size_t i = 0; rc == OK && i < s->tags.count; i++) {
        struct series *series = (struct series *)s->tags.items + i;
        size_t most = (size_t)s->most;

        if (!scan_tag_wanted(&s->rewrite.scan, s->tags.entries[i].text))
            continue;
        if (!(series->keep = malloc(series->count)))
            return error_memory(e, NULL, "for %zu points", series->count);
        if (s->every)
            downsample_every(series->count, (size_t)s->every, series->keep);
        else if (!series->others)
            downsample_curve(series->x, series->y, series->count, most, series->keep);
        else
            downsample_even(series->count, most, series->keep);
        s->thinned += memchr(series->keep, 0, series->count) != NULL;
    }
    return rc;
}

static int downsample_choose(void *context, const struct event *event, const struct event_value *v, size_t place,
                             struct log_rewrite_choice *choice, struct error *e)
{
    struct sampling *s = context;
    struct series *series;

    (void)event;
    (void)place;
    if (!v)
        return OK;
    if (!(series = series_of(s, v, e)))
        return ERR_NOMEM;
    /* What was logged since the first reading stays. */
    choice->keep = !series->keep || series->next >= series->count || series->keep[series->next];
    series->next++;
    return OK;
}

int command_downsample(int argc, char **argv)
{
    struct sampling s = { .tags = TAG_INDEX_OF(struct series) };
    struct option table[] = {
        { OPTION_INT, 'n', "max-points", &s.most, "N", .help = "Keep at most N values of each series of a run: of "
          "numbers those that preserve the shape of the curve and its peaks (largest triangle three buckets), of other "
          "kinds evenly spaced ones", .minimum = 2, .maximum = 1e12 },
        { OPTION_INT, 0, "every", &s.every, "K", .help = "Keep every K-th value of each series, and the last one",
          .minimum = 1, .maximum = 1e12 },
        { OPTION_LIST, 0, "tag", &s.rewrite.scan.tags, "GLOB", .help = "Thin only these series; may be repeated "
          "(default: all)" },
        REWRITE_OPTIONS(s.rewrite), REWRITE_IN_PLACE(s.rewrite),
    };
    const struct options options = {
        .program = "eventlog downsample", .usage = "--max-points N | --every K [OPTION...] PATH... -o DIR | --in-place",
        .summary = "Copy a log with fewer values of each series, or thin it in place. The first and the last value of "
                   "a series stay, and so do all files, graphs and other events; values are copied bit for bit, in the "
                   "same order. Values are counted over all files of a run in reading order; run 'eventlog merge' "
                   "first if the run was restarted. Reads the log twice and needs 17 bytes of memory for each value of "
                   "a run. Exit status: 0 done; 1 no series was long enough, or damage; 2 usage or I/O.",
        .examples = "  eventlog downsample --max-points 1000 logs -o small\n"
                    "  eventlog downsample --every 10 --tag 'batch_*' --in-place logs/train\n",
        .table = table, .count = sizeof table / sizeof *table, .least = 1, .wanted = "no PATH given;",
    };
    const struct rewrite_filter filter = { &s, downsample_begin_run, downsample_choose };
    struct error e = { 0 };
    char more[100], series[HUMAN_TEXT_MAX], values[HUMAN_TEXT_MAX];
    int count = 0, status, rc = scan_begin(&s.rewrite.scan, &options, argc, argv, &count, &e);

    if (rc == OK && !s.every == !s.most)
        rc = error_set(&e, ERR_ARG, "give one of --max-points N and --every K");
    if (rc != OK)
        return scan_leave(&s.rewrite.scan, rc, &e);
    if ((status = rewrite_open(&s.rewrite, argv + 1, (size_t)count)) != EXIT_DONE)
        return status;
    s.rewrite.scan.passes = 2;
    rc = rewrite_filter(&s.rewrite, &filter, &e);
    if (s.rewrite.json)
        snprintf(more, sizeof more, ",\"series\":%llu", (unsigned long long)s.thinned);
    else
        snprintf(more, sizeof more, "; %s thinned, %s left out", human_count(s.thinned, "series", series),
                 human_count(s.rewrite.dropped, "value", values));
    if (rc == OK)
        rewrite_print(&s.rewrite, "downsample", more);
    status = rewrite_close(&s.rewrite, rc, s.thinned > 0, &e);
    downsample_forget(&s);
    return status;
}
