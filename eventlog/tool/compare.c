/* eventlog compare: runs beside each other, as a table, as JSON, or as a picture. */
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/text.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/curves_picture.h"
#include "eventlog/tool/output_format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- table and JSON -------------------------------------------------------------------------------------------- */

struct row {
    const struct scalar_point *first, *last, *best; /* best: NULL without a number */
    double span, speed; /* seconds; steps a second, NaN if unknown */
};

static struct row row_of(const struct scalar_series *s, int better)
{
    struct row r = { &s->points[0], &s->points[s->count - 1], NULL, 0, NAN };
    double from = NAN, to = NAN;

    for (size_t i = 0; i < s->count; i++) {
        const struct scalar_point *p = &s->points[i];

        if (better && isfinite(p->value) &&
            (!r.best || (better < 0 ? p->value < r.best->value : p->value > r.best->value)))
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

static void print_table(const struct curves *w, struct output *out)
{
    struct buffer b = BUFFER_EMPTY;
    int pad = 3;

    for (size_t i = 0; i < w->count; i++) {
        int width = (int)text_columns(w->labels[i], strlen(w->labels[i]));

        pad = width > pad ? width : pad;
    }
    for (size_t i = 0; i < w->tag_count; i++) {
        static const char *const best[] = { "best (min)", "best", "best (max)" };
        int better = w->tags[i].better;

        buffer_append_text(&b, i ? "\n" : "");
        json_escaped(&b, w->tags[i].text, w->tags[i].length, 0); /* control bytes cannot upset a terminal */
        buffer_format(&b, "\n  %-*s %9s %12s %12s %12s %10s %10s %11s %10s\n", pad, "run", "points", "first", "last",
                      best[better + 1], "at step", "last step", "wall span", "steps/s");
        for (size_t k = 0; k < w->count; k++) {
            const struct scalar_series *s = curves_series(w, k, &w->tags[i]);
            struct row r;

            buffer_format(&b, "  %s%*s ", w->labels[k],
                          pad - (int)text_columns(w->labels[k], strlen(w->labels[k])), "");
            if (!s) {
                buffer_format(&b, "%9d\n", 0);
                continue;
            }
            r = row_of(s, better);
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

static void print_json(const struct curves *w, struct output *out)
{
    struct buffer b = BUFFER_EMPTY;
    int first = 1;

    output_text(out, "{\"type\":\"compare\",\"version\":1,\"series\":[");
    for (size_t i = 0; i < w->tag_count; i++)
        for (size_t k = 0; k < w->count; k++) {
            const struct scalar_series *s = curves_series(w, k, &w->tags[i]);
            int better = w->tags[i].better;
            struct row r;

            if (!s)
                continue;
            r = row_of(s, better);
            buffer_append_text(&b, first ? "\n{\"run\":" : ",\n{\"run\":");
            json_text(&b, w->names[k]);
            buffer_append_text(&b, ",\"tag\":");
            json_span(&b, s->tag, s->tag_length, 0);
            buffer_format(&b, ",\"points\":%zu,\"first_step\":%lld,\"last_step\":%lld,\"first\":", s->count,
                          (long long)r.first->step, (long long)r.last->step);
            json_double(&b, r.first->value);
            buffer_append_text(&b, ",\"last\":");
            json_double(&b, r.last->value);
            buffer_format(&b, ",\"better\":%s,\"best\":", better < 0 ? "\"min\"" : better ? "\"max\"" : "null");
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

/* ---- the command line ------------------------------------------------------------------------------------------ */

static int compare(struct curves *w, const struct output_options *to, struct error *e)
{
    int picture = curves_picture_is(to->format), rc = curves_read(w, e);
    struct output *out;

    if (rc == OK && !picture)
        rc = curves_sort_by_step(w, e);
    if (rc == OK)
        rc = curves_choose_tags(w, e);
    if (rc == OK && picture && !w->tag_count)
        return OK; /* nothing to draw */
    if (rc != OK || (rc = output_open(&out, to->path, to->force, e)) != OK)
        return rc;
    if (picture)
        rc = curves_picture_print(w, to->format, out, e);
    else if (!strcmp(to->format, "json"))
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
    struct curves w = { .scan = &s, CURVES_DEFAULTS };
    static const struct output_format formats[] = { { "text", "txt", 0 }, { "json", "json", 0 }, { "svg", "svg", 0 },
                                                    { "png", "png", 1 } };
    struct output_options to = { .format = NULL };
    struct option table[] = {
        OUTPUT_OPTIONS(to, "text|json|svg|png", "text", "Print tables, the same as JSON, or a picture of the curves"),
        { OPTION_LIST, 0, "tag", &s.tags, "GLOB", .help = "these tags; may be repeated (default: those that all runs "
          "have)" },
        SCAN_RUN_OPTION(s),
        CURVES_OPTIONS(w),
    };
    const struct options options = {
        .program = "eventlog compare", .usage = "[OPTION...] RUN...",
        .summary = "Puts runs beside each other: per tag the first, last and best value, when, and how fast. RUN is a "
                   "run's directory, or a log directory with several. Status 1: nothing to compare, or damage; 2: "
                   "usage or I/O.",
        .examples = "  eventlog compare mpi/eval ps/eval\n"
                    "  eventlog compare logs -o curves.svg --tag precision --x step,relative --smoothing 0.6\n"
                    "  eventlog compare logs -o seeds.png --tag loss --group 'seed-*' --band min-max\n",
        .table = table, .count = sizeof table / sizeof *table,
        .least = 1, .wanted = "which runs?",
    };
    struct error e = { 0 };
    int count = 0, status, rc = options_parse(&options, argc, argv, &count, &e);

    log_init(&s.log, options.program, 2);
    if (rc == OPTIONS_DONE)
        return EXIT_DONE;
    if (rc == OK)
        rc = output_format_settle(&to, formats, sizeof formats / sizeof *formats, "text", &e);
    if (rc == OK)
        rc = curves_settle(&w, &e);
    if (rc == OK && !curves_picture_is(to.format) && (w.groups.count || w.band))
        rc = error_set(&e, ERR_ARG, "--group and --band are for pictures; add -o FILE.svg or -o FILE.png");
    if (rc != OK)
        return scan_fail(&s, &e);
    if ((status = scan_open(&s, options.program, argv + 1, (size_t)count)) != EXIT_DONE)
        return status;
    rc = compare(&w, &to, &e);
    status = rc == OK ? scan_status(&s, w.tag_count > 0) : scan_fail(&s, &e);
    curves_release(&w);
    scan_close(&s);
    return status;
}
