/* checkpoint inspect: what is in a checkpoint, or which checkpoints are in a directory. */
#include "checkpoint/tool/inspect.h"

#include "base/human.h"
#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "checkpoint/tensor_value.h"
#include "checkpoint/tool/command.h"
#include "checkpoint/tool/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct strings { /* of a string tensor */
    size_t shortest, longest;
    uint64_t total;
};

struct numbers { /* of any other */
    int type;
    struct tensor_statistics *statistics;
};

static int take_numbers(void *context, const void *bytes, size_t n, struct error *e)
{
    const struct numbers *x = context;

    (void)e;
    if (tensor_kind(x->type))
        tensor_statistics_add(x->statistics, x->type, bytes, n / tensor_type_size(x->type));
    return OK;
}

static int gather_strings(const struct source *s, const struct source_tensor *tensor, struct strings *out,
                          struct error *e)
{
    struct tensor_string *items;
    char *stored;
    int rc = source_strings(s, tensor, &stored, &items, e);

    for (uint64_t i = 0; i < tensor->elements && rc == OK; i++) {
        size_t length = items[i].length;

        out->shortest = !i || length < out->shortest ? length : out->shortest;
        out->longest = length > out->longest ? length : out->longest;
        out->total += length;
    }
    free(items);
    free(stored);
    return rc;
}

/* ---- one tensor ------------------------------------------------------------------------------------------------ */

static void bound_text(int type, const struct tensor_statistics *n, int most, char *out)
{
    enum tensor_kind kind = tensor_kind(type);
    uint64_t exact = most ? n->exact_most : n->exact_least;
    double v = most ? n->most : n->least;

    if (kind == TENSOR_KIND_SIGNED)
        snprintf(out, NUMBER_TEXT_MAX, "%lld", (long long)exact);
    else if (kind == TENSOR_KIND_UNSIGNED)
        snprintf(out, NUMBER_TEXT_MAX, "%llu", (unsigned long long)exact);
    else if (type == TENSOR_DOUBLE || kind == TENSOR_KIND_COMPLEX)
        number_text(v, out);
    else
        number_text_float((float)v, out);
}

static void put_json(struct inspect *x, const struct source_tensor *tensor, const struct tensor_statistics *n,
                     const struct strings *strings)
{
    struct buffer *b = &x->out.text;
    char bound[NUMBER_TEXT_MAX];

    buffer_append_text(b, x->first ? "\n{\"name\":" : ",\n{\"name\":");
    x->first = 0;
    json_span(b, tensor->name, tensor->name_length, 0);
    buffer_format(b, ",\"dtype\":\"%s\",\"shape\":", tensor->type_name);
    command_shape(b, tensor->rank, tensor->shape);
    buffer_format(b, ",\"elements\":%llu,\"bytes\":%llu", (unsigned long long)tensor->elements,
                  (unsigned long long)tensor->bytes);
    if (tensor->slices)
        buffer_format(b, ",\"slices\":%zu", tensor->slices);
    else
        buffer_format(b, ",\"shard\":%d,\"offset\":%llu", (int)tensor->shard, (unsigned long long)tensor->offset);
    if (strings) {
        buffer_format(b, ",\"shortest\":%zu,\"longest\":%zu,\"length\":%llu", strings->shortest, strings->longest,
                      (unsigned long long)strings->total);
    } else if (n) {
        const char *const names[] = { "mean", "std" };
        const double values[] = { n->mean, tensor_statistics_deviation(n) };

        for (int i = 0; i < 2; i++) {
            buffer_format(b, ",\"%s\":", names[i]);
            if (n->finite)
                json_double(b, values[i]);
            else
                buffer_append_text(b, "null");
        }
        for (int i = 0; i < 2; i++) {
            bound_text(tensor->type, n, i, bound);
            buffer_format(b, ",\"%s\":%s", i ? "max" : "min", n->finite ? bound : "null");
        }
        buffer_format(b, ",\"nan\":%llu,\"inf\":%llu", (unsigned long long)n->nan, (unsigned long long)n->infinite);
    }
    buffer_append_byte(b, '}');
    output_put(&x->out);
}

/* Tensors differ by orders of magnitude, so each number keeps four digits instead of all the same decimals. */
static void number_cell(struct table *t, double v)
{
    table_cell(t, "%.4g", v);
}

static void count_cell(struct table *t, uint64_t v)
{
    table_cell(t, "%llu", (unsigned long long)v);
}

static void statistics_cells(struct table *t, int type, const struct tensor_statistics *n)
{
    enum tensor_kind kind = tensor_kind(type);
    const double least_most[] = { n->least, n->most };
    char bound[NUMBER_TEXT_MAX];

    if (!n->finite) {
        for (int i = 0; i < 4; i++)
            table_cell(t, "-");
    } else {
        number_cell(t, n->mean);
        number_cell(t, tensor_statistics_deviation(n));
        for (int most = 0; most < 2; most++) {
            if (kind == TENSOR_KIND_FLOAT || kind == TENSOR_KIND_COMPLEX) {
                number_cell(t, least_most[most]);
            } else {
                bound_text(type, n, most, bound);
                table_cell(t, "%s", bound);
            }
        }
    }
    count_cell(t, n->nan);
    count_cell(t, n->infinite);
}

static void strings_cells(struct table *t, const struct strings *strings)
{
    table_cell(t, "-");
    table_cell(t, "-");
    table_cell(t, "length %zu", strings->shortest);
    table_cell(t, "length %zu", strings->longest);
    table_cell(t, "-");
    table_cell(t, "-");
}

static void put_row(struct inspect *x, const struct source_tensor *tensor, const struct tensor_statistics *n,
                    const struct strings *strings)
{
    struct buffer shape = BUFFER_EMPTY;
    struct table *t = &x->table;
    char size[HUMAN_TEXT_MAX];

    table_text(t, tensor->name, tensor->name_length);
    table_cell(t, "%s", tensor->type_name);
    command_shape(&shape, tensor->rank, tensor->shape);
    table_text(t, buffer_text(&shape), shape.length);
    t->cells.failed |= shape.failed;
    buffer_release(&shape);
    table_cell(t, "%s", human_bytes(tensor->bytes, size));
    if (strings)
        strings_cells(t, strings);
    else if (x->statistics)
        statistics_cells(t, tensor->type, n);
    if (!x->sharded)
        return;
    if (tensor->slices)
        table_cell(t, "%zu slices", tensor->slices);
    else
        table_cell(t, "%d", (int)tensor->shard);
}

/* A tensor that cannot be read is told on standard error, and the others follow. */
static void show_tensor(struct inspect *x, const struct source *s, const struct source_tensor *tensor)
{
    struct tensor_statistics n = { 0 };
    struct strings strings = { 0 };
    struct error e = { .code = OK };
    struct numbers numbers = { tensor->type, &n };
    int is_strings = tensor->type == TENSOR_STRING && x->statistics, rc = OK;

    if (is_strings)
        rc = gather_strings(s, tensor, &strings, &e);
    else if (x->statistics)
        rc = source_pieces(s, tensor, take_numbers, &numbers, &e);
    if (rc != OK) {
        x->damaged = 1;
        output_fail(&x->out, &e);
        return;
    }
    x->count++;
    x->elements += tensor->elements;
    x->bytes += tensor->bytes;
    x->nan += n.nan;
    x->inf += n.infinite;
    if (x->out.json)
        put_json(x, tensor, x->statistics && tensor_kind(tensor->type) ? &n : NULL, is_strings ? &strings : NULL);
    else
        put_row(x, tensor, &n, is_strings ? &strings : NULL);
}

/* NaN and Inf go first where the terminal is narrow and there are none, and never where there are some. */
static size_t choose_columns(struct inspect *x, struct table_column *columns)
{
    static const struct table_column all[] = {
        { .title = "tensor", .cut = 24 }, { .title = "dtype" }, { .title = "shape", .cut = 12 },
        { .title = "size", .right = 1 }, { .title = "mean", .right = 1, .leave_out = 2 },
        { .title = "std", .right = 1, .leave_out = 1 }, { .title = "min", .right = 1, .leave_out = 3 },
        { .title = "max", .right = 1, .leave_out = 3 }, { .title = "nan", .right = 1 }, { .title = "inf", .right = 1 },
        { .title = "shard", .right = 1, .leave_out = 4 },
    };
    enum { BEFORE = 4, STATISTICS = 6 };
    size_t count = 0;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (i < BEFORE || (i < BEFORE + STATISTICS && x->statistics) || (i == BEFORE + STATISTICS && x->sharded))
            columns[count++] = all[i];
    return count;
}

static void print_table(struct inspect *x, struct table_column *columns)
{
    for (size_t i = 0; i < x->table.column_count; i++) {
        columns[i].leave_out += !strcmp(columns[i].title, "nan") && !x->nan ? 6 : 0;
        columns[i].leave_out += !strcmp(columns[i].title, "inf") && !x->inf ? 5 : 0;
    }
    command_table(&x->table, &x->out);
}

static void begin_checkpoint(struct inspect *x, const struct source *s)
{
    struct buffer *b = &x->out.text;

    if (!x->out.json) {
        text_append_safe(b, s->path, strlen(s->path));
        buffer_format(b, ": %s", s->format);
        if (s->step >= 0)
            buffer_format(b, ", step %lld", (long long)s->step);
        buffer_append_byte(b, '\n');
        return;
    }
    buffer_append_text(b, "{\"type\":\"inspect\",\"version\":1,\"path\":");
    json_text(b, s->path);
    buffer_format(b, ",\"format\":\"%s\",\"step\":", s->format);
    buffer_format(b, s->step < 0 ? "null" : "%lld", (long long)s->step);
    buffer_format(b, ",\"shards\":%d,\"tensors\":[", (int)s->shards);
    x->first = 1;
}

static void end_checkpoint(struct inspect *x, const struct source *s)
{
    struct buffer *b = &x->out.text;
    char size[HUMAN_TEXT_MAX];

    if (x->out.json) {
        buffer_format(b, "\n],\"total\":{\"tensors\":%llu,\"elements\":%llu,\"bytes\":%llu,\"nan\":%llu,"
                      "\"inf\":%llu}}\n", (unsigned long long)x->count, (unsigned long long)x->elements,
                      (unsigned long long)x->bytes, (unsigned long long)x->nan, (unsigned long long)x->inf);
        return;
    }
    buffer_format(b, "total: %llu tensor%s, %llu value%s, %s", (unsigned long long)x->count, x->count == 1 ? "" : "s",
                  (unsigned long long)x->elements, x->elements == 1 ? "" : "s", human_bytes(x->bytes, size));
    if (s->shards > 1)
        buffer_format(b, " in %d shards", (int)s->shards);
    if (x->statistics)
        buffer_format(b, ", %llu NaN, %llu Inf", (unsigned long long)x->nan, (unsigned long long)x->inf);
    buffer_append_byte(b, '\n');
}

static int show_checkpoint(struct inspect *x, const char *path, struct error *e)
{
    struct table_column columns[TABLE_COLUMNS_MAX];
    struct source s;
    int rc = source_open(&s, path, !x->statistics, e);

    if (rc != OK)
        return rc;
    x->sharded = s.shards > 1;
    for (size_t i = 0; i < s.count; i++)
        x->sharded |= s.tensors[i].slices > 0;
    begin_checkpoint(x, &s);
    table_init(&x->table, columns, choose_columns(x, columns));
    for (size_t i = 0; i < s.count; i++)
        if (selection_wants(&x->tensors, s.tensors[i].name))
            show_tensor(x, &s, &s.tensors[i]);
    if (!x->out.json)
        print_table(x, columns);
    end_checkpoint(x, &s);
    source_close(&s);
    return OK;
}

int command_inspect(int argc, char **argv)
{
    struct inspect x = { .statistics = 1 };
    struct option table[] = {
        COMMAND_TENSOR_OPTION(x.tensors),
        { OPTION_FLAG, 0, "statistics", &x.statistics, .help = "read the values (default); --no-statistics shows what "
          "the index alone says" },
        { OPTION_FLAG, 0, "all", &x.all, .help = "list the checkpoints of the directory: step, size, age, whole or "
          "what is missing" },
        OUTPUT_OPTIONS(x.out),
    };
    const struct options options = {
        .program = "checkpoint inspect", .usage = "[OPTION...] PREFIX|DIR|FILE",
        .summary = "Shows the tensors of a checkpoint in order of their names; of a directory, its newest whole one. "
                   "Mean, deviation (of the population), min and max are over finite elements, of complex ones over "
                   "magnitudes; NaN and Inf are counted. Values pass through a buffer, so size does not matter. Status "
                   "1: a tensor is damaged; 2: usage, or no such checkpoint.",
        .examples = "  checkpoint inspect ckpt --tensor 'conv1/*'\n  checkpoint inspect ckpt --all\n"
                    "  checkpoint inspect ckpt/model.ckpt-700 --json | jq '.tensors[] | select(.nan > 0)'\n",
        .table = table, .count = sizeof table / sizeof *table,
        .least = 1, .most = 1, .wanted = "one checkpoint at a time;",
    };
    struct error e = { .code = OK };
    int count = 0, status, rc = options_parse(&options, argc, argv, &count, &e);

    x.out.program = options.program;
    if (rc == OPTIONS_DONE)
        return EXIT_DONE;
    if (rc == OK && x.all && x.tensors.patterns.count)
        rc = error_set(&e, ERR_ARG, "--all lists checkpoints, not tensors; leave --tensor or --all out");
    if (rc == OK && (rc = output_open(&x.out, &e)) == OK)
        rc = x.all ? inspect_directory(&x, argv[1], &e) : show_checkpoint(&x, argv[1], &e);
    status = rc != OK ? output_fail(&x.out, &e) : x.damaged ? EXIT_NO : EXIT_DONE;
    return output_close(&x.out, x.all ? status : command_selected(&x.tensors, &x.out, status));
}
