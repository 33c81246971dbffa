/* The layouts of `eventlog inspect`. */
#include "eventlog/tool/report/inspect.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/human.h"
#include "base/json.h"
#include "base/program/table.h"
#include "base/program/terminal.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *dtype_name(int dtype)
{
    static const char *const names[] = { "INVALID",    "FLOAT",  "DOUBLE",    "INT32",   "UINT8",   "INT16",
                                         "INT8",       "STRING", "COMPLEX64", "INT64",   "BOOL",    "QINT8",
                                         "QUINT8",     "QINT32", "BFLOAT16",  "QINT16",  "QUINT16", "UINT16",
                                         "COMPLEX128", "HALF",   "RESOURCE",  "VARIANT", "UINT32",  "UINT64" };

    return dtype >= 0 && (size_t)dtype < sizeof names / sizeof *names ? names[dtype] : NULL;
}

/* "simple_value", "tensor DT_FLOAT", "image", ... of the first value; out holds 40 bytes. */
static void stored_as(const struct scalar_series *s, char *out, size_t size)
{
    static const char *const kinds[] = {
        [EVENT_VALUE_NONE] = "nothing",
        [EVENT_VALUE_SIMPLE] = "simple_value",
        [EVENT_VALUE_OLD_HISTOGRAM] = "obsolete histogram",
        [EVENT_VALUE_IMAGE] = "image",
        [EVENT_VALUE_HISTOGRAM] = "histo",
        [EVENT_VALUE_AUDIO] = "audio",
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

/* The series that were asked for; NULL if memory runs out. */
static struct sorted *sorted_series(const struct inspect_run *run, size_t *count, struct error *e)
{
    struct sorted *list = malloc((run->all.count + 1) * sizeof *list);

    *count = 0;
    if (!list) {
        error_memory(e, NULL, "for %zu series", run->all.count);
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
    return good ? OK : error_memory(e, NULL, "for what is to be printed");
}

/* The steps of a series: of its points, or of its values if it has no points. */
static int statistics(const struct inspect_run *run, const struct scalar_series *s, struct step_figures *f,
                      struct error *e)
{
    *f = (struct step_figures){ s->skipped_first, s->skipped_last, s->skipped_min, s->skipped_max, 0, 0 };
    if (s->seen && !step_list_figures(&run->series[s->number].steps, f))
        return error_memory(e, NULL, "for the steps of a series");
    return OK;
}

static uint64_t shown_of(const struct inspect_run *run, const struct scalar_series *s)
{
    return s->number < run->series_count ? step_list_marked(&run->series[s->number].kept, 1) : 0;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

static void json_file(struct buffer *b, const struct inspect_file *f)
{
    buffer_append_text(b, "{\"name\":");
    json_text(b, file_base_name(f->path));
    buffer_format(b, ",\"bytes\":%llu,\"records\":%llu,\"first_wall_time\":", (unsigned long long)f->state.size,
                  (unsigned long long)f->state.records);
    if (f->state.records) {
        json_double(b, time_in_seconds(f->state.first_wall_time));
        buffer_append_text(b, ",\"last_wall_time\":");
        json_double(b, time_in_seconds(f->state.last_wall_time));
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
    stored_as(s, stored, sizeof stored);
    buffer_append_text(b, "{\"tag\":");
    json_span(b, s->tag, s->tag_length, 0);
    buffer_append_text(b, ",\"plugin\":");
    json_text(b, s->plugin);
    buffer_format(b,
                  ",\"stored\":\"%s\",\"points\":%llu,\"first_step\":%lld,\"last_step\":%lld,\"min_step\":%lld,"
                  "\"max_step\":%lld,\"num_steps\":",
                  stored, (unsigned long long)s->seen, (long long)t.first, (long long)t.last, (long long)t.least,
                  (long long)t.most);
    if (s->seen)
        buffer_format(b, "%llu,\"outoforder_steps\":[", (unsigned long long)t.distinct);
    else
        buffer_append_text(b, "null,\"outoforder_steps\":[");
    for (size_t at = 0; t.out_of_order && step_list_back(&run->series[s->number].steps, &at, &before, &after);) {
        buffer_format(b, "%s[%lld,%lld]", first ? "" : ",", (long long)before, (long long)after);
        first = 0;
    }
    buffer_format(b, "],\"shown\":%llu,\"skipped\":%llu}", (unsigned long long)shown_of(run, s),
                  (unsigned long long)s->skipped);
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
        return error_memory(e, NULL, "for the steps of a kind");
    buffer_format(b, "   %-20s %lld\n   %-20s %lld\n   %-20s %lld\n", "first_step", (long long)t.first, "last_step",
                  (long long)t.last, "max_step", (long long)t.most);
    buffer_format(b, "   %-20s %lld\n   %-20s %llu\n", "min_step", (long long)t.least, "num_steps",
                  (unsigned long long)t.distinct);
    tb_pairs(b, l);
    return OK;
}

int inspect_print_tensorboard(struct output *out, const struct inspect_run *run, struct error *e)
{
    static const char *const names[] = {
        "audio",           "graph", "histograms", "images", "scalars", "sessionlog:checkpoint", "sessionlog:start",
        "sessionlog:stop", "tensor"
    };
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
            if (list[i].index >= run->series_count || !(run->series[list[i].index].kinds & 1u << tagged[k]))
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

/* ---- for people, and as rows ----------------------------------------------------------------------------------- */

static const struct report_column columns[] = {
    { .key = "run", .cut = 10 },
    { .key = "tag", .cut = 12 },
    { .key = "plugin", .cut = 8, .leave_out = 3 },
    { .key = "stored", .leave_out = 6 },
    { .key = "points", .kind = REPORT_NUMBER },
    { .key = "first_step", .kind = REPORT_NUMBER, .leave_out = 4 },
    { .key = "last_step", .kind = REPORT_NUMBER },
    { .key = "min_step", .kind = REPORT_NUMBER, .leave_out = 8 },
    { .key = "max_step", .kind = REPORT_NUMBER, .leave_out = 7 },
    { .key = "num_steps", .kind = REPORT_NUMBER, .leave_out = 5 },
    { .key = "outoforder", .kind = REPORT_NUMBER },
    { .key = "shown", .kind = REPORT_NUMBER },
    { .key = "skipped", .title = "other values", .kind = REPORT_NUMBER, .leave_out = 2, .if_any = 1 },
    { .key = "hidden", .title = "not shown", .kind = REPORT_NUMBER, .leave_out = 1, .if_any = 1 },
    { .key = "outoforder_steps", .cut = 16, .leave_out = 1, .if_any = 1 }, /* for people: the first pairs */
};

#define STEPS " first_step last_step min_step max_step num_steps "
#define CSV "run tag plugin stored points" STEPS "outoforder shown skipped hidden"
#define PEOPLE "tag plugin stored points skipped hidden" STEPS "outoforder_steps"

struct report_layout inspect_layout(int ranked)
{
    return (struct report_layout){
        .type = "inspect",
        .rows = "series",
        .columns = columns,
        .count = sizeof columns / sizeof *columns,
        .csv = CSV,
        .people = ranked ? "run " PEOPLE : PEOPLE,
    };
}

/* The files and how they end, in lines that fit. */
static void append_files(struct buffer *b, const struct inspect_run *run, const struct report *r)
{
    static const struct table_column file_columns[] = {
        { "file", 0, 16, 0 },
        { "size", 1, 0, 0 },
        { "records", 1, 0, 1 },
        { "span", 1, 0, 2 },
    };
    char text[200], small[HUMAN_TEXT_MAX];
    struct table t;

    table_init(&t, file_columns, sizeof file_columns / sizeof *file_columns);
    for (size_t i = 0; i < run->file_count; i++) {
        const struct inspect_file *f = &run->files[i];
        double span = f->state.records
                          ? fmax(time_in_seconds(f->state.last_wall_time) - time_in_seconds(f->state.first_wall_time),
                                 0)
                          : NAN;

        table_text(&t, file_base_name(f->path), strlen(file_base_name(f->path)));
        table_cell(&t, "%s", human_bytes(f->state.size, small));
        table_cell(&t, "%llu", (unsigned long long)f->state.records);
        table_cell(&t, "%s", human_duration(span, small));
    }
    table_print(&t, 2, report_table_columns(r), !terminal_utf8(), b);
    for (size_t i = 0; i < run->file_count; i++) {
        const struct inspect_file *f = &run->files[i];
        struct buffer line = BUFFER_EMPTY;

        for (size_t k = 0; k < f->damage_count; k++) {
            event_damage_text(&f->damage[k], text, sizeof text);
            buffer_clear(&line);
            buffer_format(&line, "  %s:%llu: damaged: %s", file_base_name(f->path),
                          (unsigned long long)f->damage[k].offset, text);
            text_append_wrapped(b, buffer_text(&line), 0, 4, (size_t)report_line_columns(r));
            buffer_append_byte(b, '\n');
        }
        if (f->state.offset != f->state.size) {
            buffer_clear(&line);
            buffer_format(&line, "  %s:%llu: stops inside a record%s", file_base_name(f->path),
                          (unsigned long long)f->state.offset, f->damage_count ? "" : ", being written or cut");
            text_append_wrapped(b, buffer_text(&line), 0, 4, (size_t)report_line_columns(r));
            buffer_append_byte(b, '\n');
        }
        b->failed |= line.failed;
        buffer_release(&line);
    }
    buffer_append_byte(b, '\n');
}

/* "(20, 10), (40, 30), ... 7 in all". */
static void append_pairs(struct buffer *b, const struct inspect_run *run, const struct scalar_series *s, uint64_t count)
{
    enum { PAIRS = 3 };
    int64_t before, after;
    size_t at = 0;

    for (uint64_t i = 0; i < count && i < PAIRS; i++) {
        step_list_back(&run->series[s->number].steps, &at, &before, &after);
        buffer_format(b, "%s(%lld, %lld)", i ? ", " : "", (long long)before, (long long)after);
    }
    if (count > PAIRS)
        buffer_format(b, ", ... %llu in all", (unsigned long long)count);
}

static int add_series(struct report *r, const struct inspect_run *run, const struct scalar_series *s, struct error *e)
{
    struct buffer pairs = BUFFER_EMPTY;
    uint64_t shown = shown_of(run, s);
    struct step_figures t;
    char stored[40];
    int rc = statistics(run, s, &t, e);

    if (rc != OK)
        return rc;
    stored_as(s, stored, sizeof stored);
    report_word(r, run->name);
    report_text(r, s->tag, s->tag_length);
    report_word(r, s->plugin);
    report_word(r, stored);
    report_count(r, s->seen);
    report_integer(r, t.first);
    report_integer(r, t.last);
    report_integer(r, t.least);
    report_integer(r, t.most);
    if (s->seen)
        report_count(r, t.distinct);
    else
        report_none(r);
    report_count(r, t.out_of_order);
    report_count(r, shown);
    report_count(r, s->skipped);
    report_count(r, s->seen > shown ? s->seen - shown : 0);
    append_pairs(&pairs, run, s, t.out_of_order);
    report_text(r, buffer_text(&pairs), pairs.length);
    buffer_release(&pairs);
    return OK;
}

int inspect_report(struct report *r, const struct inspect_run *run, int ranked, struct error *e)
{
    struct buffer heading = BUFFER_EMPTY, details = BUFFER_EMPTY;
    size_t count;
    struct sorted *list = sorted_series(run, &count, e);
    int rc = list ? OK : ERR_NOMEM;

    if (!ranked && report_for_people(r)) {
        buffer_format(&heading, "run %s", run->name);
        if (report_is_text(r))
            append_files(&details, run, r);
        report_section(r, buffer_text(&heading), buffer_text(&details), 0);
        if (!buffer_ok(&heading) || !buffer_ok(&details))
            rc = error_memory(e, run->name, "for its files");
        buffer_release(&heading);
        buffer_release(&details);
    }
    for (size_t i = 0; i < count && rc == OK; i++)
        rc = add_series(r, run, list[i].series, e);
    free(list);
    return rc;
}
