#include "eventlog/tool/picture/curves.h"

#include "base/bytes.h"
#include "base/text.h"
#include "eventlog/tool/gather.h"
#include "eventlog/tool/picture/curve_group.h"
#include "eventlog/tool/picture/picture_range.h"
#include "eventlog/tool/picture/tag_better.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_SAID = 6, LINES_SAID = 8 };

int curves_settle(struct curves *w, struct error *e)
{
    w->low = w->high = NAN;
    if (w->y_range && !picture_range_parse(w->y_range, &w->low, &w->high))
        return error_set(e, ERR_ARG, "--y-range: '%s' is not LOW,HIGH with LOW below HIGH", w->y_range);
    if (w->log_y && (w->low <= 0 || w->high <= 0))
        return error_set(e, ERR_ARG, "--y-range: --log-y cannot show '%s'; give numbers above 0", w->y_range);
    if (curve_group_check(&w->groups, e) != OK)
        return ERR_ARG;
    return point_range_settle(&w->range, e);
}

/* A name may contain '=': if several runs match, the one with the longest name is meant. */
static int label_run(struct curves *w, const char *option, struct error *e)
{
    size_t longest = 0, run = w->count;

    if (!strchr(option, '='))
        return error_set(e, ERR_ARG, "--label: '%s' is not RUN=TEXT", option);
    for (size_t i = 0; i < w->count; i++) {
        size_t n = strlen(w->names[i]);

        if (n > longest && !strncmp(option, w->names[i], n) && option[n] == '=') {
            longest = n;
            run = i;
        }
    }
    if (run == w->count) {
        char name[256];
        const char *near;

        snprintf(name, sizeof name, "%.*s", (int)strcspn(option, "="), option);
        near = options_nearest(name, w->names, w->count);
        return error_set(e, ERR_ARG, "--label: no run is called '%s'%s%s%s", name, near ? "; did you mean '" : "",
                         near ? near : "", near ? "'?" : "; 'eventlog inspect' lists the runs");
    }
    w->labels[run] = option + longest + 1;
    return OK;
}

static struct curves_start start_of(const struct scalar_run *run)
{
    struct curves_start first = { INFINITY, INFINITY };

    for (size_t i = 0; i < run->count; i++)
        for (size_t k = 0; k < run->series[i].count; k++) {
            const struct eventlog_point *p = &run->series[i].points[k];

            first.wall_time = p->wall_time < first.wall_time ? p->wall_time : first.wall_time;
            first.step = (double)p->step < first.step ? (double)p->step : first.step;
        }
    return first;
}

int curves_read(struct curves *w, struct error *e)
{
    const struct log_directory *d = &w->scan->directory;

    scan_natural_order(&w->scan->directory);
    w->runs = calloc(d->count + 1, sizeof *w->runs);
    w->names = calloc(d->count + 1, sizeof *w->names);
    w->labels = calloc(d->count + 1, sizeof *w->labels);
    w->starts = calloc(d->count + 1, sizeof *w->starts);
    if (!w->runs || !w->names || !w->labels || !w->starts)
        return error_memory(e, NULL, "for %zu runs", d->count);
    for (const struct log_run *run = NULL; (run = scan_next_run(w->scan, run));) {
        struct scalar_run *r = &w->runs[w->count];
        int rc;

        w->labels[w->count] = w->names[w->count] = run->name;
        w->count++;
        scalar_run_init(r, scalar_view_of(w->view), 0, 1);
        rc = gather_run(w->scan, run, r, NULL, NULL, e);
        for (size_t k = 0; k < r->count; k++)
            gather_sift(&r->series[k], &w->range, 0);
        scalar_run_sort(r);
        gather_seconds(r);
        w->starts[w->count - 1] = start_of(r);
        if (rc != OK)
            return rc;
    }
    for (size_t i = 0; i < w->label_options.count; i++)
        if (label_run(w, w->label_options.items[i], e) != OK)
            return ERR_ARG;
    return OK;
}

int curves_sort_by_step(struct curves *w, struct error *e)
{
    int rc = OK;

    for (size_t i = 0; i < w->count; i++)
        for (size_t k = 0; k < w->runs[i].count && rc == OK; k++)
            rc = scalar_series_sort(&w->runs[i].series[k], e);
    return rc;
}

static int by_text(const void *a, const void *b)
{
    const struct curves_tag *x = a, *y = b;

    return bytes_compare(x->text, x->length, y->text, y->length);
}

static int by_tag(const void *tag, const void *series)
{
    const struct curves_tag *x = tag;
    const struct scalar_series *y = series;

    return bytes_compare(x->text, x->length, y->tag, y->tag_length);
}

/* The series of a run are sorted by tag since it was read. */
const struct scalar_series *curves_series(const struct curves *w, size_t run, const struct curves_tag *tag)
{
    const struct scalar_run *r = &w->runs[run];
    const struct scalar_series *s = r->count ? bsearch(tag, r->series, r->count, sizeof *s, by_tag) : NULL;

    return s && s->count ? s : NULL;
}

/* ---- tags that only some runs have ------------------------------------------------------------------------------- */

static int same_runs(const struct curves *w, const struct curves_tag *a, const struct curves_tag *b)
{
    if (a->runs != b->runs)
        return 0;
    for (size_t i = 0; i < w->count; i++)
        if (!curves_series(w, i, a) != !curves_series(w, i, b))
            return 0;
    return 1;
}

/* Name number `at` of a list, if it is one of the first. */
static void list_name(struct buffer *b, const char *text, size_t length, size_t at)
{
    if (at >= NAMES_SAID)
        return;
    buffer_append_text(b, at ? ", " : "");
    text_append_cut(b, text, length, TEXT_NAME_MOST, 0);
}

static void list_end(struct buffer *b, size_t count)
{
    if (count > NAMES_SAID)
        buffer_format(b, " and %zu more", count - NAMES_SAID);
}

/* Logs which runs have this tag, which not all have, with the tags behind it that just these runs have. */
static void say_alike(struct curves *w, struct curves_tag *tag, size_t count, const char *then)
{
    struct buffer runs = BUFFER_EMPTY, tags = BUFFER_EMPTY;
    size_t run = 0, alike = 0;

    for (size_t i = 0; i < count; i++)
        if (!tag[i].said && same_runs(w, tag, &tag[i])) {
            list_name(&tags, tag[i].text, tag[i].length, alike++);
            tag[i].said = 1;
        }
    for (size_t i = 0; i < w->count; i++)
        if (curves_series(w, i, tag))
            list_name(&runs, w->names[i], strlen(w->names[i]), run++);
    list_end(&tags, alike);
    list_end(&runs, tag->runs);
    log_line(&w->scan->log, "only %s %s %s%s", buffer_text(&runs), tag->runs == 1 ? "has" : "have", buffer_text(&tags),
             then);
    buffer_release(&runs);
    buffer_release(&tags);
}

static void say_partial(struct curves *w, size_t count, int left_out)
{
    size_t lines = 0, others = 0;

    for (size_t i = 0; i < count; i++)
        if (w->tags[i].runs < w->count && !w->tags[i].said) {
            if (lines++ < LINES_SAID)
                say_alike(w, &w->tags[i], count - i, left_out ? "; left out, --tag shows them" : "");
            else
                others++;
        }
    if (others)
        log_line(&w->scan->log, "only some runs have %zu other tags", others);
}

/* The tags to show: with --tag all that match, else those that all runs have, else all. */
int curves_choose_tags(struct curves *w, struct error *e)
{
    size_t n = 0, kept = 0, common = 0;
    int left_out;

    for (size_t i = 0; i < w->count; i++)
        n += w->runs[i].count;
    if (!(w->tags = malloc((n + 1) * sizeof *w->tags)))
        return error_memory(e, NULL, "for %zu tags", n);
    n = 0;
    for (size_t i = 0; i < w->count; i++)
        for (size_t k = 0; k < w->runs[i].count; k++) {
            const struct scalar_series *s = &w->runs[i].series[k];

            if (!scan_tag_wanted(w->scan, s->tag))
                continue;
            scan_series(w->scan, s);
            if (s->count)
                w->tags[n++] = (struct curves_tag){ .text = s->tag, .length = s->tag_length, .runs = 1 };
        }
    qsort(w->tags, n, sizeof *w->tags, by_text);
    for (size_t i = 0; i < n; i++)
        if (kept && !by_text(&w->tags[kept - 1], &w->tags[i]))
            w->tags[kept - 1].runs++;
        else
            w->tags[kept++] = w->tags[i];
    for (size_t i = 0; i < kept; i++)
        common += w->tags[i].runs == w->count;
    left_out = !w->scan->tags.patterns.count && common;
    say_partial(w, kept, left_out);
    if (left_out) {
        n = 0;
        for (size_t i = 0; i < kept; i++)
            if (w->tags[i].runs == w->count)
                w->tags[n++] = w->tags[i];
        kept = n;
    }
    w->tag_count = kept;
    for (size_t i = 0; i < kept; i++) {
        int lower = w->lower.patterns.count && selection_wants(&w->lower, w->tags[i].text);
        int higher = w->higher.patterns.count && selection_wants(&w->higher, w->tags[i].text);

        w->tags[i].better = higher ? 1 : lower ? -1 : tag_better(w->tags[i].text);
    }
    if (kept)
        w->scan->unmatched += selection_tell(&w->lower, "--lower", "tag", &w->scan->log) +
                              selection_tell(&w->higher, "--higher", "tag", &w->scan->log);
    return OK;
}

void curves_release(struct curves *w)
{
    for (size_t i = 0; i < w->count; i++)
        scalar_run_release(&w->runs[i]);
    free(w->runs);
    free(w->names);
    free(w->labels);
    free(w->starts);
    free(w->tags);
    selection_release(&w->lower);
    selection_release(&w->higher);
}
