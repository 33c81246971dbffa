/* checkpoint inspect: shows what is in a checkpoint, or which checkpoints are in a directory. */
#include "checkpoint/tool/inspect.h"

#include "base/human.h"
#include "base/number.h"
#include "base/text.h"
#include "checkpoint/tool/command.h"
#include "checkpoint/tool/short_value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static int take_numbers(void *context, const void *bytes, size_t n, struct error *e)
{
    struct inspected *t = context;
    int type = t->tensor->type;

    (void)e;
    if (tensor_kind(type))
        tensor_statistics_add(&t->numbers, type, bytes, n / tensor_type_size(type));
    return OK;
}

static int measure_strings(const struct source *s, struct inspected *t, struct error *e)
{
    struct tensor_string *items;
    int rc = source_strings(s, t->tensor, &items, e);

    for (uint64_t i = 0; i < t->tensor->elements && rc == OK; i++) {
        size_t length = items[i].length;

        t->shortest = !i || length < t->shortest ? length : t->shortest;
        t->longest = length > t->longest ? length : t->longest;
        t->length += length;
    }
    free(items);
    return rc;
}

static int read_tensor(const struct source *s, struct inspected *t, struct error *e)
{
    const struct source_tensor *tensor = t->tensor;
    int rc = tensor->type == TENSOR_STRING ? measure_strings(s, t, e) : source_pieces(s, tensor, take_numbers, t, e);

    return rc == OK && tensor->role == TENSOR_ROLE_BOOKKEEPING ? short_value(s, tensor, &t->value, e) : rc;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

void inspect_bound(int type, const struct tensor_statistics *n, int most, char *out)
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

/* Tensors differ by orders of magnitude, so each number keeps four digits instead of a fixed number of decimals. */
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
        for (int i = 0; i < (kind ? 4 : 6); i++)
            table_cell(t, kind || i < 5 ? "-" : "not read");
    } else {
        number_cell(t, n->mean);
        number_cell(t, tensor_statistics_deviation(n));
        for (int most = 0; most < 2; most++) {
            if (kind == TENSOR_KIND_FLOAT || kind == TENSOR_KIND_COMPLEX) {
                number_cell(t, least_most[most]);
            } else {
                inspect_bound(type, n, most, bound);
                table_cell(t, "%s", bound);
            }
        }
    }
    if (!kind)
        return;
    count_cell(t, n->nan);
    count_cell(t, n->infinite);
}

static void strings_cells(struct table *t, const struct inspected *i)
{
    table_cell(t, "-");
    table_cell(t, "-");
    table_cell(t, "length %zu", i->shortest);
    table_cell(t, "length %zu", i->longest);
    table_cell(t, "-");
    table_cell(t, "-");
}

static void put_row(struct inspect *x, const struct inspected *i)
{
    const struct source_tensor *tensor = i->tensor;
    struct buffer shape = BUFFER_EMPTY;
    struct table *t = &x->table;
    char size[HUMAN_TEXT_MAX];

    if (x->statistics && tensor->role == TENSOR_ROLE_BOOKKEEPING) {
        table_text(&x->bookkeeping, tensor->name, tensor->name_length);
        table_text(&x->bookkeeping, buffer_text(&i->value), i->value.length);
        return;
    }
    table_text(t, tensor->name, tensor->name_length);
    table_cell(t, "%s", tensor->type_name);
    command_shape(&shape, tensor->rank, tensor->shape);
    table_text(t, buffer_text(&shape), shape.length);
    t->cells.failed |= shape.failed;
    buffer_release(&shape);
    table_cell(t, "%s", human_bytes(tensor->bytes, size));
    if (x->statistics && tensor->type == TENSOR_STRING)
        strings_cells(t, i);
    else if (x->statistics)
        statistics_cells(t, tensor->type, &i->numbers);
    if (!x->sharded)
        return;
    if (tensor->slices)
        table_cell(t, "%zu slices", tensor->slices);
    else
        table_cell(t, "%d", (int)tensor->shard);
}

enum { BEFORE_STATISTICS = 4, STATISTICS = 6, COLUMNS = BEFORE_STATISTICS + STATISTICS + 1 };

/* On a narrow terminal the columns NaN and Inf are left out first if all are 0, and never otherwise. */
static size_t choose_columns(struct inspect *x, struct table_column *columns)
{
    static const struct table_column all[COLUMNS] = {
        { .title = "tensor", .cut = 24 },
        { .title = "dtype" },
        { .title = "shape", .cut = 12 },
        { .title = "size", .right = 1 },
        { .title = "mean", .right = 1, .leave_out = 2 },
        { .title = "std", .right = 1, .leave_out = 1 },
        { .title = "min", .right = 1, .leave_out = 3 },
        { .title = "max", .right = 1, .leave_out = 3 },
        { .title = "nan", .right = 1 },
        { .title = "inf", .right = 1 },
        { .title = "shard", .right = 1, .leave_out = 4 },
    };
    size_t count = 0;

    for (size_t i = 0; i < COLUMNS; i++)
        if (i < BEFORE_STATISTICS || (i < COLUMNS - 1 && x->statistics) || (i == COLUMNS - 1 && x->sharded))
            columns[count++] = all[i];
    return count;
}

static void print_tables(struct inspect *x, struct table_column *columns)
{
    for (size_t i = 0; i < x->table.column_count; i++) {
        columns[i].leave_out += !strcmp(columns[i].title, "nan") && !x->nan ? 6 : 0;
        columns[i].leave_out += !strcmp(columns[i].title, "inf") && !x->inf && !x->unread ? 5 : 0;
    }
    if (x->table.filled) {
        command_table(&x->table, &x->out);
        if (x->bookkeeping.filled)
            buffer_append_byte(&x->out.text, '\n');
    }
    if (x->bookkeeping.filled)
        command_table(&x->bookkeeping, &x->out);
}

/* ---- a checkpoint ------------------------------------------------------------------------------------------------ */

static void text_begin(struct inspect *x, const struct source *s)
{
    struct buffer *b = &x->out.text;

    text_append_safe(b, s->path, strlen(s->path));
    buffer_append_text(b, !s->safetensors ? ": TensorFlow checkpoint"
                          : s->shards > 1 ? ": safetensors in parts"
                                          : ": safetensors file");
    if (s->step >= 0)
        buffer_format(b, ", step %lld", (long long)s->step);
    buffer_append_byte(b, '\n');
}

static void text_end(struct inspect *x, const struct source *s)
{
    struct buffer *b = &x->out.text;
    char size[HUMAN_TEXT_MAX];

    if (x->values && x->count)
        buffer_append_byte(b, '\n');
    buffer_format(b, "total: %llu tensor%s, %llu value%s, %s", (unsigned long long)x->count, x->count == 1 ? "" : "s",
                  (unsigned long long)x->elements, x->elements == 1 ? "" : "s", human_bytes(x->bytes, size));
    if (s->shards > 1)
        buffer_format(b, " in %d shards", (int)s->shards);
    if (x->statistics && !x->values && !x->tree)
        buffer_format(b, ", %llu NaN, %llu Inf", (unsigned long long)x->nan, (unsigned long long)x->inf);
    if (x->unread)
        buffer_format(b, "; %llu tensor%s not read, of a type that is not known here", (unsigned long long)x->unread,
                      x->unread == 1 ? "" : "s");
    buffer_append_byte(b, '\n');
}

/* A tensor that cannot be read is reported on standard error, and the others follow. */
static void show_tensor(struct inspect *x, const struct source *s, const struct source_tensor *tensor)
{
    struct inspected t = { .tensor = tensor, .value = BUFFER_EMPTY };
    struct error e = { 0 };
    int rc = OK;

    if (x->values && !x->out.json)
        rc = inspect_values(x, s, tensor, &e);
    else if (x->statistics)
        rc = read_tensor(s, &t, &e);
    if (rc == OK && x->out.json)
        rc = inspect_json_tensor(x, s, &t, &e);
    else if (rc == OK && !x->values)
        put_row(x, &t);
    buffer_release(&t.value);
    if (rc != OK) {
        x->damaged = 1;
        output_fail(&x->out, &e);
        return;
    }
    x->count++;
    x->elements += tensor->elements;
    x->bytes += tensor->bytes;
    x->unread += x->statistics && tensor->type != TENSOR_STRING && !tensor_kind(tensor->type);
    x->nan += t.numbers.nan;
    x->inf += t.numbers.infinite;
}

/* The metadata of a safetensors file. */
static void put_metadata(struct inspect *x, const struct source *s)
{
    const struct safetensors_header *h = s->safetensors ? safetensors_contents(s->safetensors) : NULL;

    for (size_t i = 0; h && i < h->pair_count; i++)
        if (!source_is_hint(&h->pairs[i])) {
            table_text(&x->bookkeeping, h->pairs[i].key, h->pairs[i].key_length);
            table_text(&x->bookkeeping, h->pairs[i].value, h->pairs[i].value_length);
        }
}

static void show_tensors(struct inspect *x, const struct source *s, const struct source_tensor **wanted, size_t count)
{
    static const struct table_column bookkeeping[] = { { .title = "bookkeeping", .cut = 20 },
                                                       { .title = "value", .cut = 20 } };
    struct table_column columns[COLUMNS];

    x->sharded = s->shards > 1;
    for (size_t i = 0; i < count; i++)
        x->sharded |= wanted[i]->slices > 0;
    table_init(&x->table, columns, choose_columns(x, columns));
    table_init(&x->bookkeeping, bookkeeping, 2);
    if (!x->out.json && !x->values && !x->tensors.patterns.count)
        put_metadata(x, s);
    for (size_t i = 0; i < count; i++)
        show_tensor(x, s, wanted[i]);
    print_tables(x, columns);
}

static int show_checkpoint(struct inspect *x, const char *path, struct error *e)
{
    const struct source_tensor **wanted;
    struct source s;
    size_t count = 0;
    int rc = command_open(&s, path, !x->statistics, &x->out, e);

    if (rc != OK)
        return rc;
    if ((wanted = malloc((s.count + 1) * sizeof *wanted))) {
        for (size_t i = 0; i < s.count; i++)
            if (selection_wants(&x->tensors, s.tensors[i].name))
                wanted[count++] = &s.tensors[i];
        (x->out.json ? inspect_json_begin : text_begin)(x, &s);
        if (x->tree)
            rc = inspect_tree(x, wanted, count, e);
        else
            show_tensors(x, &s, wanted, count);
        if (x->out.json)
            inspect_json_end(x);
        else
            text_end(x, &s);
        free(wanted);
    } else {
        rc = error_memory(e, s.path, "to list its tensors");
    }
    source_close(&s);
    return rc;
}

/* What contradicts itself. */
static int check_options(const struct inspect *x, const struct options *o, struct error *e)
{
    if (x->all && (x->tensors.patterns.count || x->values || x->tree))
        return error_set(e, ERR_ARG,
                         "--all lists checkpoints, not tensors; omit it, or omit --tensor, --values and --tree");
    if (x->tree && x->out.json)
        return error_set(e, ERR_ARG, "--tree prints text, not JSON; omit --tree or the request for JSON");
    if (x->values && (x->tree || !x->statistics))
        return error_set(e, ERR_ARG, "--values cannot be combined with --tree or --no-statistics; omit one of them");
    if ((options_given(o, "limit") && !x->values) || (options_given(o, "depth") && !x->tree))
        return error_set(e, ERR_ARG, "--limit requires --values, and --depth requires --tree");
    return OK;
}

int command_inspect(int argc, char **argv)
{
    struct inspect x = { .statistics = 1, .depth = 64 };
    struct option table[] = {
        COMMAND_TENSOR_OPTION(x.tensors),
        { OPTION_FLAG, 0, "values", &x.values, .help = "Print the values of the tensors, as NumPy does" },
        { OPTION_INT, 0, "limit", &x.limit, "N",
          .help = "With --values, abbreviate tensors of more than N values (default 1000; 10000 with --tensor); in "
                  "JSON, omit their values",
          .minimum = 0, .maximum = 1e15 },
        { OPTION_FLAG, 0, "tree", &x.tree, .help = "Group the tensors by the scopes in their names" },
        { OPTION_INT, 0, "depth", &x.depth, "N", .help = "With --tree, show N levels of scopes (default: all)",
          .minimum = 1, .maximum = 64 },
        { OPTION_FLAG, 0, "statistics", &x.statistics,
          .help = "Read the values and print statistics (default); --no-statistics reads only the index" },
        { OPTION_FLAG, 0, "all", &x.all,
          .help = "List the checkpoints of a directory with step, size and age, and say what an incomplete one lacks" },
        OUTPUT_OPTIONS(x.out),
    };
    const struct options options = {
        .program = "checkpoint inspect",
        .usage = "[OPTION...] PREFIX|DIR|FILE",
        .summary = "Show the tensors of a checkpoint, or of the newest complete checkpoint in a directory, with the "
                   "mean, standard deviation (of the population), minimum and maximum of their finite values, and the "
                   "number of NaN and infinite values. For complex values, magnitudes are used. Tensors are read in "
                   "pieces and may be larger than memory. Status 1: a tensor is damaged, or --tensor matched nothing; "
                   "2: usage, or no such checkpoint.",
        .examples = "  checkpoint inspect ckpt --tensor 'conv1/*'\n"
                    "  checkpoint inspect ckpt --tensor conv1/biases --values\n"
                    "  checkpoint inspect ckpt --tree --depth 1\n"
                    "  checkpoint inspect ckpt --all\n"
                    "  checkpoint inspect ckpt/model.ckpt-700 --json | jq '.tensors[] | select(.nan > 0)'\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 1,
        .most = 1,
        .wanted = "name one checkpoint;",
    };
    struct error e = { 0 };
    int count = 0, status, rc = options_parse(&options, argc, argv, &count, &e);

    x.out.program = options.program;
    if (rc == OPTIONS_DONE)
        return EXIT_DONE;
    if (rc == OK && (rc = output_open(&x.out, &e)) == OK && (rc = check_options(&x, &options, &e)) == OK) {
        if (!options_given(&options, "limit"))
            x.limit = x.tensors.patterns.count ? 10000 : 1000;
        rc = x.all ? inspect_directory(&x, argv[1], &e) : show_checkpoint(&x, argv[1], &e);
    }
    status = rc != OK ? output_fail(&x.out, &e) : x.damaged ? EXIT_NO : EXIT_DONE;
    return output_close(&x.out, x.all ? status : command_selected(&x.tensors, &x.out, status));
}
