/* checkpoint inspect: what is in a checkpoint, or which checkpoints are in a directory. */
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "checkpoint/checkpoint_directory.h"
#include "checkpoint/tensor_value.h"
#include "checkpoint/tool/command.h"
#include "checkpoint/tool/source.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct inspect {
    struct output out;
    struct option_list tensors;
    int statistics, all;
    int first;           /* of JSON's list */
    struct columns columns;
    uint64_t count, elements, bytes, nan, infinite;
    int damaged;
};

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
        const char *const names[] = { "mean", "deviation" };
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

static void number_cell(struct columns *c, double v, int there)
{
    char text[32] = "-";

    if (there)
        snprintf(text, sizeof text, "%.6g", v);
    columns_cell(c, text);
}

static void count_cell(struct columns *c, uint64_t v)
{
    char text[32];

    snprintf(text, sizeof text, "%llu", (unsigned long long)v);
    columns_cell(c, text);
}

static void put_row(struct inspect *x, const struct source_tensor *tensor, const struct tensor_statistics *n,
                    const struct strings *strings)
{
    enum tensor_kind kind = tensor_kind(tensor->type);
    struct columns *c = &x->columns;
    char bound[NUMBER_TEXT_MAX];

    buffer_clear(&x->out.text);
    text_append_safe(&x->out.text, tensor->name, tensor->name_length);
    columns_cell(c, buffer_text(&x->out.text));
    columns_cell(c, tensor->type_name);
    buffer_clear(&x->out.text);
    command_shape(&x->out.text, tensor->rank, tensor->shape);
    columns_cell(c, buffer_text(&x->out.text));
    buffer_clear(&x->out.text);
    if (tensor->slices)
        buffer_format(&x->out.text, "%zu slices", tensor->slices);
    else
        buffer_format(&x->out.text, "%d", (int)tensor->shard);
    columns_cell(c, buffer_text(&x->out.text));
    buffer_clear(&x->out.text);
    count_cell(c, tensor->bytes);
    if (!x->statistics)
        return;
    if (strings) {
        columns_cell(c, "-");
        columns_cell(c, "-");
        for (int most = 0; most < 2; most++) {
            buffer_format(&x->out.text, "length %zu", most ? strings->longest : strings->shortest);
            columns_cell(c, buffer_text(&x->out.text));
            buffer_clear(&x->out.text);
        }
        columns_cell(c, "-");
        columns_cell(c, "-");
        return;
    }
    number_cell(c, n->mean, n->finite > 0);
    number_cell(c, tensor_statistics_deviation(n), n->finite > 0);
    for (int most = 0; most < 2; most++) {
        bound_text(tensor->type, n, most, bound);
        if (kind == TENSOR_KIND_FLOAT || kind == TENSOR_KIND_COMPLEX)
            number_cell(c, most ? n->most : n->least, n->finite > 0);
        else
            columns_cell(c, n->finite ? bound : "-");
    }
    count_cell(c, n->nan);
    count_cell(c, n->infinite);
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
    x->infinite += n.infinite;
    if (x->out.json)
        put_json(x, tensor, x->statistics && tensor_kind(tensor->type) ? &n : NULL, is_strings ? &strings : NULL);
    else
        put_row(x, tensor, &n, is_strings ? &strings : NULL);
}

static int show_checkpoint(struct inspect *x, const char *path, struct error *e)
{
    static const char *const titles[] = { "tensor", "dtype", "shape", "shard", "bytes", "mean", "deviation", "min",
                                          "max", "nan", "inf" };
    struct source s;
    int rc = source_open(&s, path, e);

    if (rc != OK)
        return rc;
    if (x->out.json) {
        buffer_append_text(&x->out.text, "{\"type\":\"inspect\",\"version\":1,\"path\":");
        json_text(&x->out.text, s.path);
        buffer_format(&x->out.text, ",\"format\":\"%s\",\"step\":", s.format);
        buffer_format(&x->out.text, s.step < 0 ? "null" : "%lld", (long long)s.step);
        buffer_format(&x->out.text, ",\"shards\":%d,\"tensors\":[", (int)s.shards);
        output_put(&x->out);
        x->first = 1;
    } else {
        x->columns = (struct columns){ .count = x->statistics ? 11 : 5, .right = 0x7f0 };
        text_append_safe(&x->out.text, s.path, strlen(s.path));
        buffer_format(&x->out.text, ": %s", s.format);
        if (s.step >= 0)
            buffer_format(&x->out.text, ", step %lld", (long long)s.step);
        buffer_append_text(&x->out.text, "\n");
        output_put(&x->out);
        for (size_t i = 0; i < x->columns.count; i++)
            columns_cell(&x->columns, titles[i]);
    }
    for (size_t i = 0; i < s.count; i++)
        if (command_wanted(&x->tensors, s.tensors[i].name))
            show_tensor(x, &s, &s.tensors[i]);
    if (x->out.json)
        buffer_format(&x->out.text, "\n],\"total\":{\"tensors\":%llu,\"elements\":%llu,\"bytes\":%llu,\"nan\":%llu,"
                      "\"inf\":%llu}}\n", (unsigned long long)x->count, (unsigned long long)x->elements,
                      (unsigned long long)x->bytes, (unsigned long long)x->nan, (unsigned long long)x->infinite);
    else {
        columns_print(&x->columns, &x->out);
        buffer_format(&x->out.text, "total: %llu tensors, %llu elements, %llu bytes in %d shard%s", (unsigned long long)
                      x->count, (unsigned long long)x->elements, (unsigned long long)x->bytes, (int)s.shards,
                      s.shards == 1 ? "" : "s");
        if (x->statistics)
            buffer_format(&x->out.text, ", %llu NaN, %llu Inf", (unsigned long long)x->nan,
                          (unsigned long long)x->infinite);
        buffer_append_text(&x->out.text, "\n");
    }
    output_put(&x->out);
    source_close(&s);
    return OK;
}

/* ---- a directory ----------------------------------------------------------------------------------------------- */

struct file {
    char *name;
    uint64_t size;
    double written;
};

struct files { /* of the directory, in order of their names: read once, however many checkpoints there are */
    struct file *items;
    size_t count, room;
};

static int compare_files(const void *a, const void *b)
{
    return strcmp(((const struct file *)a)->name, ((const struct file *)b)->name);
}

static void files_release(struct files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->items[i].name);
    free(files->items);
}

static int files_add(struct files *files, const char *name, const struct stat *st)
{
    if (files->count == files->room) {
        size_t room = files->room ? 2 * files->room : 64;
        struct file *items = realloc(files->items, room * sizeof *items);

        if (!items)
            return ERR_NOMEM;
        files->items = items;
        files->room = room;
    }
    files->items[files->count] = (struct file){
        strdup(name), (uint64_t)st->st_size, (double)st->st_mtim.tv_sec + (double)st->st_mtim.tv_nsec * 1e-9
    };
    if (!files->items[files->count].name)
        return ERR_NOMEM;
    files->count++;
    return OK;
}

static int files_read(struct files *files, const char *directory, struct error *e)
{
    DIR *d = opendir(directory);
    struct dirent *entry;
    struct stat st;
    int rc = OK;

    if (!d)
        return error_system(e, "%s: cannot open the directory", directory);
    while (rc == OK && (entry = readdir(d)))
        if (fstatat(dirfd(d), entry->d_name, &st, 0) == 0)
            rc = files_add(files, entry->d_name, &st);
    closedir(d);
    if (rc != OK)
        return error_set(e, rc, "%s: no memory to list it", directory);
    if (files->count)
        qsort(files->items, files->count, sizeof *files->items, compare_files);
    return OK;
}

/* Bytes of NAME.index and all NAME.data-*, and when the index was written. */
static uint64_t files_size(const struct files *files, const char *name, double *written)
{
    size_t low = 0, high = files->count, length = strlen(name);
    uint64_t size = 0;

    while (low < high) { /* the first one that is not before NAME */
        size_t middle = low + (high - low) / 2;

        if (strcmp(files->items[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < files->count && strncmp(files->items[low].name, name, length) == 0; low++) {
        const char *rest = files->items[low].name + length;

        if (strcmp(rest, ".index") == 0)
            *written = files->items[low].written;
        else if (strncmp(rest, ".data-", 6) != 0 || checkpoint_name_temporary(rest))
            continue;
        size += files->items[low].size;
    }
    return size;
}

static void age_text(double seconds, char *out, size_t size)
{
    if (seconds < 120)
        snprintf(out, size, "%.0f s", seconds < 0 ? 0 : seconds);
    else if (seconds < 7200)
        snprintf(out, size, "%.0f min", seconds / 60);
    else if (seconds < 172800)
        snprintf(out, size, "%.0f h", seconds / 3600);
    else
        snprintf(out, size, "%.0f days", seconds / 86400);
}

static void show_listed(struct inspect *x, const struct files *files, const struct checkpoint_name *item, int whole,
                        const struct error *why, double now)
{
    struct buffer *b = &x->out.text;
    double written = now;
    uint64_t size = files_size(files, item->name, &written);
    char age[32], step[32] = "-";

    if (x->out.json) {
        buffer_append_text(b, x->first ? "\n{\"name\":" : ",\n{\"name\":");
        x->first = 0;
        json_text(b, item->name);
        buffer_format(b, item->step < 0 ? ",\"step\":null" : ",\"step\":%lld", (long long)item->step);
        buffer_format(b, ",\"whole\":%s,\"bytes\":%llu,\"age\":", whole ? "true" : "false", (unsigned long long)size);
        json_double(b, now - written);
        if (!whole) {
            buffer_append_text(b, ",\"why\":");
            json_text(b, why->message);
        }
        buffer_append_byte(b, '}');
        output_put(&x->out);
        return;
    }
    text_append_safe(b, item->name, strlen(item->name));
    columns_cell(&x->columns, buffer_text(b));
    buffer_clear(b);
    if (item->step >= 0)
        snprintf(step, sizeof step, "%lld", (long long)item->step);
    columns_cell(&x->columns, step);
    count_cell(&x->columns, size);
    age_text(now - written, age, sizeof age);
    columns_cell(&x->columns, age);
    columns_cell(&x->columns, whole ? "whole" : why->message);
}

static int show_directory(struct inspect *x, const char *directory, struct error *e)
{
    static const char *const titles[] = { "checkpoint", "step", "bytes", "age", "state" };
    struct checkpoint_list list = { NULL, 0 };
    struct files files = { NULL, 0, 0 };
    char prefix[PATH_MAX];
    size_t whole = 0;
    int rc;

    if ((rc = checkpoint_directory_list(directory, &list, e)) != OK || (rc = files_read(&files, directory, e)) != OK) {
        checkpoint_list_release(&list);
        files_release(&files);
        return rc;
    }
    x->first = 1;
    x->columns = (struct columns){ .count = 5, .right = 0xe };
    if (x->out.json) {
        buffer_append_text(&x->out.text, "{\"type\":\"checkpoints\",\"version\":1,\"directory\":");
        json_text(&x->out.text, directory);
        buffer_append_text(&x->out.text, ",\"checkpoints\":[");
    }
    for (size_t i = 0; i < 5 && !x->out.json; i++)
        columns_cell(&x->columns, titles[i]);
    for (size_t i = 0; i < list.count; i++) {
        struct error why = { .code = OK };
        int is_whole = file_join(prefix, sizeof prefix, directory, list.items[i].name, &why) == OK &&
                       checkpoint_complete(prefix, &why);

        whole += (size_t)is_whole;
        show_listed(x, &files, &list.items[i], is_whole, &why, clock_wall());
    }
    if (x->out.json) {
        buffer_append_text(&x->out.text, "\n]}\n");
    } else {
        columns_print(&x->columns, &x->out);
        buffer_format(&x->out.text, "total: %zu checkpoints, %zu of them whole\n", list.count, whole);
    }
    output_put(&x->out);
    checkpoint_list_release(&list);
    files_release(&files);
    return OK;
}

int command_inspect(int argc, char **argv)
{
    struct inspect x = { .statistics = 1 };
    struct option table[] = {
        { OPTION_LIST, 0, "tensor", &x.tensors, "GLOB", .help = "only tensors that match ('*' matches '/' too); may be "
          "repeated" },
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
    int count = 0, rc = options_parse(&options, argc, argv, &count, &e);

    x.out.program = options.program;
    if (rc == OPTIONS_DONE)
        return EXIT_DONE;
    if (rc == OK && (rc = output_open(&x.out, &e)) == OK)
        rc = x.all ? show_directory(&x, argv[1], &e) : show_checkpoint(&x, argv[1], &e);
    return output_close(&x.out, rc != OK ? output_fail(&x.out, &e) : x.damaged ? EXIT_NO : EXIT_DONE);
}
