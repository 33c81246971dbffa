/* eventlog inspect: shows what is in a log. */
#include "base/array.h"
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/human.h"
#include "base/json.h"
#include "base/program/table.h"
#include "base/program/terminal.h"
#include "base/text.h"
#include "eventlog/read/event_reader.h"
#include "eventlog/read/scalar_series.h"
#include "eventlog/read/step_list.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/output_format.h"
#include "eventlog/tool/report/report.h"
#include "eventlog/tool/scan.h"
#include "eventlog/tool/scan_runs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* in alphabetical order, as TensorBoard prints them */
enum inspect_kind {
    INSPECT_AUDIO,
    INSPECT_GRAPH,
    INSPECT_HISTOGRAMS,
    INSPECT_IMAGES,
    INSPECT_SCALARS,
    INSPECT_CHECKPOINT,
    INSPECT_START,
    INSPECT_STOP,
    INSPECT_TENSOR,
    INSPECT_KINDS,
};

/* The points of a series, by scalar_series.number: their steps in reading order, and those that TensorBoard's default
 * loader would hold, marked 1 where it shows them. */
struct inspect_series {
    struct step_list steps, kept;
    unsigned kinds; /* 1 << kind for each kind its values had */
};

struct inspect_file {
    const char *path; /* borrowed */
    struct event_reader_state state;
    struct event_damage *damage;
    size_t damage_count, damage_capacity;
};

struct inspect_run {
    const char *name, *directory; /* borrowed */
    struct inspect_file *files;
    size_t file_count;
    struct scalar_run all;         /* without points */
    struct inspect_series *series; /* of all.series, by number; series_count of them, possibly more than all.count */
    size_t series_count;
    struct step_list kinds[INSPECT_KINDS]; /* all tags together */
};

/* of all runs */
struct inspect_totals {
    uint64_t files, records, bytes, series, points, damage;
};

/* a run */
struct inspect_leaf {
    const char *name; /* borrowed */
    size_t files, series, damage;
    uint64_t bytes, points, values; /* values: those that are not points */
    int64_t least, most;            /* steps of the points */
    int partial;                    /* a file stops inside a record */
};

struct inspect_tree {
    struct inspect_leaf *leaves;
    size_t count, capacity;
};

#define INSPECT_TREE_EMPTY \
    { \
        NULL, 0, 0 \
    }

/* Copies the figures of a run, which may be freed afterwards. OK or ERR_NOMEM. */
static int tree_add(struct inspect_tree *t, const struct inspect_run *run, struct error *e)
{
    struct inspect_leaf *leaf;

    if (!ARRAY_ROOM(t->leaves, t->capacity, t->count + 1))
        return error_memory(e, NULL, "for %zu runs", t->count + 1);
    leaf = &t->leaves[t->count++];
    *leaf = (struct inspect_leaf){ .name = run->name, .files = run->file_count };
    for (size_t i = 0; i < run->file_count; i++) {
        leaf->bytes += run->files[i].state.size;
        leaf->damage += run->files[i].damage_count;
        leaf->partial |= run->files[i].state.offset != run->files[i].state.size;
    }
    for (size_t i = 0; i < run->all.count; i++) {
        const struct scalar_series *s = &run->all.series[i];
        const struct step_list *steps;

        if (!s->seen && !s->skipped)
            continue;
        steps = &run->series[s->number].steps;
        for (size_t k = 0; s->seen && k < steps->count; k++) {
            const struct step_stretch *part = &steps->items[k];

            leaf->least = !(leaf->points + k) || part->first < leaf->least ? part->first : leaf->least;
            leaf->most = !(leaf->points + k) || part->last > leaf->most ? part->last : leaf->most;
        }
        leaf->series++;
        leaf->points += s->seen;
        leaf->values += s->skipped;
    }
    return OK;
}

static void tree_release(struct inspect_tree *t)
{
    free(t->leaves);
    *t = (struct inspect_tree)INSPECT_TREE_EMPTY;
}

/* The log directory itself is first. */
static int by_path(const void *a, const void *b)
{
    const char *x = ((const struct inspect_leaf *)a)->name, *y = ((const struct inspect_leaf *)b)->name;
    int dot_x = !strcmp(x, "."), dot_y = !strcmp(y, ".");

    return dot_x || dot_y ? dot_y - dot_x : text_natural_order(x, y);
}

static void count_text(struct buffer *b, uint64_t n, const char *one)
{
    char count[HUMAN_TEXT_MAX];

    buffer_format(b, ", %s", human_count(n, one, count));
}

static void figures(struct buffer *b, const struct inspect_leaf *leaf)
{
    char size[HUMAN_TEXT_MAX];

    buffer_format(b, "  %s", human_bytes(leaf->bytes, size));
    count_text(b, leaf->files, "file");
    count_text(b, leaf->series, "series");
    if (leaf->points) {
        count_text(b, leaf->points, "point");
        buffer_format(b, ", steps %lld to %lld", (long long)leaf->least, (long long)leaf->most);
    }
    if (leaf->values)
        count_text(b, leaf->values, "other value");
    if (leaf->damage)
        buffer_format(b, ", damaged (%zu)", leaf->damage);
    else if (leaf->partial)
        buffer_append_text(b, ", stops inside a record");
}

/* The columns for a name in a line of `columns` (0: no limit) whose other parts take `rest`. */
static size_t room_for_name(int columns, size_t rest)
{
    enum { LEAST_OF_NAME = 24 };

    if (!columns)
        return SIZE_MAX;
    return (size_t)columns > rest + LEAST_OF_NAME ? (size_t)columns - rest : LEAST_OF_NAME;
}

static int tree_print(struct output *out, struct inspect_tree *t, struct error *e)
{
    int columns = output_columns(out), good;
    struct buffer b = BUFFER_EMPTY, line = BUFFER_EMPTY, behind = BUFFER_EMPTY;
    const char *before = "";

    if (t->count)
        qsort(t->leaves, t->count, sizeof *t->leaves, by_path);
    for (size_t i = 0; i < t->count; i++) {
        const char *name = t->leaves[i].name;
        size_t same = 0, depth = 0;

        /* The directories that the run before has already shown: the whole parts that both names begin with. */
        for (size_t k = 0; strcmp(before, ".") != 0; k++) {
            if ((!before[k] || before[k] == '/') && (!name[k] || name[k] == '/'))
                same = k;
            if (!name[k] || name[k] != before[k])
                break;
        }
        for (size_t from = 0; from <= strlen(name); depth++) {
            size_t n = strcspn(name + from, "/");

            if (from + n > same || !same) {
                buffer_format(&b, "%*s", (int)(2 * depth), "");
                buffer_clear(&behind);
                if (!name[from + n])
                    figures(&behind, &t->leaves[i]);
                else
                    buffer_append_byte(&behind, '/');
                buffer_clear(&line);
                text_append_cut(&line, name + from, n, room_for_name(columns, 2 * depth + behind.length),
                                !terminal_utf8());
                buffer_append(&line, buffer_text(&behind), behind.length);
                text_append_wrapped(&b, buffer_text(&line), 2 * depth, 2 * depth + 4, (size_t)columns);
                buffer_append_byte(&b, '\n');
            }
            from += n + 1;
        }
        before = name;
    }
    good = buffer_ok(&b) && buffer_ok(&line) && buffer_ok(&behind);
    buffer_release(&line);
    buffer_release(&behind);
    output_bytes(out, buffer_text(&b), b.length);
    buffer_release(&b);
    return good ? OK : error_memory(e, NULL, "for the tree");
}

/* The layouts of `eventlog inspect`. */
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

static int print_json(struct output *out, const struct inspect_run *run, int first, struct error *e)
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

static int print_as_tensorboard(struct output *out, const struct inspect_run *run, struct error *e)
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

static struct report_layout layout_of(int ranked)
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

/* Its series. ranked: rows of all runs together, for --sort and --top; otherwise a section for each run, in text with
 * its files above. */
static int report_run(struct report *r, const struct inspect_run *run, int ranked, struct error *e)
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

struct inspect_work {
    struct inspect_run run;
    struct error memory; /* its code is set once memory has run out */
    int by_kind;         /* collect steps by kind, for TensorBoard's layout */
};

/* ---- gathering ------------------------------------------------------------------------------------------------- */

static void begin_file(void *context, const char *path)
{
    struct inspect_work *w = context;
    struct inspect_file *files = realloc(w->run.files, (w->run.file_count + 1) * sizeof *files);

    scalar_run_begin_file(&w->run.all);
    if (!files) {
        error_memory(&w->memory, NULL, "for the files of run %s", w->run.name);
        return;
    }
    w->run.files = files;
    files[w->run.file_count++] = (struct inspect_file){ .path = path };
}

static void end_file(void *context, const struct event_reader_state *state)
{
    struct inspect_work *w = context;

    if (w->run.file_count)
        w->run.files[w->run.file_count - 1].state = *state;
}

static void add_step(struct inspect_work *w, enum inspect_kind kind, int64_t step)
{
    if (!step_list_add(&w->run.kinds[kind], step, 0))
        error_memory(&w->memory, NULL, "for the steps of run %s", w->run.name);
}

static struct inspect_series *series_of(struct inspect_work *w, const struct scalar_series *s)
{
    if (ARRAY_ROOM_ZERO(w->run.series, w->run.series_count, s->number + 1))
        return &w->run.series[s->number];
    error_memory(&w->memory, NULL, "for what is in run %s", w->run.name);
    return NULL;
}

/* A value that is a point, or that TensorBoard's default loader takes for one. */
static void add_value(struct inspect_work *w, const struct scalar_series *s, int64_t step, int is_point, unsigned from)
{
    struct inspect_series *to = series_of(w, s);
    int good = !is_point || !to || step_list_add(&to->steps, step, 0);

    if (to && from & SCALAR_TAKEN) {
        step_list_cut(&to->kept, step);
        good &= step_list_add(&to->kept, step, (from & SCALAR_SHOWN) != 0);
    }
    if (!good)
        error_memory(&w->memory, NULL, "for the steps of run %s", w->run.name);
}

static void add_kind(struct inspect_work *w, const struct scalar_series *s, const struct event_value *value,
                     int64_t step)
{
    static const enum inspect_kind kinds[] = {
        [EVENT_VALUE_SIMPLE] = INSPECT_SCALARS,       [EVENT_VALUE_IMAGE] = INSPECT_IMAGES,
        [EVENT_VALUE_HISTOGRAM] = INSPECT_HISTOGRAMS, [EVENT_VALUE_AUDIO] = INSPECT_AUDIO,
        [EVENT_VALUE_TENSOR] = INSPECT_TENSOR,
    };
    struct inspect_series *series;

    if (value->kind == EVENT_VALUE_NONE || value->kind == EVENT_VALUE_OLD_HISTOGRAM)
        return;
    add_step(w, kinds[value->kind], step);
    if ((series = series_of(w, s)))
        series->kinds |= 1u << kinds[value->kind];
}

static void add_event_kind(struct inspect_work *w, const struct event *event)
{
    if (event->what == EVENT_GRAPH)
        add_step(w, INSPECT_GRAPH, event->step);
    if (event->session == EVENT_SESSION_START)
        add_step(w, INSPECT_START, event->step);
    if (event->session == EVENT_SESSION_STOP)
        add_step(w, INSPECT_STOP, event->step);
    if (event->session == EVENT_SESSION_CHECKPOINT)
        add_step(w, INSPECT_CHECKPOINT, event->step);
}

static int event(void *context, const struct event *ev, struct error *e)
{
    struct inspect_work *w = context;
    int by_kind = w->by_kind && !ev->is_damaged;
    struct event_values values;
    const struct event_value *value;

    if (by_kind)
        add_event_kind(w, ev);
    scalar_run_begin_event(&w->run.all, ev);
    event_values_init(&values, ev);
    while (!w->memory.code && (value = event_values_next(&values))) {
        struct scalar_series *s;
        struct eventlog_point point;
        unsigned from;
        int rc = scalar_run_value(&w->run.all, ev, value, &point, &s, &from, e);

        if (rc < 0)
            return rc;
        if (rc == 1 || from & SCALAR_TAKEN)
            add_value(w, s, ev->step, rc == 1, from);
        if (by_kind)
            add_kind(w, s, value, ev->step);
    }
    if (w->memory.code)
        *e = w->memory;
    return w->memory.code;
}

static int damage(void *context, const struct event_damage *d, struct error *e)
{
    struct inspect_work *w = context;
    struct inspect_file *f = w->run.file_count ? &w->run.files[w->run.file_count - 1] : NULL;
    struct event ev;

    if (f && !ARRAY_ROOM(f->damage, f->damage_capacity, f->damage_count + 1))
        return error_memory(e, f->path, "for its damage");
    if (f) {
        f->damage[f->damage_count] = *d;
        f->damage[f->damage_count++].data = NULL; /* borrowed */
    }
    return scalar_run_damage(&w->run.all, d, &ev) ? event(context, &ev, e) : OK;
}

static void release_run(struct inspect_run *run)
{
    scalar_run_release(&run->all);
    for (size_t i = 0; i < run->file_count; i++)
        free(run->files[i].damage);
    for (size_t i = 0; i < INSPECT_KINDS; i++)
        step_list_release(&run->kinds[i]);
    for (size_t i = 0; i < run->series_count; i++) {
        step_list_release(&run->series[i].steps);
        step_list_release(&run->series[i].kept);
    }
    free(run->series);
    free(run->files);
}

static void begin_run(struct inspect_run *run, const char *name, const char *directory)
{
    memset(run, 0, sizeof *run);
    run->name = name;
    run->directory = directory;
    scalar_run_init(&run->all, EVENTLOG_VIEW_ALL, 0, 0);
    run->all.follow_loader = 1;
}

static void restart(void *context)
{
    struct inspect_work *w = context;
    const char *name = w->run.name, *directory = w->run.directory;

    release_run(&w->run);
    begin_run(&w->run, name, directory);
}

/* ---- the command line ------------------------------------------------------------------------------------------ */

/* The formats that are not reports. */
static int has_own_layout(const char *format)
{
    return !strcmp(format, "json") || !strcmp(format, "tb") || !strcmp(format, "tree");
}

static void begin_document(struct output *out, const char *format, struct scan *s)
{
    if (!strcmp(format, "json"))
        output_text(out, "{\"type\":\"inspect\",\"version\":1,\"runs\":[");
    if (strcmp(format, "tb") != 0)
        return;
    for (int rule = 0; rule < 2; rule++) {
        for (int i = 0; i < 70; i++)
            output_text(out, "=");
        output_text(out, rule ? "\n\n" : "\nProcessing event files... (this can take a few minutes)\n");
    }
    output_text(out, "Found event files in:\n");
    for (const struct log_run *run = NULL; (run = scan_next_run(s, run));) {
        output_text(out, run->directory);
        output_text(out, "\n");
    }
    output_text(out, "\n");
}

/* Removes series that were not asked for. */
static void sift(struct scan *s, struct inspect_run *run)
{
    for (size_t i = 0; i < run->all.count; i++)
        if (!scan_tag_wanted(s, run->all.series[i].tag)) {
            run->all.series[i].seen = run->all.series[i].skipped = 0;
            if (i < run->series_count)
                run->series[i].kinds = 0;
        }
}

static void add_totals(struct inspect_totals *t, const struct inspect_run *run)
{
    t->files += run->file_count;
    for (size_t i = 0; i < run->file_count; i++) {
        t->records += run->files[i].state.records;
        t->bytes += run->files[i].state.size;
        t->damage += run->files[i].damage_count;
    }
    for (size_t i = 0; i < run->all.count; i++) {
        t->series += run->all.series[i].seen || run->all.series[i].skipped;
        t->points += run->all.series[i].seen;
    }
}

/* Where the runs are written: to a report, or to `out` in another layout. */
struct printing {
    struct scan *scan;
    const char *format;
    struct report *report; /* NULL: not the layout of one */
    struct output *out;
    struct inspect_tree tree;
    struct inspect_totals total;
    int ranked;
    size_t matched;
};

static int print_run(struct printing *p, const struct inspect_run *run, struct error *e)
{
    add_totals(&p->total, run);
    return p->report                    ? report_run(p->report, run, p->ranked, e)
           : !strcmp(p->format, "json") ? print_json(p->out, run, !p->matched, e)
           : !strcmp(p->format, "tree") ? tree_add(&p->tree, run, e)
                                        : print_as_tensorboard(p->out, run, e);
}

static int read_run(void *context, struct scan *s, const struct log_run *run, void *one, struct error *e)
{
    const struct printing *p = context;
    struct inspect_work *w = one;
    const struct scan_sink sink = { w, begin_file, event, damage, end_file, restart, NULL, NULL };

    w->by_kind = !strcmp(p->format, "tb");
    begin_run(&w->run, run->name, run->directory);
    return scan_run(s, run, &sink, e);
}

static int take_run(void *context, const struct log_run *run, void *one, struct error *e)
{
    struct printing *p = context;
    struct inspect_work *w = one;
    int rc;

    (void)run;
    sift(p->scan, &w->run);
    rc = print_run(p, &w->run, e);
    p->matched++;
    return rc;
}

static void release_work(void *context, void *one)
{
    (void)context;
    release_run(&((struct inspect_work *)one)->run);
}

static int print_runs(struct scan *s, struct printing *p, struct error *e)
{
    const struct scan_runs calls = {
        .size = sizeof(struct inspect_work),
        .read = read_run,
        .take = take_run,
        .release = release_work,
        .context = p,
    };

    p->scan = s;
    return scan_runs(s, &calls, e);
}

static void end_json(struct output *out, const struct inspect_totals *t)
{
    char text[200];

    snprintf(text, sizeof text,
             "],\"total\":{\"files\":%llu,\"records\":%llu,\"bytes\":%llu,\"series\":%llu,"
             "\"points\":%llu,\"damage\":%llu}}\n",
             (unsigned long long)t->files, (unsigned long long)t->records, (unsigned long long)t->bytes,
             (unsigned long long)t->series, (unsigned long long)t->points, (unsigned long long)t->damage);
    output_text(out, text);
}

/* JSON, TensorBoard's layout, the tree. */
static int inspect_layouts(struct scan *s, struct printing *p, const struct output_options *to, struct error *e)
{
    int status, rc = output_open(&p->out, to->path, to->force, e);

    if (rc != OK)
        return scan_fail(s, e);
    begin_document(p->out, p->format, s);
    rc = print_runs(s, p, e);
    if (!strcmp(p->format, "json"))
        end_json(p->out, &p->total);
    if (rc == OK)
        rc = tree_print(p->out, &p->tree, e);
    status = gather_finish(s, p->out, rc, p->matched > 0, e);
    tree_release(&p->tree);
    return status;
}

static int inspect(struct scan *s, const struct report_options *o, struct error *e)
{
    struct printing p = { .format = o->to.format, .tree = INSPECT_TREE_EMPTY, .ranked = o->sort || o->top };
    const struct report_layout layout = layout_of(p.ranked);
    int rc;

    if (has_own_layout(p.format))
        return inspect_layouts(s, &p, &o->to, e);
    if ((rc = report_open(&p.report, &layout, o, e)) != OK)
        return scan_fail(s, e);
    if (report_for_people(p.report))
        scan_natural_order(&s->directory);
    rc = print_runs(s, &p, e);
    return report_finish(p.report, s, rc, p.matched > 0, e);
}

int command_inspect(int argc, char **argv)
{
    static const struct output_format formats[] = { REPORT_FORMATS, { "tb", "txt", 0 }, { "tree", "txt", 0 } };
    struct report_options o = { .sort = NULL };
    struct scan s = { .failed = 0 };
    int tree = 0;
    struct option table[] = {
        SCAN_RUN_OPTION(s),
        SCAN_TAG_OPTION(s),
        REPORT_OPTIONS(o),
        OUTPUT_OPTIONS(o.to, REPORT_WORDS "|tb|tree", "text",
                       "Print text; json: runs, files and series; csv, jsonl, md, html: a row or an object for each "
                       "series; tb: what 'tensorboard --inspect' prints; tree: a line for each directory"),
        { OPTION_FLAG, 0, "tree", &tree, .help = "Same as --format=tree" },
    };
    const struct options options = {
        .program = "eventlog inspect",
        .usage = "[OPTION...] PATH...",
        .summary = "Show what a log holds: the files of each run and how they end, and the points and steps of each "
                   "series. --format=tb counts the steps of all tags of a run together, as TensorBoard does. Exit "
                   "status: 0 done; 1 no event files, nothing matched, or damage; 2 usage or I/O.",
        .examples = "  eventlog inspect logs\n"
                    "  eventlog inspect logs --sort points:desc --top 10    the longest series\n"
                    "  eventlog inspect logs --json | jq '.runs[].series[] | {tag, points}'\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 1,
        .wanted = "no PATH given;",
    };
    struct error e = { 0 };
    int count = 0, status, rc = scan_begin(&s, &options, argc, argv, &count, &e);

    if (rc == OK)
        rc = output_format_flag(&o.to, tree, "tree", &e);
    if (rc == OK)
        rc = report_settle(&o, formats, sizeof formats / sizeof *formats, "text", &e);
    if (rc == OK && (o.sort || o.top) && has_own_layout(o.to.format))
        rc = error_set(&e, ERR_ARG, "--%s does not apply to --format=%s; use jsonl, csv or text",
                       o.sort ? "sort" : "top", o.to.format);
    if (rc != OK)
        return scan_leave(&s, rc, &e);
    s.quiet_damage = !strcmp(o.to.format, "text") || !strcmp(o.to.format, "json"); /* they show it */
    s.quiet_damage &= !(o.sort || o.top);
    if ((status = scan_open(&s, argv + 1, (size_t)count)) == EXIT_DONE)
        status = inspect(&s, &o, &e);
    scan_close(&s);
    return status;
}
