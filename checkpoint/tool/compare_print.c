#include "checkpoint/tool/compare.h"

#include "base/json.h"
#include "base/text.h"
#include "checkpoint/tool/command.h"

#include <math.h>
#include <string.h>

static const struct table_column row_columns[] = {
    { .title = "tensor", .cut = 16 },
    { .title = "differs" },
    { .title = "largest", .right = 1, .leave_out = 1 },
    { .title = "relative", .right = 1, .leave_out = 2 },
    { .title = "first at", .leave_out = 3, .cut = 1 },
    { .title = "A", .cut = 14 },
    { .title = "B", .cut = 14 }, /* no float32 is wider */
};
static const struct table_column bookkeeping_columns[] = {
    { .title = "bookkeeping (does not count)", .cut = 20 },
    { .title = "A", .cut = 10 },
    { .title = "B", .cut = 10 },
};
static const struct table_column decisive_bookkeeping_columns[] = {
    { .title = "bookkeeping", .cut = 20 },
    { .title = "A", .cut = 10 },
    { .title = "B", .cut = 10 },
};
static const struct table_column group_columns[] = {
    { .title = "" },
    { .title = "different tensors" },
    { .title = "different values", .leave_out = 1 },
    { .title = "norm of A-B", .right = 1 },
    { .title = "relative", .right = 1 },
};

#define INIT(table, columns) table_init(table, columns, sizeof columns / sizeof *columns)

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void json_source(struct buffer *b, const char *side, const struct source *s)
{
    buffer_format(b, ",\"%s\":{\"path\":", side);
    json_text(b, s->path);
    buffer_format(b, ",\"format\":\"%s\",\"step\":", s->format);
    buffer_format(b, s->step < 0 ? "null}" : "%lld}", (long long)s->step);
}

static void json_side(struct buffer *b, const char *side, const struct source_tensor *tensor)
{
    buffer_format(b, ",\"%s\":{\"dtype\":\"%s\",\"shape\":", side, tensor->type_name);
    command_shape(b, tensor->rank, tensor->shape);
    buffer_append_byte(b, '}');
}

static void json_named(struct buffer *b, const char *name, double value)
{
    buffer_format(b, ",\"%s\":", name);
    json_double(b, value);
}

static const char *verdict_word(enum verdict verdict)
{
    static const char *const words[VERDICTS] = { "equal", "within", "different", "dtype", "shape", "only_a", "only_b" };

    return words[verdict];
}

/* The start of an item of a JSON list. */
static void json_name(struct buffer *b, const struct finding *f, int *first)
{
    const struct source_tensor *any = f->a ? f->a : f->b;

    buffer_append_text(b, *first ? "\n{\"name\":" : ",\n{\"name\":");
    *first = 0;
    json_span(b, any->name, any->name_length, 0);
    buffer_format(b, ",\"result\":\"%s\"", verdict_word(f->verdict));
}

static void json_finding(struct compare *x, const struct finding *f)
{
    const struct tensor_difference *d = &f->difference;
    struct buffer *b = &x->out.text;

    json_name(b, f, &x->first);
    buffer_format(b, ",\"role\":\"%s\"", tensor_role_name((f->a ? f->a : f->b)->role));
    if (f->a)
        json_side(b, "a", f->a);
    if (f->b)
        json_side(b, "b", f->b);
    if (f->verdict <= DIFFER) {
        buffer_format(b, ",\"different\":%llu,\"outside\":%llu", (unsigned long long)d->different,
                      (unsigned long long)d->outside);
        if (f->numbers) {
            json_named(b, "absolute", d->absolute);
            json_named(b, "relative", d->relative);
            json_named(b, "norm", sqrt(d->squares));
        }
        if (d->different) {
            buffer_format(b, ",\"first\":{\"index\":%llu,\"a\":", (unsigned long long)d->first);
            json_text(b, buffer_text(&f->value_a));
            buffer_append_text(b, ",\"b\":");
            json_text(b, buffer_text(&f->value_b));
            buffer_append_byte(b, '}');
        }
    }
    buffer_append_byte(b, '}');
    output_put(&x->out);
}

static void json_bookkeeping(struct compare *x, const struct finding *f)
{
    struct buffer *b = &x->json_bookkeeping;

    json_name(b, f, &x->first_bookkeeping);
    if (f->a) {
        buffer_append_text(b, ",\"a\":");
        json_span(b, buffer_text(&f->value_a), f->value_a.length, 0);
    }
    if (f->b) {
        buffer_append_text(b, ",\"b\":");
        json_span(b, buffer_text(&f->value_b), f->value_b.length, 0);
    }
    buffer_append_byte(b, '}');
}

static void json_tally(struct buffer *b, const struct tally *t)
{
    buffer_format(b, "{\"tensors\":%llu", (unsigned long long)tally_tensors(t));
    for (int i = 0; i < VERDICTS; i++)
        buffer_format(b, ",\"%s\":%llu", verdict_word((enum verdict)i), (unsigned long long)t->verdicts[i]);
    buffer_format(b, ",\"values\":%llu,\"different_values\":%llu", (unsigned long long)t->values,
                  (unsigned long long)t->different);
    json_named(b, "norm", tally_norm(t));
    json_named(b, "relative_norm", tally_relative_norm(t));
    buffer_append_byte(b, '}');
}

static void json_end(struct compare *x, const struct tally *all)
{
    struct buffer *b = &x->out.text;

    buffer_append_text(b, "\n],\"bookkeeping\":[");
    buffer_append(b, buffer_text(&x->json_bookkeeping), x->json_bookkeeping.length);
    b->failed |= x->json_bookkeeping.failed;
    buffer_append_text(b, "\n],\"roles\":{");
    for (int role = 0; role < TENSOR_ROLES; role++) {
        buffer_format(b, role ? ",\"%s\":" : "\"%s\":", tensor_role_name((enum tensor_role)role));
        json_tally(b, &x->tallies[role]);
    }
    buffer_append_text(b, "},\"total\":");
    json_tally(b, all);
    buffer_format(b, ",\"equal\":%s,\"bit_for_bit\":%s}\n", compare_equal(x) ? "true" : "false",
                  compare_equal(x) && !all->different && !all->other_bits ? "true" : "false");
    output_put(&x->out);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void text_source(struct buffer *b, const char *side, const struct source *s)
{
    buffer_format(b, "%s: ", side);
    text_append_safe(b, s->path, strlen(s->path));
    if (s->step >= 0)
        buffer_format(b, " (step %lld)", (long long)s->step);
    buffer_append_byte(b, '\n');
}

static void place_cell(struct table *t, uint64_t index, const struct source_tensor *tensor)
{
    struct buffer place = BUFFER_EMPTY;
    uint64_t left = tensor->elements;

    buffer_append_byte(&place, '[');
    for (int d = 0; d < tensor->rank && left; d++) {
        left /= (uint64_t)tensor->shape[d];
        buffer_format(&place, d ? ", %llu" : "%llu", (unsigned long long)(index / left));
        index %= left;
    }
    buffer_append_byte(&place, ']');
    table_text(t, buffer_text(&place), place.length);
    t->cells.failed |= place.failed;
    buffer_release(&place);
}

static void differs_cells(struct table *t, const struct finding *f)
{
    const struct tensor_difference *d = &f->difference;

    if (f->verdict == SAME) {
        table_cell(t, "no");
    } else {
        table_cell(t, "%llu of %llu%s", (unsigned long long)(f->verdict == WITHIN ? d->different : d->outside),
                   (unsigned long long)f->a->elements, f->verdict == WITHIN ? " within" : "");
    }
    if (f->numbers && d->different) {
        table_cell(t, "%.4g", d->absolute);
        table_cell(t, "%.3g", d->relative);
    } else {
        table_cell(t, "%s", "");
        table_cell(t, "%s", "");
    }
    if (d->different)
        place_cell(t, d->first, f->a);
    else
        table_cell(t, "%s", "");
    table_text(t, buffer_text(&f->value_a), f->value_a.length);
    table_text(t, buffer_text(&f->value_b), f->value_b.length);
}

static void kind_cell(struct table *t, const struct source_tensor *tensor, enum verdict verdict)
{
    struct buffer text = BUFFER_EMPTY;

    if (tensor && verdict != SHAPE)
        buffer_format(&text, "%s ", tensor->type_name);
    if (tensor && verdict != DTYPE)
        command_shape(&text, tensor->rank, tensor->shape);
    table_text(t, tensor ? buffer_text(&text) : "-", tensor ? text.length : 1);
    t->cells.failed |= text.failed;
    buffer_release(&text);
}

static void text_finding(struct compare *x, const struct finding *f)
{
    static const char *const words[VERDICTS] = {
        [DTYPE] = "dtype", [SHAPE] = "shape", [ONLY_A] = "only in A", [ONLY_B] = "only in B"
    };
    const struct source_tensor *any = f->a ? f->a : f->b;
    struct table *t = &x->rows;

    if (f->verdict == SAME && !x->every)
        return;
    table_text(t, any->name, any->name_length);
    if (f->verdict <= DIFFER) {
        differs_cells(t, f);
        return;
    }
    table_cell(t, "%s", words[f->verdict]);
    for (int i = 0; i < 3; i++)
        table_cell(t, "%s", "");
    kind_cell(t, f->a, f->verdict);
    kind_cell(t, f->b, f->verdict);
}

static void text_bookkeeping(struct compare *x, const struct finding *f)
{
    const struct source_tensor *any = f->a ? f->a : f->b;
    struct table *t = &x->bookkeeping;

    if (f->verdict == SAME && !x->every)
        return;
    table_text(t, any->name, any->name_length);
    table_text(t, f->a ? buffer_text(&f->value_a) : "-", f->a ? f->value_a.length : 1);
    table_text(t, f->b ? buffer_text(&f->value_b) : "-", f->b ? f->value_b.length : 1);
}

/* A table followed by an empty line. */
static void text_table(struct compare *x, struct table *t)
{
    if (!t->filled)
        return;
    command_table(t, &x->out);
    buffer_append_byte(&x->out.text, '\n');
}

static void group_row(struct table *t, const char *name, const struct tally *tally)
{
    table_cell(t, "%s", name);
    table_cell(t, "%llu of %llu", (unsigned long long)tally_unequal(tally), (unsigned long long)tally_tensors(tally));
    table_cell(t, "%llu of %llu", (unsigned long long)tally->different, (unsigned long long)tally->values);
    table_cell(t, tally->values ? "%.4g" : "-", tally_norm(tally));
    table_cell(t, tally->values ? "%.3g" : "-", tally_relative_norm(tally));
}

/* Weights, averages and optimizer separately, if there are several of these, and all together. */
static void text_groups(struct compare *x, const struct tally *all)
{
    static const char *const names[TENSOR_ROLES] = { "weights", "averages", "optimizer", "bookkeeping" };
    struct table t;
    int groups = 0;

    INIT(&t, group_columns);
    for (int role = 0; role < TENSOR_ROLES; role++)
        groups += role != TENSOR_ROLE_BOOKKEEPING && tally_tensors(&x->tallies[role]);
    for (int role = 0; role < TENSOR_ROLES && groups > 1; role++)
        if (role != TENSOR_ROLE_BOOKKEEPING && tally_tensors(&x->tallies[role]))
            group_row(&t, names[role], &x->tallies[role]);
    group_row(&t, "all", all);
    text_table(x, &t);
}

static void text_count(struct buffer *b, uint64_t n, const char *what)
{
    buffer_format(b, "%llu %s%s", (unsigned long long)n, what, n == 1 ? "" : "s");
}

static void text_verdict(struct compare *x, const struct tally *all)
{
    struct buffer *b = &x->out.text;

    if (!tally_tensors(all)) {
        buffer_append_text(b, compare_equal(x) ? "equal: no tensors\n" : "nothing was compared\n");
        return;
    }
    if (!compare_equal(x)) {
        buffer_format(b, "different: %llu of ", (unsigned long long)tally_unequal(all));
        text_count(b, tally_tensors(all), "tensor");
    } else {
        buffer_append_text(b, all->different ? "equal within tolerance: " : "equal: ");
        text_count(b, tally_tensors(all), "tensor");
        buffer_append_text(b, ", ");
        text_count(b, all->values, "value");
        if (all->different)
            buffer_format(b, " (%llu not identical)", (unsigned long long)all->different);
        else if (all->other_bits)
            buffer_format(b, " (%llu as other bits: 0 and -0, NaN)", (unsigned long long)all->other_bits);
        else
            buffer_append_text(b, ", bit for bit");
    }
    buffer_append_byte(b, '\n');
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

void compare_print_begin(struct compare *x)
{
    struct buffer *b = &x->out.text;

    x->first = x->first_bookkeeping = 1;
    INIT(&x->rows, row_columns);
    INIT(&x->bookkeeping, bookkeeping_columns);
    if (x->out.json) {
        buffer_append_text(b, "{\"type\":\"compare\",\"version\":1");
        json_source(b, "a", &x->a);
        json_source(b, "b", &x->b);
        buffer_append_text(b, ",\"tensors\":[");
        return;
    }
    text_source(b, "A", &x->a);
    text_source(b, "B", &x->b);
    buffer_append_byte(b, '\n');
}

void compare_print_finding(struct compare *x, const struct finding *f)
{
    if ((f->a ? f->a : f->b)->role == TENSOR_ROLE_BOOKKEEPING)
        (x->out.json ? json_bookkeeping : text_bookkeeping)(x, f);
    else
        (x->out.json ? json_finding : text_finding)(x, f);
}

void compare_print_end(struct compare *x)
{
    struct tally all;

    if (compare_decisive(x, &all))
        x->bookkeeping.columns = decisive_bookkeeping_columns;
    if (x->out.json) {
        json_end(x, &all);
        return;
    }
    text_table(x, &x->rows);
    text_table(x, &x->bookkeeping);
    if (all.different || tally_unequal(&all))
        text_groups(x, &all);
    text_verdict(x, &all);
    output_put(&x->out);
}

void compare_print_release(struct compare *x)
{
    table_release(&x->rows);
    table_release(&x->bookkeeping);
    buffer_release(&x->json_bookkeeping);
}
