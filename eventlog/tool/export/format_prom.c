/*
 * prom: the newest point of each series in Prometheus' text format 0.0.4, for the textfile collector. The lines of a
 * metric must be adjacent, so the newest points of all runs are kept until the end. There are no timestamps: the
 * collector refuses a file that has any.
 */
#include "eventlog/tool/export/export.h"

#include "base/array.h"
#include "base/number.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct prom_options {
    const char *prefix;
};

_Static_assert(sizeof(struct prom_options) <= EXPORT_OWN_SIZE, "they have room");

struct sample {
    struct buffer labels; /* {run="...",tag="..."} */
    struct eventlog_point newest;
    unsigned from;
    size_t points;
};

struct samples {
    struct sample *list;
    size_t count, capacity;
};

static int prom_start(struct export *x, struct error *e)
{
    return (x->state = calloc(1, sizeof(struct samples))) ? OK : error_memory(e, NULL, "for samples");
}

static void label(struct buffer *out, const char *text, size_t n)
{
    struct buffer sound = BUFFER_EMPTY;

    export_utf8(&sound, text, n);
    for (size_t i = 0; i < sound.length; i++) {
        char c = sound.data[i];

        if (c == '\\' || c == '"' || c == '\n')
            buffer_append_byte(out, '\\');
        buffer_append_byte(out, c == '\n' ? 'n' : c);
    }
    out->failed |= sound.failed;
    buffer_release(&sound);
}

static int prom_series(struct export *x, const char *run, const struct scalar_series *s, struct error *e)
{
    struct samples *all = x->state;
    struct sample *sample;

    if (!ARRAY_ROOM(all->list, all->capacity, all->count + 1))
        return error_memory(e, NULL, "for %zu samples", all->count + 1);
    sample = &all->list[all->count++];
    *sample = (struct sample){ BUFFER_EMPTY, s->points[s->count - 1], scalar_series_from(s, s->count - 1), s->count };
    buffer_append_text(&sample->labels, "{run=\"");
    label(&sample->labels, run, strlen(run));
    buffer_append_text(&sample->labels, "\",tag=\"");
    label(&sample->labels, s->tag, s->tag_length);
    buffer_append_text(&sample->labels, "\"} ");
    return buffer_ok(&sample->labels) ? OK : error_memory(e, NULL, "for the name of a series");
}

static int number(const struct export *x, double v, unsigned from, char *out)
{
    if (isfinite(v))
        return export_number(x, v, from, out);
    return (int)(stpcpy(out, isnan(v) ? "NaN" : v > 0 ? "+Inf" : "-Inf") - out);
}

static int metric(struct export *x, const struct samples *all, int which)
{
    static const struct {
        const char *name, *help;
    } metrics[] = {
        { "scalar", "Newest value of a series in an event log." },
        { "scalar_step", "Step of that value." },
        { "scalar_wall_time_seconds", "Unix time of that value." },
        { "scalar_points", "Points of the series in the log." },
    };
    struct buffer name = BUFFER_EMPTY, head = BUFFER_EMPTY;
    char text[NUMBER_TEXT_MAX];
    int good;

    buffer_format(&name, "%s_%s", ((const struct prom_options *)x->own)->prefix, metrics[which].name);
    buffer_format(&head, "# HELP %s %s\n# TYPE %s gauge\n", buffer_text(&name), metrics[which].help,
                  buffer_text(&name));
    output_text(x->out, buffer_text(&head));
    for (size_t i = 0; i < all->count; i++) {
        const struct sample *s = &all->list[i];
        int n = which == 0   ? number(x, s->newest.value, s->from, text)
                : which == 1 ? number_text_integer(s->newest.step, text)
                : which == 2 ? number(x, time_in_seconds(s->newest.wall_time), 0, text)
                             : number_text_integer((int64_t)s->points, text);

        output_text(x->out, buffer_text(&name));
        output_bytes(x->out, s->labels.data, s->labels.length);
        output_bytes(x->out, text, (size_t)n);
        output_text(x->out, "\n");
    }
    good = buffer_ok(&name) && buffer_ok(&head);
    buffer_release(&name);
    buffer_release(&head);
    return good;
}

static int prom_finish(struct export *x, int commit, struct error *e)
{
    struct samples *all = x->state;
    int good = 1;

    for (int which = 0; commit && which < 4; which++)
        good &= metric(x, all, which);
    for (size_t i = 0; all && i < all->count; i++)
        buffer_release(&all->list[i].labels);
    if (all)
        free(all->list);
    free(all);
    return good ? OK : error_memory(e, NULL, "for the names of metrics");
}

static size_t prom_rows(struct option *rows, void *own)
{
    struct prom_options *o = own;

    o->prefix = "tb";
    rows[0] = (struct option){ OPTION_TEXT, 0,      "prom-prefix",
                               &o->prefix,  "NAME", .help = ": Begin the names of metrics with NAME (default tb)" };
    return 1;
}

static int prom_check(struct export_options *o, const void *own, struct error *e)
{
    const char *prefix = ((const struct prom_options *)own)->prefix, *p = prefix;
    size_t n = o->to.path ? strlen(o->to.path) : 0;

    if (n < 6 || strcmp(o->to.path + n - 5, ".prom") != 0)
        return error_set(e, ERR_ARG,
                         "--format=prom needs -o FILE.prom: Prometheus' textfile collector reads only files of that "
                         "name, at any time");
    while (*p == '_' || (isascii((unsigned char)*p) && isalnum((unsigned char)*p)))
        p++;
    if (*p || p == prefix || isdigit((unsigned char)*prefix))
        return error_set(e, ERR_ARG, "--prom-prefix=%s: use letters, digits and '_', not beginning with a digit",
                         prefix);
    return OK;
}

const struct export_format format_prom = {
    .name = "prom",
    .help = "newest values for Prometheus",
    .extensions = "prom",
    .binary = 1,
    .takes = "view nonfinite float32",
    .rows = prom_rows,
    .check = prom_check,
    .reading_order = 1,
    .start = prom_start,
    .series = prom_series,
    .finish = prom_finish,
};
