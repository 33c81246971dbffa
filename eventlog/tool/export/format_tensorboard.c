/* tb-csv, tb-json: what TensorBoard's scalars route returns for one run and tag, but with all points. */
#include "eventlog/tool/export/export.h"

#include "base/json.h"
#include "base/number.h"
#include "eventlog/tool/output_directory.h"

#include <string.h>

struct tensorboard_options {
    int multirun; /* of tb-json */
};

_Static_assert(sizeof(struct tensorboard_options) <= EXPORT_OWN_SIZE, "they have room");

static void csv_body(struct export *x, struct output *out, const struct scalar_series *s)
{
    output_text(out, "Wall time,Step,Value\r\n");
    for (size_t i = 0; s && i < s->count; i++) {
        char *room = output_room(out, 128), *at = room;

        at += number_text(s->points[i].wall_time, at);
        *at++ = ',';
        at += number_text_integer(s->points[i].step, at);
        *at++ = ',';
        at += export_number(x, s->points[i].value, scalar_series_from(s, i), at);
        at = stpcpy(at, "\r\n");
        output_filled(out, (size_t)(at - room));
    }
}

static void json_body(struct export *x, struct output *out, const struct scalar_series *s)
{
    output_text(out, "[");
    for (size_t i = 0; s && i < s->count; i++) {
        char *room = output_room(out, 160), *at = stpcpy(room, i ? ", [" : "[");

        at = export_json_number(x, at, s->points[i].wall_time, 0);
        at = stpcpy(at, ", ");
        at += number_text_integer(s->points[i].step, at);
        at = stpcpy(at, ", ");
        at = export_json_number(x, at, s->points[i].value, scalar_series_from(s, i));
        *at++ = ']';
        output_filled(out, (size_t)(at - room));
    }
    output_text(out, "]");
}

static void body(struct export *x, struct output *out, const struct scalar_series *s)
{
    if (!strcmp(x->options->to.format, "tb-csv"))
        csv_body(x, out, s);
    else
        json_body(x, out, s);
}

static int to_directory(struct export *x, struct export_run *runs, size_t count, struct error *e)
{
    const char *extension = !strcmp(x->options->to.format, "tb-csv") ? ".csv" : ".json";
    struct output_directory directory;
    struct buffer stem = BUFFER_EMPTY;
    int rc = output_directory_open(&directory, x->options->to.path, x->options->to.force, e);

    for (size_t i = 0; i < count && rc == OK; i++) {
        scalar_run_sort(&runs[i].scalars);
        for (size_t k = 0; k < runs[i].scalars.count && rc == OK; k++) {
            const struct scalar_series *s = &runs[i].scalars.series[k];
            struct output *out;

            if (!s->count)
                continue;
            buffer_clear(&stem);
            buffer_append_text(&stem, "run-");
            output_directory_safe(&stem, runs[i].name, strlen(runs[i].name));
            buffer_append_text(&stem, "-tag-");
            output_directory_safe(&stem, s->tag, s->tag_length);
            if (!buffer_ok(&stem))
                rc = error_memory(e, NULL, "for the name of a file");
            if (rc == OK)
                rc = output_directory_next(&directory, buffer_text(&stem), extension, &out, e);
            if (rc != OK)
                break;
            body(x, out, s);
            x->points += s->count;
            rc = output_close(out, 1, e);
        }
    }
    buffer_release(&stem);
    output_directory_release(&directory);
    return rc;
}

static int multirun(struct export *x, struct output *out, struct export_run *runs, size_t count, struct error *e)
{
    const struct scalar_series *tag = NULL;
    int first = 1;

    output_text(out, "{");
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < runs[i].scalars.count; k++) {
            const struct scalar_series *s = &runs[i].scalars.series[k];
            struct buffer name = BUFFER_EMPTY;

            if (!s->count)
                continue;
            if (tag && (tag->tag_length != s->tag_length || memcmp(tag->tag, s->tag, s->tag_length) != 0))
                return error_set(e, ERR_ARG, "--multirun: '%s' and '%s' are selected; select one tag with --tag",
                                 tag->tag, s->tag);
            tag = s;
            buffer_append_text(&name, first ? "" : ", ");
            json_span(&name, runs[i].name, strlen(runs[i].name), 1);
            buffer_append_text(&name, ": ");
            if (!buffer_ok(&name))
                return error_memory(e, NULL, "for the name of a run");
            output_bytes(out, name.data, name.length);
            buffer_release(&name);
            json_body(x, out, s);
            x->points += s->count;
            first = 0;
        }
    output_text(out, "}");
    return OK;
}

static int single(struct export *x, struct output *out, struct export_run *runs, size_t count, struct error *e)
{
    const struct scalar_series *one = NULL;
    size_t series = 0;

    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < runs[i].scalars.count; k++)
            if (runs[i].scalars.series[k].count) {
                one = &runs[i].scalars.series[k];
                series++;
            }
    if (series > 1)
        return error_set(
            e, ERR_ARG,
            "--format=%s: %zu series are selected; select one with --run and --tag, or use -o DIR/ for a file each",
            x->options->to.format, series);
    body(x, out, one);
    x->points = one ? one->count : 0;
    return OK;
}

static int tensorboard_runs(struct export *x, struct export_run *list, size_t count, struct error *e)
{
    const struct tensorboard_options *own = x->own;
    struct output *out;
    int rc;

    if (x->failed)
        return OK;
    if (x->options->to.path && !own->multirun && output_directory_is(x->options->to.path))
        return to_directory(x, list, count, e);
    if ((rc = output_open(&out, x->options->to.path, x->options->to.force, e)) != OK)
        return rc;
    output_gzip_level(out, x->options->gzip_level);
    rc = own->multirun ? multirun(x, out, list, count, e) : single(x, out, list, count, e);
    if (rc == OK)
        return output_close(out, 1, e);
    output_close(out, 0, NULL);
    return rc;
}

static size_t tensorboard_rows(struct option *rows, void *own)
{
    struct tensorboard_options *o = own;

    rows[0] = (struct option){ OPTION_FLAG, 0, "multirun", &o->multirun,
                               .help = ": Write one tag of all runs as an object" };
    return 1;
}

#define TENSORBOARD_HELP "what TensorBoard's own download of a series gives, with -o DIR/ a file for each series"

const struct export_format format_tb_csv = {
    .name = "tb-csv",
    .help = TENSORBOARD_HELP,
    .extensions = "csv",
    .takes = "order=file view nonfinite float32",
    .opens_files = 1,
    .runs = tensorboard_runs,
};
const struct export_format format_tb_json = {
    .name = "tb-json",
    .help = TENSORBOARD_HELP,
    .extensions = "json",
    .takes = "order=file view nonfinite nonfinite=null float32",
    .rows = tensorboard_rows,
    .opens_files = 1,
    .runs = tensorboard_runs,
};
