/* checkpoint compare: two checkpoints, tensor by tensor. */
#include "base/bytes.h"
#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "checkpoint/tensor_value.h"
#include "checkpoint/tool/command.h"
#include "checkpoint/tool/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 18, SHOWN = 60 }; /* bytes read at once; of a string that are shown */

enum verdict { SAME, WITHIN, DIFFER, DTYPE, SHAPE, ONLY_A, ONLY_B, VERDICTS };

struct compare {
    struct output out;
    struct selection tensors;
    double relative, absolute;
    int every;
    struct source a, b;
    int first;          /* of JSON's list */
    uint64_t counts[VERDICTS];
};

struct finding {
    enum verdict verdict;
    struct tensor_difference difference;
    char value_a[TENSOR_VALUE_TEXT * 4], value_b[TENSOR_VALUE_TEXT * 4]; /* of the first differing element */
    int numbers;        /* absolute and relative differences mean something */
};

/* ---- one tensor of both ---------------------------------------------------------------------------------------- */

static int compare_pieces(const struct compare *x, const struct source_tensor *a, const struct source_tensor *b,
                          struct finding *f, struct error *e)
{
    struct source_stream one = { 0 }, two = { 0 };
    size_t size = tensor_kind(a->type) ? tensor_type_size(a->type) : 1, got, other;
    char *pieces = malloc(2 * PIECE);
    int rc;

    if (!pieces)
        return error_set(e, ERR_NOMEM, "no memory to compare tensor %s", a->name);
    if ((rc = source_stream_open(&one, &x->a, a, e)) == OK && (rc = source_stream_open(&two, &x->b, b, e)) == OK) {
        while ((rc = source_stream_read(&one, pieces, PIECE, &got, e)) == OK &&
               (rc = source_stream_read(&two, pieces + PIECE, PIECE, &other, e)) == OK && (got || other)) {
            size_t both = got < other ? got : other;

            tensor_difference_add(&f->difference, a->type, pieces, pieces + PIECE, both / size);
            if (got != other) { /* variants of other lengths */
                f->difference.different++;
                f->difference.outside++;
            }
        }
    }
    source_stream_close(&one);
    source_stream_close(&two);
    free(pieces);
    if (rc != OK)
        return rc;
    f->numbers = tensor_kind(a->type) != TENSOR_KIND_NONE;
    if (f->difference.different) {
        tensor_value_text(a->type, f->difference.a, f->value_a);
        tensor_value_text(a->type, f->difference.b, f->value_b);
    }
    return OK;
}

static void string_text(const struct tensor_string *s, char *out, size_t size)
{
    struct buffer text = BUFFER_EMPTY;

    text_append_safe(&text, s->bytes, s->length < SHOWN ? s->length : SHOWN);
    snprintf(out, size, "\"%s\"%s", buffer_text(&text), s->length > SHOWN ? "..." : "");
    buffer_release(&text);
}

static int compare_strings(const struct compare *x, const struct source_tensor *a, const struct source_tensor *b,
                           struct finding *f, struct error *e)
{
    struct tensor_string *items = NULL, *others = NULL;
    char *one = NULL, *two = NULL;
    int rc;

    if ((rc = source_strings(&x->a, a, &one, &items, e)) == OK)
        rc = source_strings(&x->b, b, &two, &others, e);
    for (size_t i = 0; i < a->elements && rc == OK; i++) {
        if (items[i].length == others[i].length && memcmp(items[i].bytes, others[i].bytes, items[i].length) == 0)
            continue;
        if (!f->difference.different) {
            f->difference.first = i;
            string_text(&items[i], f->value_a, sizeof f->value_a);
            string_text(&others[i], f->value_b, sizeof f->value_b);
        }
        f->difference.different++;
        f->difference.outside++;
    }
    free(items);
    free(others);
    free(one);
    free(two);
    return rc;
}

static int compare_tensors(const struct compare *x, const struct source_tensor *a, const struct source_tensor *b,
                           struct finding *f, struct error *e)
{
    int rc;

    f->difference.absolute_tolerance = x->absolute;
    f->difference.relative_tolerance = x->relative;
    if (strcmp(a->type_name, b->type_name) != 0) {
        f->verdict = DTYPE;
        return OK;
    }
    if (a->rank != b->rank || (a->rank && memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) != 0)) {
        f->verdict = SHAPE;
        return OK;
    }
    rc = a->type == TENSOR_STRING && !a->slices && !b->slices ? compare_strings(x, a, b, f, e)
                                                              : compare_pieces(x, a, b, f, e);
    f->verdict = f->difference.outside ? DIFFER : f->difference.different ? WITHIN : SAME;
    return rc;
}

/* ---- printing -------------------------------------------------------------------------------------------------- */

static void json_side(struct buffer *b, const char *side, const struct source_tensor *tensor)
{
    buffer_format(b, ",\"%s\":{\"dtype\":\"%s\",\"shape\":", side, tensor->type_name);
    command_shape(b, tensor->rank, tensor->shape);
    buffer_append_byte(b, '}');
}

static void put_json(struct compare *x, const struct source_tensor *a, const struct source_tensor *b,
                     const struct finding *f)
{
    static const char *const words[] = { "same", "within", "differ", "dtype", "shape", "only_a", "only_b" };
    const struct source_tensor *any = a ? a : b;
    const struct tensor_difference *d = &f->difference;
    struct buffer *t = &x->out.text;

    buffer_append_text(t, x->first ? "\n{\"name\":" : ",\n{\"name\":");
    x->first = 0;
    json_span(t, any->name, any->name_length, 0);
    buffer_format(t, ",\"result\":\"%s\"", words[f->verdict]);
    if (a)
        json_side(t, "a", a);
    if (b)
        json_side(t, "b", b);
    if (f->verdict <= DIFFER) {
        buffer_format(t, ",\"different\":%llu,\"outside\":%llu", (unsigned long long)d->different,
                      (unsigned long long)d->outside);
        if (f->numbers) {
            buffer_append_text(t, ",\"absolute\":");
            json_double(t, d->absolute);
            buffer_append_text(t, ",\"relative\":");
            json_double(t, d->relative);
        }
        if (d->different) {
            buffer_format(t, ",\"first\":{\"index\":%llu,\"a\":", (unsigned long long)d->first);
            json_text(t, f->value_a);
            buffer_append_text(t, ",\"b\":");
            json_text(t, f->value_b);
            buffer_append_byte(t, '}');
        }
    }
    buffer_append_byte(t, '}');
    output_put(&x->out);
}

static void put_place(struct buffer *t, uint64_t index, const struct source_tensor *tensor)
{
    uint64_t left = tensor->elements;

    buffer_format(t, "%llu", (unsigned long long)index);
    if (tensor->rank < 2 || !left)
        return;
    buffer_append_text(t, " [");
    for (int d = 0; d < tensor->rank; d++) {
        left /= (uint64_t)tensor->shape[d];
        buffer_format(t, d ? ", %llu" : "%llu", (unsigned long long)(index / left));
        index %= left;
    }
    buffer_append_byte(t, ']');
}

static void put_text(struct compare *x, const struct source_tensor *a, const struct source_tensor *b,
                     const struct finding *f)
{
    const struct source_tensor *any = a ? a : b;
    const struct tensor_difference *d = &f->difference;
    char absolute[NUMBER_TEXT_MAX], relative[NUMBER_TEXT_MAX];
    struct buffer *t = &x->out.text;

    if (f->verdict == SAME && !x->every)
        return;
    text_append_safe(t, any->name, any->name_length);
    if (f->verdict == ONLY_A || f->verdict == ONLY_B) {
        buffer_format(t, ": only in %s, %s ", f->verdict == ONLY_A ? "A" : "B", any->type_name);
        command_shape(t, any->rank, any->shape);
    } else if (f->verdict == DTYPE) {
        buffer_format(t, ": dtype %s in A, %s in B", a->type_name, b->type_name);
    } else if (f->verdict == SHAPE) {
        buffer_append_text(t, ": shape ");
        command_shape(t, a->rank, a->shape);
        buffer_append_text(t, " in A, ");
        command_shape(t, b->rank, b->shape);
        buffer_append_text(t, " in B");
    } else if (f->verdict == SAME) {
        buffer_append_text(t, ": the same");
    } else {
        buffer_format(t, ": %llu of %llu elements differ", (unsigned long long)d->different,
                      (unsigned long long)any->elements);
        if (f->verdict == WITHIN)
            buffer_append_text(t, " within tolerance");
        else if (d->outside != d->different)
            buffer_format(t, ", %llu beyond tolerance", (unsigned long long)d->outside);
        if (f->numbers) {
            number_text(d->absolute, absolute);
            snprintf(relative, sizeof relative, "%.3g", d->relative);
            buffer_format(t, ", largest difference %s absolute, %s relative", absolute, relative);
        }
        buffer_append_text(t, "; first at ");
        put_place(t, d->first, any);
        buffer_format(t, ": %s and %s", f->value_a, f->value_b);
    }
    buffer_append_text(t, "\n");
    output_put(&x->out);
}

static int compare_one(struct compare *x, const struct source_tensor *a, const struct source_tensor *b,
                       struct error *e)
{
    struct finding f = { .verdict = a ? ONLY_A : ONLY_B };
    int rc;

    if (!selection_wants(&x->tensors, a ? a->name : b->name))
        return OK;
    if (a && b && (rc = compare_tensors(x, a, b, &f, e)) != OK)
        return rc;
    x->counts[f.verdict]++;
    if (x->out.json)
        put_json(x, a, b, &f);
    else
        put_text(x, a, b, &f);
    return OK;
}

/* Nothing is equal where --tensor left nothing to compare. */
static int equal(const struct compare *x)
{
    return !x->counts[DIFFER] && !x->counts[DTYPE] && !x->counts[SHAPE] && !x->counts[ONLY_A] && !x->counts[ONLY_B] &&
           (x->counts[SAME] || x->counts[WITHIN] || !x->tensors.patterns.count);
}

static int compare_all(struct compare *x, struct error *e)
{
    size_t i = 0, k = 0;
    int rc = OK;

    if (x->out.json) {
        buffer_append_text(&x->out.text, "{\"type\":\"compare\",\"version\":1,\"a\":");
        json_text(&x->out.text, x->a.path);
        buffer_append_text(&x->out.text, ",\"b\":");
        json_text(&x->out.text, x->b.path);
        buffer_append_text(&x->out.text, ",\"tensors\":[");
        x->first = 1;
    }
    while (rc == OK && (i < x->a.count || k < x->b.count)) {
        const struct source_tensor *a = i < x->a.count ? &x->a.tensors[i] : NULL;
        const struct source_tensor *b = k < x->b.count ? &x->b.tensors[k] : NULL;
        int order = !a ? 1 : !b ? -1 : bytes_compare(a->name, a->name_length, b->name, b->name_length);

        i += order <= 0;
        k += order >= 0;
        rc = compare_one(x, order <= 0 ? a : NULL, order >= 0 ? b : NULL, e);
    }
    if (rc != OK)
        return rc;
    buffer_format(&x->out.text, x->out.json ?
                  "\n],\"total\":{\"same\":%llu,\"within\":%llu,\"differ\":%llu,\"dtype\":%llu,"
                  "\"shape\":%llu,\"only_a\":%llu,\"only_b\":%llu}" : "total: %llu the same, %llu within tolerance, "
                  "%llu differ, %llu of other dtype, %llu of other shape, %llu only in A, %llu only in B",
                  (unsigned long long)x->counts[SAME], (unsigned long long)x->counts[WITHIN],
                  (unsigned long long)x->counts[DIFFER], (unsigned long long)x->counts[DTYPE],
                  (unsigned long long)x->counts[SHAPE], (unsigned long long)x->counts[ONLY_A],
                  (unsigned long long)x->counts[ONLY_B]);
    if (x->out.json)
        buffer_format(&x->out.text, ",\"equal\":%s}", equal(x) ? "true" : "false");
    buffer_append_text(&x->out.text, "\n");
    output_put(&x->out);
    return OK;
}

int command_compare(int argc, char **argv)
{
    struct compare x = { .every = 0 };
    struct option table[] = {
        { OPTION_DOUBLE, 0, "tolerance", &x.relative, "X", .help = "relative: elements may be X times the larger of "
          "their magnitudes apart (default 0)", .minimum = 0, .maximum = 1e308 },
        { OPTION_DOUBLE, 0, "absolute", &x.absolute, "X", .help = "elements may be X apart, added to --tolerance "
          "(default 0)", .minimum = 0, .maximum = 1e308 },
        COMMAND_TENSOR_OPTION(x.tensors),
        { OPTION_FLAG, 0, "all", &x.every, .help = "also a line for each tensor that is the same" },
        OUTPUT_OPTIONS(x.out),
    };
    const struct options options = {
        .program = "checkpoint compare", .usage = "[OPTION...] A B",
        .summary = "Compares two checkpoints: names on one side only, other dtypes or shapes, and for each tensor the "
                   "largest absolute and relative difference and the first element that differs, with both values. "
                   "NaN equals NaN, and 0 equals -0. A directory means its newest checkpoint; a bundle and a "
                   "safetensors file can be compared. Status 0: the same "
                   "within tolerance; 1: they differ; 2: usage, or one cannot be read.",
        .examples = "  checkpoint compare mpi/model.ckpt-700 ps/model.ckpt-700\n"
                    "  checkpoint compare a b --tolerance 1e-5 --absolute 1e-8 --tensor '*/weights'\n",
        .table = table, .count = sizeof table / sizeof *table,
        .least = 2, .most = 2, .wanted = "two checkpoints are compared;",
    };
    struct error e = { .code = OK };
    int count = 0, status, rc = options_parse(&options, argc, argv, &count, &e);

    x.out.program = options.program;
    if (rc == OPTIONS_DONE)
        return EXIT_DONE;
    if (rc == OK && (rc = output_open(&x.out, &e)) == OK && (rc = source_open(&x.a, argv[1], 0, &e)) == OK &&
        (rc = source_open(&x.b, argv[2], 0, &e)) == OK)
        rc = compare_all(&x, &e);
    status = rc != OK ? output_fail(&x.out, &e) : equal(&x) ? EXIT_DONE : EXIT_NO;
    status = output_close(&x.out, command_selected(&x.tensors, &x.out, status));
    source_close(&x.a);
    source_close(&x.b);
    return status;
}
