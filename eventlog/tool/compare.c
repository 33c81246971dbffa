/* eventlog compare: runs beside each other, as a table, as JSON, or as a picture. */
#include "base/buffer.h"
#include "base/json.h"
#include "eventlog/scalar_series.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/output.h"
#include "eventlog/tool/picture.h"
#include "eventlog/tool/scan.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PANELS_MOST = 60 };

struct tag {
    const char *text; /* borrowed from a series */
    size_t length, runs;
};

struct work {
    struct scan *scan;
    struct scalar_run *runs;
    const char **names;
    size_t count, current;
    struct tag *tags;
    size_t tag_count;
    struct option_list lower, higher;
};

/* ---- reading --------------------------------------------------------------------------------------------------- */

static void begin_file(void *context, const char *path)
{
    struct work *w = context;

    (void)path;
    scalar_run_begin_file(&w->runs[w->current]);
}

static void damage(void *context, const struct event_damage *d)
{
    struct work *w = context;

    (void)d;
    scalar_run_damage(&w->runs[w->current]);
}

static void restart(void *context)
{
    struct work *w = context;

    scalar_run_restart(&w->runs[w->current]);
}

static int event(void *context, const struct event *ev, struct error *e)
{
    struct work *w = context;

    return scalar_run_event(&w->runs[w->current], ev, e);
}

static int read_runs(struct work *w, enum scalar_view view, int by_step, struct error *e)
{
    const struct scan_sink sink = { w, begin_file, event, damage, NULL, restart };
    const struct log_directory *d = &w->scan->directory;

    w->runs = calloc(d->count + 1, sizeof *w->runs);
    w->names = calloc(d->count + 1, sizeof *w->names);
    if (!w->runs || !w->names)
        return error_set(e, ERR_NOMEM, "out of memory for %zu runs", d->count);
    for (size_t i = 0; i < d->count; i++) {
        struct scalar_run *r = &w->runs[w->count];
        int rc = OK;

        if (!scan_run_wanted(w->scan, d->runs[i].name))
            continue;
        w->names[w->count] = d->runs[i].name;
        w->current = w->count++;
        scalar_run_init(r, view, 0, 1);
        rc = scan_run(w->scan, &d->runs[i], &sink, e);
        scalar_run_finish(r);
        scalar_run_sort(r);
        for (size_t k = 0; k < r->count && rc == OK && by_step; k++)
            rc = scalar_series_sort(&r->series[k], e);
        if (rc != OK)
            return rc;
    }
    return OK;
}

static int by_text(const void *a, const void *b)
{
    const struct tag *x = a, *y = b;
    size_t n = x->length < y->length ? x->length : y->length;
    int c = memcmp(x->text, y->text, n);

    return c ? c : (x->length > y->length) - (x->length < y->length);
}

/* The tags to be shown: with --tag all that match, else those that all runs have, else all. */
static int choose_tags(struct work *w, struct error *e)
{
    size_t n = 0, kept = 0, common = 0;

    for (size_t i = 0; i < w->count; i++)
        n += w->runs[i].count;
    if (!(w->tags = malloc((n + 1) * sizeof *w->tags)))
        return error_set(e, ERR_NOMEM, "out of memory for %zu tags", n);
    n = 0;
    for (size_t i = 0; i < w->count; i++)
        for (size_t k = 0; k < w->runs[i].count; k++)
            if (w->runs[i].series[k].count && scan_tag_wanted(w->scan, w->runs[i].series[k].tag))
                w->tags[n++] = (struct tag){ w->runs[i].series[k].tag, w->runs[i].series[k].tag_length, 1 };
    qsort(w->tags, n, sizeof *w->tags, by_text);
    for (size_t i = 0; i < n; i++)
        if (kept && !by_text(&w->tags[kept - 1], &w->tags[i]))
            w->tags[kept - 1].runs++;
        else
            w->tags[kept++] = w->tags[i];
    for (size_t i = 0; i < kept; i++)
        common += w->tags[i].runs == w->count;
    if (!w->scan->tags.count && common) {
        n = 0;
        for (size_t i = 0; i < kept; i++)
            if (w->tags[i].runs == w->count)
                w->tags[n++] = w->tags[i];
        kept = n;
    }
    w->tag_count = kept;
    return OK;
}

static const struct scalar_series *series_of(const struct work *w, size_t run, const struct tag *tag)
{
    for (size_t i = 0; i < w->runs[run].count; i++) {
        const struct scalar_series *s = &w->runs[run].series[i];

        if (s->tag_length == tag->length && !memcmp(s->tag, tag->text, tag->length))
            return s->count ? s : NULL;
    }
    return NULL;
}

static int matches(const struct option_list *globs, const char *text)
{
    for (size_t i = 0; i < globs->count; i++)
        if (!fnmatch(globs->items[i], text, 0))
            return 1;
    return 0;
}

/* Whether less is better, from the words people put into tags. */
static int lower_is_better(const struct work *w, const char *tag)
{
    static const char *const words[] = { "loss", "error", "err", "perplexity", "entropy", "rmse", "mse", "mae", "wer",
                                         "cer", "seconds", "latency", "staleness" };

    if (matches(&w->lower, tag) || matches(&w->higher, tag))
        return !matches(&w->higher, tag);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *at = strstr(tag, words[i]);
        size_t n = strlen(words[i]);

        /* A short word counts only where it stands alone: not "answer" for "wer". */
        if (at && (n > 4 || ((at == tag || strchr("/_-. ", at[-1])) && (!at[n] || strchr("/_-. 0123456789", at[n])))))
            return 1;
    }
    return 0;
}

/* ---- table and JSON -------------------------------------------------------------------------------------------- */

struct row {
    const struct scalar_point *first, *last, *best; /* best: NULL without a number */
    double span, speed; /* seconds; steps a second, NaN if unknown */
};

static struct row row_of(const struct scalar_series *s, int lower)
{
    struct row r = { &s->points[0], &s->points[s->count - 1], NULL, 0, NAN };
    double from = NAN, to = NAN;

    for (size_t i = 0; i < s->count; i++) {
        const struct scalar_point *p = &s->points[i];

        if (!isnan(p->value) && (!r.best || (lower ? p->value < r.best->value : p->value > r.best->value)))
            r.best = p;
        if (isfinite(p->wall_time)) { /* fmin and fmax pass over the NaN that from and to may begin as */
            from = fmin(from, p->wall_time);
            to = fmax(to, p->wall_time);
        }
    }
    r.span = isnan(from) ? 0 : to - from;
    if (r.span > 0)
        r.speed = ((double)r.last->step - (double)r.first->step) / r.span;
    return r;
}

static int width_of(const char *text)
{
    int width = 0;

    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void print_table(const struct work *w, struct output *out)
{
    struct buffer b = BUFFER_EMPTY;
    int pad = 3;

    for (size_t i = 0; i < w->count; i++)
        pad = width_of(w->names[i]) > pad ? width_of(w->names[i]) : pad;
    for (size_t i = 0; i < w->tag_count; i++) {
        int lower = lower_is_better(w, w->tags[i].text);

        json_span(&b, w->tags[i].text, w->tags[i].length, 0); /* control bytes cannot upset a terminal */
        output_text(out, i ? "\n" : "");
        output_bytes(out, buffer_text(&b) + 1, b.length > 2 ? b.length - 2 : 0);
        buffer_clear(&b);
        buffer_format(&b, "\n  %-*s %9s %12s %12s %12s %10s %10s %11s %10s\n", pad, "run", "points", "first", "last",
                      lower ? "best (min)" : "best (max)", "at step", "last step", "wall span", "steps/s");
        for (size_t k = 0; k < w->count; k++) {
            const struct scalar_series *s = series_of(w, k, &w->tags[i]);
            struct row r;

            buffer_format(&b, "  %s%*s ", w->names[k], pad - width_of(w->names[k]), "");
            if (!s) {
                buffer_format(&b, "%9d\n", 0);
                continue;
            }
            r = row_of(s, lower);
            buffer_format(&b, "%9zu %12.6g %12.6g ", s->count, r.first->value, r.last->value);
            if (r.best)
                buffer_format(&b, "%12.6g %10lld ", r.best->value, (long long)r.best->step);
            else
                buffer_format(&b, "%12s %10s ", "-", "-");
            buffer_format(&b, "%10lld %9.1f s", (long long)r.last->step, r.span);
            if (isnan(r.speed))
                buffer_format(&b, " %10s\n", "-");
            else
                buffer_format(&b, " %10.4g\n", r.speed);
        }
        output_bytes(out, buffer_text(&b), b.length);
        buffer_clear(&b);
    }
    buffer_release(&b);
}

static void print_json(const struct work *w, struct output *out)
{
    struct buffer b = BUFFER_EMPTY;
    int first = 1;

    output_text(out, "{\"type\":\"compare\",\"version\":1,\"series\":[");
    for (size_t i = 0; i < w->tag_count; i++)
        for (size_t k = 0; k < w->count; k++) {
            const struct scalar_series *s = series_of(w, k, &w->tags[i]);
            int lower = lower_is_better(w, w->tags[i].text);
            struct row r;

            if (!s)
                continue;
            r = row_of(s, lower);
            buffer_append_text(&b, first ? "\n{\"run\":" : ",\n{\"run\":");
            json_text(&b, w->names[k]);
            buffer_append_text(&b, ",\"tag\":");
            json_span(&b, s->tag, s->tag_length, 0);
            buffer_format(&b, ",\"points\":%zu,\"first_step\":%lld,\"last_step\":%lld,\"first\":", s->count,
                          (long long)r.first->step, (long long)r.last->step);
            json_double(&b, r.first->value);
            buffer_append_text(&b, ",\"last\":");
            json_double(&b, r.last->value);
            buffer_format(&b, ",\"better\":\"%s\",\"best\":", lower ? "min" : "max");
            if (r.best) {
                json_double(&b, r.best->value);
                buffer_format(&b, ",\"best_step\":%lld", (long long)r.best->step);
            } else {
                buffer_append_text(&b, "null,\"best_step\":null");
            }
            buffer_append_text(&b, ",\"wall_seconds\":");
            json_double(&b, r.span);
            buffer_append_text(&b, ",\"steps_per_second\":");
            if (isnan(r.speed))
                buffer_append_text(&b, "null");
            else
                json_double(&b, r.speed);
            buffer_append_text(&b, "}");
            output_bytes(out, buffer_text(&b), b.length);
            buffer_clear(&b);
            first = 0;
        }
    buffer_release(&b);
    output_text(out, "]}\n");
}

/* ---- picture --------------------------------------------------------------------------------------------------- */

static double first_wall_time(const struct scalar_run *r)
{
    double first = INFINITY;

    for (size_t i = 0; i < r->count; i++)
        for (size_t k = 0; k < r->series[i].count; k++)
            first = fmin(first, r->series[i].points[k].wall_time);
    return first;
}

/* The curve of a series: of several points at one step the last counts. */
static size_t curve(const struct scalar_series *s, enum picture_axis axis, double start, struct picture_point *out)
{
    size_t n = 0;

    for (size_t i = 0; i < s->count; i++) {
        const struct scalar_point *p = &s->points[i];

        if (axis == PICTURE_STEP && i + 1 < s->count && s->points[i + 1].step == p->step)
            continue;
        out[n].x = axis == PICTURE_STEP ? (double)p->step : p->wall_time - (axis == PICTURE_WALL ? 0 : start);
        out[n++].y = p->value;
    }
    return n;
}

static int print_picture(const struct work *w, enum picture_axis axis, double smoothing, struct output *out,
                         struct error *e)
{
    size_t points = 0, panels = w->tag_count < PANELS_MOST ? w->tag_count : PANELS_MOST, used = 0, drawn = 0;
    struct picture_panel *panel = calloc(panels + 1, sizeof *panel);
    struct picture_curve *curves = calloc(panels * w->count + 1, sizeof *curves);
    struct picture picture = { w->names, w->count, panel, panels, axis, smoothing };
    double *starts = calloc(w->count + 1, sizeof *starts);
    struct picture_point *list = NULL;
    struct buffer b = BUFFER_EMPTY;
    int rc = OK;

    for (size_t i = 0; i < w->count; i++)
        for (size_t k = 0; k < w->runs[i].count; k++)
            points += w->runs[i].series[k].count;
    if (!panel || !curves || !starts || !(list = malloc((points + 1) * sizeof *list))) {
        rc = error_set(e, ERR_NOMEM, "out of memory for a picture of %zu points", points);
        goto out;
    }
    for (size_t i = 0; i < w->count; i++)
        starts[i] = first_wall_time(&w->runs[i]);
    for (size_t i = 0; i < panels; i++) {
        panel[i] = (struct picture_panel){ w->tags[i].text, w->tags[i].length, curves + drawn, 0,
                                           lower_is_better(w, w->tags[i].text) };
        for (size_t k = 0; k < w->count; k++) {
            const struct scalar_series *s = series_of(w, k, &w->tags[i]);

            if (!s)
                continue;
            curves[drawn] = (struct picture_curve){ k, list + used, curve(s, axis, starts[k], list + used) };
            used += curves[drawn++].count;
            panel[i].count++;
        }
    }
    picture_draw(&b, &picture);
    if (!buffer_ok(&b))
        rc = error_set(e, ERR_NOMEM, "out of memory for a picture of %zu points", points);
    output_bytes(out, buffer_text(&b), b.length);
    if (panels < w->tag_count)
        log_line(&w->scan->log, "%zu tags, the first %zu are drawn; --tag chooses", w->tag_count, panels);
out:
    buffer_release(&b);
    free(list);
    free(starts);
    free(curves);
    free(panel);
    return rc;
}

/* ---- the command line ------------------------------------------------------------------------------------------ */

struct arguments {
    const char *output, *view, *x;
    double smoothing;
    int json, force;
};

static int is_picture(const char *path)
{
    size_t n = path ? strlen(path) : 0;

    return n > 4 && !strcmp(path + n - 4, ".svg");
}

static int compare(struct work *w, const struct arguments *a, struct error *e)
{
    enum scalar_view view = !strcmp(a->view, "tensorboard") ? SCALAR_VIEW_TENSORBOARD
                            : !strcmp(a->view, "session")   ? SCALAR_VIEW_SESSION
                                                            : SCALAR_VIEW_ALL;
    enum picture_axis axis = !strcmp(a->x, "wall") ? PICTURE_WALL : !strcmp(a->x, "step") ? PICTURE_STEP
                                                                                          : PICTURE_RELATIVE;
    int picture = is_picture(a->output), rc = read_runs(w, view, !picture || axis == PICTURE_STEP, e);
    struct output *out;

    if (rc == OK)
        rc = choose_tags(w, e);
    if (rc == OK && picture && !w->tag_count) {
        log_line(&w->scan->log, "no points matched; nothing to draw");
        return OK;
    }
    if (rc != OK || (rc = output_open(&out, a->output, a->force, e)) != OK)
        return rc;
    if (picture)
        rc = print_picture(w, axis, a->smoothing, out, e);
    else if (a->json)
        print_json(w, out);
    else
        print_table(w, out);
    if (rc != OK) {
        output_close(out, 0, NULL);
        return rc;
    }
    return output_close(out, 1, e);
}

int command_compare(int argc, char **argv)
{
    struct scan s = { .failed = 0 };
    struct work w = { .scan = &s };
    struct arguments a = { .view = "all", .x = "step" };
    struct option table[] = {
        { OPTION_TEXT, 'o', "output", &a.output, "FILE", "to FILE; a name ending in .svg draws the curves (default: "
          "the table on standard output)", NULL, 0, 0, 0 },
        { OPTION_FLAG, 'f', "force", &a.force, NULL, "write over an existing FILE", NULL, 0, 0, 0 },
        { OPTION_LIST, 0, "tag", &s.tags, "GLOB", "these tags; may be repeated (default: those that all runs have)",
          NULL, 0, 0, 0 },
        { OPTION_LIST, 0, "run", &s.runs, "GLOB", "only runs whose name matches; may be repeated", NULL, 0, 0, 0 },
        { OPTION_CHOICE, 0, "x", &a.x, NULL, "what the curves run over (default step)", "step|wall|relative", 0, 0, 0 },
        { OPTION_DOUBLE, 0, "smoothing", &a.smoothing, "W", "draw a moving average with this weight of the past, 0 to "
          "0.999, over the faint curve (default 0: none)", NULL, 0, 0.999, 0 },
        { OPTION_LIST, 0, "lower", &w.lower, "GLOB", "tags of which less is better (default: by words as loss, error)",
          NULL, 0, 0, 0 },
        { OPTION_LIST, 0, "higher", &w.higher, "GLOB", "tags of which more is better (default: the others)", NULL, 0, 0,
          0 },
        { OPTION_CHOICE, 0, "view", &a.view, NULL, "every point; what TensorBoard would show; or what restarts meant "
          "(default all)", "all|tensorboard|session", 0, 0, 0 },
        { OPTION_FLAG, 0, "json", &a.json, NULL, "the table as JSON", NULL, 0, 0, 0 },
    };
    const struct options options = {
        .program = "eventlog compare", .usage = "[OPTION...] RUN...",
        .summary = "Puts runs beside each other: per tag the first, last and best value, when, and how fast. RUN is a "
                   "run's directory, or a log directory with several. Status 1: nothing to compare, or damage; 2: "
                   "usage or I/O.",
        .examples = "  eventlog compare mpi/eval ps/eval\n"
                    "  eventlog compare logs -o curves.svg --tag precision --x relative --smoothing 0.6\n",
        .table = table, .count = sizeof table / sizeof *table,
        .least = 1, .wanted = "which runs?",
    };
    struct error e = { 0 };
    int count = 0, status, rc = options_parse(&options, argc, argv, &count, &e);

    log_init(&s.log, options.program, 2);
    if (rc == OPTIONS_DONE)
        return EXIT_DONE;
    if (rc != OK)
        return scan_fail(&s, &e);
    if ((status = scan_open(&s, options.program, argv + 1, (size_t)count)) != EXIT_DONE)
        return status;
    rc = compare(&w, &a, &e);
    status = rc == OK ? scan_status(&s, w.tag_count > 0) : scan_fail(&s, &e);
    for (size_t i = 0; i < w.count; i++)
        scalar_run_release(&w.runs[i]);
    free(w.runs);
    free(w.names);
    free(w.tags);
    scan_close(&s);
    return status;
}
