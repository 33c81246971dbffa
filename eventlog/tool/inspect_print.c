/* The layouts of `eventlog inspect`. */
#include "eventlog/tool/inspect.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_PAIRS = 3 };

static const char *dtype_name(int dtype)
{
    static const char *const names[] = { "INVALID", "FLOAT", "DOUBLE", "INT32", "UINT8", "INT16", "INT8", "STRING",
                                         "COMPLEX64", "INT64", "BOOL", "QINT8", "QUINT8", "QINT32", "BFLOAT16",
                                         "QINT16", "QUINT16", "UINT16", "COMPLEX128", "HALF", "RESOURCE",
                                         "VARIANT", "UINT32", "UINT64" };

    return dtype >= 0 && (size_t)dtype < sizeof names / sizeof *names ? names[dtype] : NULL;
}

void inspect_stored(const struct scalar_series *s, char *out, size_t size)
{
    static const char *const kinds[] = {
        [EVENT_VALUE_NONE] = "nothing", [EVENT_VALUE_SIMPLE] = "simple_value",
        [EVENT_VALUE_OLD_HISTOGRAM] = "obsolete histogram", [EVENT_VALUE_IMAGE] = "image",
        [EVENT_VALUE_HISTOGRAM] = "histo", [EVENT_VALUE_AUDIO] = "audio",
    };

    if (s->first_kind != EVENT_VALUE_TENSOR)
        snprintf(out, size, "%s", kinds[s->first_kind]);
    else if (dtype_name(s->first_dtype))
        snprintf(out, size, "tensor DT_%s", dtype_name(s->first_dtype));
    else
        snprintf(out, size, "tensor %d", s->first_dtype);
}

static const char *end_of(const struct inspect_file *f)
{
    if (f->damage_count)
        return "damaged";
    return f->state.offset == f->state.size ? "clean" : "partial";
}

/* Series in the order of their tags. */
struct sorted {
    const struct scalar_series *series;
    size_t index;
};

static int by_tag(const void *a, const void *b)
{
    const struct scalar_series *x = ((const struct sorted *)a)->series, *y = ((const struct sorted *)b)->series;

    return bytes_compare(x->tag, x->tag_length, y->tag, y->tag_length);
}

/* The series that are asked for; NULL without memory. */
static struct sorted *sorted_series(const struct inspect_run *run, size_t *count, struct error *e)
{
    struct sorted *list = malloc((run->all.count + 1) * sizeof *list);

    *count = 0;
    if (!list) {
        error_set(e, ERR_NOMEM, "out of memory for %zu series", run->all.count);
        return NULL;
    }
    for (size_t i = 0; i < run->all.count; i++)
        if (run->all.series[i].seen || run->all.series[i].skipped)
            list[(*count)++] = (struct sorted){ &run->all.series[i], i };
    qsort(list, *count, sizeof *list, by_tag);
    return list;
}

static int finish(struct output *out, struct buffer *b, struct error *e)
{
    int good = buffer_ok(b);

    output_bytes(out, buffer_text(b), b->length);
    buffer_release(b);
    return good ? OK : error_set(e, ERR_NOMEM, "out of memory for what is to be printed");
}

/* The steps of a series: of its points, or of its values where it has none. */
static int statistics(const struct inspect_run *run, const struct scalar_series *s, struct step_figures *f,
                      struct error *e)
{
    *f = (struct step_figures){ s->skipped_first, s->skipped_last, s->skipped_min, s->skipped_max, 0, 0 };
    if (s->seen && !step_list_figures(&run->series[s->number].steps, f))
        return error_set(e, ERR_NOMEM, "out of memory for the steps of a series");
    return OK;
}

static unsigned long long shown_of(const struct inspect_run *run, const struct scalar_series *s)
{
    return s->number < run->series_count ? (unsigned long long)step_list_marked(&run->series[s->number].kept, 1) : 0;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

static void json_file(struct buffer *b, const struct inspect_file *f)
{
    buffer_append_text(b, "{\"name\":");
    json_text(b, file_base_name(f->path));
    buffer_format(b, ",\"bytes\":%llu,\"records\":%llu,\"first_wall_time\":", (unsigned long long)f->state.size,
                  (unsigned long long)f->state.records);
    if (f->state.records) {
        json_double(b, f->state.first_wall_time);
        buffer_append_text(b, ",\"last_wall_time\":");
        json_double(b, f->state.last_wall_time);
    } else {
        buffer_append_text(b, "null,\"last_wall_time\":null");
    }
    buffer_format(b, ",\"end\":\"%s\",\"end_offset\":%llu,\"damage\":[", end_of(f),
                  (unsigned long long)f->state.offset);
    for (size_t i = 0; i < f->damage_count; i++)
        buffer_format(b, "%s{\"offset\":%llu,\"kind\":\"%s\",\"found\":%llu,\"wanted\":%llu}", i ? "," : "",
                      (unsigned long long)f->damage[i].offset, event_damage_word(f->damage[i].kind),
                      (unsigned long long)f->damage[i].found, (unsigned long long)f->damage[i].wanted);
    buffer_append_text(b, "]}");
}

static int json_series(struct buffer *b, const struct inspect_run *run, const struct sorted *one, struct error *e)
{
    const struct scalar_series *s = one->series;
    struct step_figures t;
    char stored[40];
    int first = 1, rc = statistics(run, s, &t, e);
    int64_t before, after;

    if (rc != OK)
        return rc;
    inspect_stored(s, stored, sizeof stored);
    buffer_append_text(b, "{\"tag\":");
    json_span(b, s->tag, s->tag_length, 0);
    buffer_append_text(b, ",\"plugin\":");
    json_text(b, s->plugin);
    buffer_format(b, ",\"stored\":\"%s\",\"points\":%llu,\"first_step\":%lld,\"last_step\":%lld,\"min_step\":%lld,"
                  "\"max_step\":%lld,\"num_steps\":", stored, (unsigned long long)s->seen, (long long)t.first,
                  (long long)t.last, (long long)t.least, (long long)t.most);
    if (s->seen)
        buffer_format(b, "%llu,\"outoforder_steps\":[", (unsigned long long)t.distinct);
    else
        buffer_append_text(b, "null,\"outoforder_steps\":[");
    for (size_t at = 0; t.out_of_order && step_list_back(&run->series[s->number].steps, &at, &before, &after);) {
        buffer_format(b, "%s[%lld,%lld]", first ? "" : ",", (long long)before, (long long)after);
        first = 0;
    }
    buffer_format(b, "],\"shown\":%llu,\"skipped\":%llu}", shown_of(run, s), (unsigned long long)s->skipped);
    return OK;
}

int inspect_print_json(struct output *out, const struct inspect_run *run, int first, struct error *e)
{
    struct buffer b = BUFFER_EMPTY;
    size_t count;
    struct sorted *list = sorted_series(run, &count, e);
    int rc = list ? OK : ERR_NOMEM;

    buffer_append_text(&b, first ? "{\"run\":" : ",\n{\"run\":");
    json_text(&b, run->name);
    buffer_append_text(&b, ",\"files\":[");
    for (size_t i = 0; i < run->file_count; i++) {
        buffer_append_text(&b, i ? "," : "");
        json_file(&b, &run->files[i]);
    }
    buffer_append_text(&b, "],\"series\":[");
    for (size_t i = 0; i < count && rc == OK; i++) {
        buffer_append_text(&b, i ? "," : "");
        rc = json_series(&b, run, &list[i], e);
    }
    buffer_append_text(&b, "]}");
    free(list);
    return rc == OK ? finish(out, &b, e) : (buffer_release(&b), rc);
}

/* ---- TensorBoard's own layout ---------------------------------------------------------------------------------- */

static void tb_rule(struct buffer *b)
{
    for (int i = 0; i < 70; i++)
        buffer_append_byte(b, '=');
    buffer_append_text(b, "\n");
}

static void tb_pairs(struct buffer *b, const struct step_list *l)
{
    int64_t before, after;
    int first = 1;

    buffer_format(b, "   %-20s [", "outoforder_steps");
    for (size_t at = 0; step_list_back(l, &at, &before, &after); first = 0)
        buffer_format(b, "%s(%lld, %lld)", first ? "" : ", ", (long long)before, (long long)after);
    buffer_append_text(b, "]\n");
}

static void tb_steps(struct buffer *b, const struct step_list *l)
{
    int first = 1;

    buffer_format(b, "   %-20s [", "steps");
    for (size_t i = 0; i < l->count; i++)
        for (uint64_t k = 0; k < l->items[i].count; k++, first = 0)
            buffer_format(b, "%s%lld", first ? "" : ", ",
                          (long long)((uint64_t)l->items[i].first + k * l->items[i].stride));
    buffer_append_text(b, "]\n");
}

static int tb_kind(struct buffer *b, const char *name, enum inspect_kind kind, const struct step_list *l,
                   struct error *e)
{
    struct step_figures t;

    if (!l->count) {
        buffer_format(b, "%s -\n", name);
        return OK;
    }
    buffer_format(b, "%s\n", name);
    if (kind == INSPECT_START || kind == INSPECT_STOP) {
        tb_pairs(b, l);
        tb_steps(b, l);
        return OK;
    }
    if (!step_list_figures(l, &t))
        return error_set(e, ERR_NOMEM, "out of memory for the steps of a kind");
    buffer_format(b, "   %-20s %lld\n   %-20s %lld\n   %-20s %lld\n", "first_step", (long long)t.first, "last_step",
                  (long long)t.last, "max_step", (long long)t.most);
    buffer_format(b, "   %-20s %lld\n   %-20s %llu\n", "min_step", (long long)t.least, "num_steps",
                  (unsigned long long)t.distinct);
    tb_pairs(b, l);
    return OK;
}

int inspect_print_tensorboard(struct output *out, const struct inspect_run *run, struct error *e)
{
    static const char *const names[] = { "audio", "graph", "histograms", "images", "scalars", "sessionlog:checkpoint",
                                         "sessionlog:start", "sessionlog:stop", "tensor" };
    static const enum inspect_kind tagged[] = { INSPECT_AUDIO, INSPECT_HISTOGRAMS, INSPECT_IMAGES, INSPECT_SCALARS,
                                                INSPECT_TENSOR };
    struct buffer b = BUFFER_EMPTY;
    size_t count;
    struct sorted *list = sorted_series(run, &count, e);
    int rc = list ? OK : ERR_NOMEM;

    buffer_format(&b, "These tags are in %s:\n", run->directory);
    for (size_t k = 0; k < sizeof tagged / sizeof *tagged && rc == OK; k++) {
        int any = 0;

        for (size_t i = 0; i < count; i++) {
            if (list[i].index >= run->tag_kind_count || !(run->tag_kinds[list[i].index] & 1u << tagged[k]))
                continue;
            buffer_format(&b, "%s%s", any ? "" : names[tagged[k]], any ? "" : "\n");
            buffer_append_text(&b, "   ");
            buffer_append(&b, list[i].series->tag, list[i].series->tag_length);
            buffer_append_text(&b, "\n");
            any = 1;
        }
        if (!any)
            buffer_format(&b, "%s -\n", names[tagged[k]]);
    }
    tb_rule(&b);
    buffer_format(&b, "\nEvent statistics for %s:\n", run->directory);
    for (int k = 0; k < INSPECT_KINDS && rc == OK; k++)
        rc = tb_kind(&b, names[k], (enum inspect_kind)k, &run->kinds[k], e);
    tb_rule(&b);
    buffer_append_text(&b, "\n");
    free(list);
    return rc == OK ? finish(out, &b, e) : (buffer_release(&b), rc);
}

/* ---- for people ------------------------------------------------------------------------------------------------ */

/* The tag without control bytes, which could upset a terminal. */
static void append_tag(struct buffer *b, const struct scalar_series *s, int pad)
{
    size_t from = b->length;
    int width;

    json_escaped(b, s->tag, s->tag_length, 0);
    width = (int)text_columns(buffer_text(b) + from, b->length - from);
    buffer_format(b, "%*s", pad > width ? pad - width : 0, "");
}

static void text_file(struct buffer *b, const struct inspect_file *f)
{
    char text[200];

    buffer_format(b, "  %s: %llu bytes, %llu records", file_base_name(f->path), (unsigned long long)f->state.size,
                  (unsigned long long)f->state.records);
    if (f->state.offset != f->state.size)
        buffer_format(b, ", stops inside a record that starts at %llu%s", (unsigned long long)f->state.offset,
                      f->damage_count ? "" : " (being written, or cut)");
    if (f->state.records && f->state.last_wall_time - f->state.first_wall_time < 1e12)
        buffer_format(b, ", %.1f s", fmax(f->state.last_wall_time - f->state.first_wall_time, 0));
    buffer_append_text(b, "\n");
    for (size_t i = 0; i < f->damage_count; i++) {
        event_damage_text(&f->damage[i], text, sizeof text);
        buffer_format(b, "    damaged at %llu: %s\n", (unsigned long long)f->damage[i].offset, text);
    }
}

static int text_series(struct buffer *b, const struct inspect_run *run, const struct sorted *one, int pad,
                       struct error *e)
{
    const struct scalar_series *s = one->series;
    unsigned long long points = s->seen, shown = shown_of(run, s), skipped = s->skipped;
    struct step_figures t;
    char stored[40];
    int64_t before, after;
    size_t pairs = 0, at = 0;
    int rc = statistics(run, s, &t, e);

    if (rc != OK)
        return rc;
    inspect_stored(s, stored, sizeof stored);
    buffer_append_text(b, "  ");
    append_tag(b, s, pad);
    buffer_format(b, "  %-12s %-16s %9llu %10lld %10lld %10lld %10lld", *s->plugin ? s->plugin : "-", stored,
                  points ? points : skipped, (long long)t.first, (long long)t.last, (long long)t.least,
                  (long long)t.most);
    if (points)
        buffer_format(b, " %9llu", (unsigned long long)t.distinct);
    else
        buffer_format(b, " %9s", "-");
    while (t.out_of_order && pairs < TEXT_PAIRS &&
           step_list_back(&run->series[s->number].steps, &at, &before, &after))
        buffer_format(b, "%s(%lld, %lld)", pairs++ ? ", " : "  ", (long long)before, (long long)after);
    if (t.out_of_order > TEXT_PAIRS)
        buffer_format(b, ", ... %llu in all", (unsigned long long)t.out_of_order);
    if (points && shown != points)
        buffer_format(b, "  (TensorBoard would show %llu)", shown);
    if (points && skipped)
        buffer_format(b, "  (and %llu values that are no points)", skipped);
    buffer_append_text(b, "\n");
    return OK;
}

int inspect_print_text(struct output *out, const struct inspect_run *run, struct error *e)
{
    struct buffer b = BUFFER_EMPTY;
    size_t count;
    struct sorted *list = sorted_series(run, &count, e);
    int pad = 4, rc = list ? OK : ERR_NOMEM;

    buffer_format(&b, "run %s\n", run->name);
    for (size_t i = 0; i < run->file_count; i++)
        text_file(&b, &run->files[i]);
    for (size_t i = 0; i < count; i++) {
        int width = (int)text_columns(list[i].series->tag, list[i].series->tag_length);

        pad = width > pad && width <= 60 ? width : pad;
    }
    if (count)
        buffer_format(&b, "  %-*s  %-12s %-16s %9s %10s %10s %10s %10s %9s  %s\n", pad, "tag", "plugin", "stored",
                      "points", "first_step", "last_step", "min_step", "max_step", "num_steps", "outoforder_steps");
    for (size_t i = 0; i < count && rc == OK; i++)
        rc = text_series(&b, run, &list[i], pad, e);
    buffer_append_text(&b, "\n");
    free(list);
    return rc == OK ? finish(out, &b, e) : (buffer_release(&b), rc);
}
