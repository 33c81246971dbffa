/* eventlog downsample: fewer points of each series. */
#include "eventlog/rewrite/downsample.h"

#include "base/array.h"
#include "base/human.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/rewrite/rewrite_command.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct series {
    int others;    /* not all values are numbers */
    double *x, *y; /* step and number of each value */
    uint8_t *keep;
    size_t count, x_capacity, y_capacity, next; /* next: of the second reading */
};

struct sampling {
    struct rewrite rewrite; /* its tags are those of the run at hand; items: struct series */
    int64_t every, most;
    uint64_t thinned; /* series */
};

/* First reading: all points. */
static int gather(void *context, uint64_t offset, const uint8_t *data, size_t n, const struct event *event,
                  struct error *e)
{
    struct sampling *s = context;
    struct event_values values;
    const struct event_value *v;

    (void)offset;
    (void)data;
    (void)n;
    event_values_init(&values, event);
    while (event->what == EVENT_SUMMARY && (v = event_values_next(&values))) {
        struct series *series = tag_index_item(&s->rewrite.tags, v->tag, v->tag_length);

        if (!series)
            return error_memory(e, NULL, "for %zu tags", s->rewrite.tags.count + 1);
        if (!ARRAY_ROOM(series->x, series->x_capacity, series->count + 1) ||
            !ARRAY_ROOM(series->y, series->y_capacity, series->count + 1))
            return error_memory(e, NULL, "for %zu points", series->count + 1);
        series->x[series->count] = (double)event->step;
        series->y[series->count++] = v->is_number ? v->number : NAN;
        series->others |= !v->is_number;
    }
    return OK;
}

static void downsample_end_run(void *context)
{
    struct tag_index *tags = &((struct sampling *)context)->rewrite.tags;
    const struct series *series = tags->items;

    for (size_t i = 0; i < tags->count; i++) {
        free(series[i].x);
        free(series[i].y);
        free(series[i].keep);
    }
    tag_index_release(tags);
}

static int downsample_begin_run(void *context, const struct log_run *run, struct error *e)
{
    struct sampling *s = context;
    struct tag_index *tags = &s->rewrite.tags;
    int rc = OK;

    s->rewrite.looking_ahead = 1;
    for (size_t k = 0; rc == OK && k < run->file_count; k++)
        rc = rewrite_read(&s->rewrite, run->name, run->files[k], gather, s, e);
    s->rewrite.looking_ahead = 0;
    for (size_t i = 0; rc == OK && i < tags->count; i++) {
        struct series *series = (struct series *)tags->items + i;
        size_t most = (size_t)s->most;

        if (!scan_tag_wanted(&s->rewrite.scan, tags->entries[i].text))
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

/* What was logged since the first reading stays. */
static int downsample_choose(void *context, const struct rewrite_value *value, struct log_rewrite_choice *choice,
                             struct error *e)
{
    const struct sampling *s = context;
    struct series *series = (struct series *)s->rewrite.tags.items + value->number;

    (void)e;
    choice->keep = !series->keep || series->next >= series->count || series->keep[series->next];
    series->next++;
    return OK;
}

static int downsample_check(void *context, struct error *e)
{
    const struct sampling *s = context;

    return !s->every == !s->most ? error_set(e, ERR_ARG, "give one of --max-points N and --every K") : OK;
}

static int downsample_tell(void *context)
{
    const struct sampling *s = context;
    char more[100], series[HUMAN_TEXT_MAX], values[HUMAN_TEXT_MAX];

    if (s->rewrite.json)
        snprintf(more, sizeof more, ",\"series\":%llu", (unsigned long long)s->thinned);
    else
        snprintf(more, sizeof more, "; %s thinned, %s left out", human_count(s->thinned, "series", series),
                 human_count(s->rewrite.dropped, "value", values));
    rewrite_print(&s->rewrite, "downsample", more);
    return s->thinned > 0;
}

int command_downsample(int argc, char **argv)
{
    struct sampling s = { .rewrite = { .scan.passes = 2, .tags = TAG_INDEX_OF(struct series) } };
    struct option table[] = {
        { OPTION_INT, 'n', "max-points", &s.most, "N",
          .help = "Keep at most N values of each series of a run: of numbers, those that preserve the shape and the "
                  "peaks of the curve (largest triangle three buckets); of other kinds, evenly spaced ones",
          .minimum = 2, .maximum = 1e12 },
        { OPTION_INT, 0, "every", &s.every, "K", .help = "Keep every K-th value of each series, and the last one",
          .minimum = 1, .maximum = 1e12 },
        { OPTION_LIST, 0, "tag", &s.rewrite.scan.tags, "GLOB",
          .help = "Thin only these series; may be repeated (default: all)" },
        REWRITE_OPTIONS(s.rewrite),
        REWRITE_IN_PLACE(s.rewrite),
    };
    const struct options options = {
        .program = "eventlog downsample",
        .usage = "--max-points N | --every K [OPTION...] PATH... -o DIR | --in-place",
        .summary = "Copy a log with fewer values of each series, or thin it in place. The first and the last value of "
                   "a series stay, and so do all files, graphs and other events; values are copied bit for bit, in the "
                   "same order. Values are counted over all files of a run in reading order; run 'eventlog merge' "
                   "first if the run was restarted. Reads the log twice and needs 17 bytes of memory for each value of "
                   "a run. Exit status: 0 done; 1 no series was long enough, or damage; 2 usage or I/O.",
        .examples = "  eventlog downsample --max-points 1000 logs -o small\n"
                    "  eventlog downsample --every 10 --tag 'batch_*' --in-place logs/train\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 1,
        .wanted = "no PATH given;",
    };
    const struct rewrite_command command = {
        &options,
        &s,
        .check = downsample_check,
        .begin_run = downsample_begin_run,
        .end_run = downsample_end_run,
        .choose = downsample_choose,
        .tell = downsample_tell,
    };

    return rewrite_command_run(&s.rewrite, &command, argc, argv);
}
