/* checkpoint compare: compares two checkpoints tensor by tensor. */
#include "checkpoint/tool/compare.h"

#include "base/bytes.h"
#include "base/text.h"
#include "checkpoint/tool/command.h"
#include "checkpoint/tool/short_value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 18, SHOWN = 60 }; /* bytes read at once; of a string that are shown */

/* ---- what it comes to -------------------------------------------------------------------------------------------- */

uint64_t tally_tensors(const struct tally *t)
{
    uint64_t sum = 0;

    for (int i = 0; i < VERDICTS; i++)
        sum += t->verdicts[i];
    return sum;
}

uint64_t tally_unequal(const struct tally *t)
{
    return tally_tensors(t) - t->verdicts[SAME] - t->verdicts[WITHIN];
}

static void tally_add(struct tally *t, const struct tally *more)
{
    for (int i = 0; i < VERDICTS; i++)
        t->verdicts[i] += more->verdicts[i];
    t->values += more->values;
    t->different += more->different;
    t->other_bits += more->other_bits;
    t->squares += more->squares;
    t->squares_a += more->squares_a;
    t->squares_b += more->squares_b;
}

int compare_decisive(const struct compare *x, struct tally *out)
{
    *out = (struct tally){ .values = 0 };
    for (int role = 0; role < TENSOR_ROLES; role++)
        if (role != TENSOR_ROLE_BOOKKEEPING)
            tally_add(out, &x->tallies[role]);
    if (tally_tensors(out))
        return 0;
    *out = x->tallies[TENSOR_ROLE_BOOKKEEPING];
    return 1;
}

int compare_equal(const struct compare *x)
{
    struct tally all;

    compare_decisive(x, &all);
    return !tally_unequal(&all) && (tally_tensors(&all) || !x->tensors.patterns.count);
}

double tally_norm(const struct tally *t)
{
    return sqrt(t->squares);
}

double tally_relative_norm(const struct tally *t)
{
    double larger = sqrt(fmax(t->squares_a, t->squares_b));

    return t->squares == 0 ? 0 : larger == 0 ? INFINITY : tally_norm(t) / larger;
}

/* ---- one tensor of both ------------------------------------------------------------------------------------------ */

static void value_text(int type, const unsigned char *bytes, struct buffer *out)
{
    char text[TENSOR_VALUE_TEXT];

    tensor_value_text(type, bytes, text);
    buffer_append_text(out, text);
}

static int compare_pieces(const struct compare *x, struct finding *f, struct error *e)
{
    struct source_stream one = { 0 }, two = { 0 };
    size_t size = tensor_kind(f->a->type) ? tensor_type_size(f->a->type) : 1, got, other;
    char *pieces = malloc(2 * PIECE);
    int rc;

    if (!pieces)
        return error_memory(e, NULL, "to compare tensor %s", f->a->name);
    if ((rc = source_stream_open(&one, &x->a, f->a, e)) == OK &&
        (rc = source_stream_open(&two, &x->b, f->b, e)) == OK) {
        while ((rc = source_stream_read(&one, pieces, PIECE, &got, e)) == OK &&
               (rc = source_stream_read(&two, pieces + PIECE, PIECE, &other, e)) == OK && (got || other)) {
            size_t both = got < other ? got : other;

            tensor_difference_add(&f->difference, f->a->type, pieces, pieces + PIECE, both / size);
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
    f->numbers = tensor_kind(f->a->type) != TENSOR_KIND_NONE;
    if (f->difference.different) {
        value_text(f->a->type, f->difference.a, &f->value_a);
        value_text(f->a->type, f->difference.b, &f->value_b);
    }
    return OK;
}

static void string_text(const struct tensor_string *s, struct buffer *out)
{
    buffer_append_byte(out, '"');
    text_append_safe(out, s->bytes, s->length < SHOWN ? s->length : SHOWN);
    buffer_append_text(out, s->length > SHOWN ? "\"..." : "\"");
}

static int compare_strings(const struct compare *x, struct finding *f, struct error *e)
{
    struct tensor_string *items = NULL, *others = NULL;
    int rc;

    if ((rc = source_strings(&x->a, f->a, &items, e)) == OK)
        rc = source_strings(&x->b, f->b, &others, e);
    for (size_t i = 0; i < f->a->elements && rc == OK; i++) {
        if (items[i].length == others[i].length && memcmp(items[i].bytes, others[i].bytes, items[i].length) == 0)
            continue;
        if (!f->difference.different) {
            f->difference.first = i;
            string_text(&items[i], &f->value_a);
            string_text(&others[i], &f->value_b);
        }
        f->difference.different++;
        f->difference.outside++;
    }
    free(items);
    free(others);
    return rc;
}

static int compare_tensors(const struct compare *x, struct finding *f, struct error *e)
{
    const struct source_tensor *a = f->a, *b = f->b;
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
    rc = a->type == TENSOR_STRING && !a->slices && !b->slices ? compare_strings(x, f, e) : compare_pieces(x, f, e);
    f->verdict = f->difference.outside ? DIFFER : f->difference.different ? WITHIN : SAME;
    return rc;
}

/* For bookkeeping the values are printed, whatever their types and shapes. */
static int bookkeeping_values(const struct compare *x, struct finding *f, struct error *e)
{
    int rc = OK;

    buffer_clear(&f->value_a);
    buffer_clear(&f->value_b);
    if (f->a)
        rc = short_value(&x->a, f->a, &f->value_a, e);
    if (f->b && rc == OK)
        rc = short_value(&x->b, f->b, &f->value_b, e);
    return rc;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static void count(struct compare *x, const struct finding *f)
{
    struct tally *t = &x->tallies[(f->a ? f->a : f->b)->role];

    t->verdicts[f->verdict]++;
    if (f->verdict > DIFFER)
        return;
    t->values += f->a->elements;
    t->different += f->difference.different;
    t->other_bits += f->difference.other_bits;
    t->squares += f->difference.squares;
    t->squares_a += f->difference.squares_a;
    t->squares_b += f->difference.squares_b;
}

static int compare_one(struct compare *x, const struct source_tensor *a, const struct source_tensor *b, struct error *e)
{
    struct finding f = { .a = a, .b = b, .verdict = a ? ONLY_A : ONLY_B };
    int rc = OK;

    if (!selection_wants(&x->tensors, a ? a->name : b->name))
        return OK;
    if (a && b)
        rc = compare_tensors(x, &f, e);
    if (rc == OK && (a ? a : b)->role == TENSOR_ROLE_BOOKKEEPING)
        rc = bookkeeping_values(x, &f, e);
    if (rc == OK) {
        count(x, &f);
        compare_print_finding(x, &f);
    }
    buffer_release(&f.value_a);
    buffer_release(&f.value_b);
    return rc;
}

static int compare_all(struct compare *x, struct error *e)
{
    size_t i = 0, k = 0;
    int rc = OK;

    compare_print_begin(x);
    while (rc == OK && (i < x->a.count || k < x->b.count)) {
        const struct source_tensor *a = i < x->a.count ? &x->a.tensors[i] : NULL;
        const struct source_tensor *b = k < x->b.count ? &x->b.tensors[k] : NULL;
        int order = !a ? 1 : !b ? -1 : bytes_compare(a->name, a->name_length, b->name, b->name_length);

        i += order <= 0;
        k += order >= 0;
        rc = compare_one(x, order <= 0 ? a : NULL, order >= 0 ? b : NULL, e);
    }
    if (rc == OK)
        compare_print_end(x);
    return rc;
}

int command_compare(int argc, char **argv)
{
    struct compare x = { .every = 0 };
    struct option table[] = {
        { OPTION_DOUBLE, 0, "tolerance", &x.relative, "X",
          .help = "Accept elements that differ by up to X times the larger of their magnitudes (default 0)",
          .minimum = 0, .maximum = 1e308 },
        { OPTION_DOUBLE, 0, "absolute", &x.absolute, "X",
          .help = "Accept elements that differ by up to X more than --tolerance accepts (default 0)", .minimum = 0,
          .maximum = 1e308 },
        COMMAND_TENSOR_OPTION(x.tensors),
        { OPTION_FLAG, 0, "all", &x.every, .help = "List equal tensors as well" },
        OUTPUT_OPTIONS(x.out),
    };
    const struct options options = {
        .program = "checkpoint compare",
        .usage = "[OPTION...] A B",
        .summary =
            "Compare two checkpoints tensor by tensor. List tensors that only one of them has, or whose dtype or shape "
            "differs; for each tensor whose values differ, print the largest absolute and relative difference and the "
            "first element that differs; for all of them, print the norm of the difference. NaN equals NaN, and 0 "
            "equals -0. Bookkeeping (evalboard/*, global_step and other counters) is listed separately and does not "
            "make checkpoints different. A and B may have different formats. Status 0: equal within tolerance; 1: "
            "different, or --tensor matched nothing; 2: usage, or a checkpoint cannot be read.",
        .examples = "  checkpoint compare mpi/model.ckpt-700 ps/model.ckpt-700\n"
                    "  checkpoint compare a b --tolerance 1e-5 --absolute 1e-8 --tensor '*/weights'\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 2,
        .most = 2,
        .wanted = "name two checkpoints;",
    };
    struct error e = { 0 };
    int n = 0, status, rc = options_parse(&options, argc, argv, &n, &e);

    x.out.program = options.program;
    if (rc == OPTIONS_DONE)
        return EXIT_DONE;
    if (rc == OK && (rc = output_open(&x.out, &e)) == OK && (rc = command_open(&x.a, argv[1], 0, &x.out, &e)) == OK &&
        (rc = command_open(&x.b, argv[2], 0, &x.out, &e)) == OK)
        rc = compare_all(&x, &e);
    status = rc != OK ? output_fail(&x.out, &e) : compare_equal(&x) ? EXIT_DONE : EXIT_NO;
    compare_print_release(&x);
    status = output_close(&x.out, command_selected(&x.tensors, &x.out, status));
    source_close(&x.a);
    source_close(&x.b);
    return status;
}
