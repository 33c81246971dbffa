/* checkpoint inspect --values: prints the values, laid out by tensor_print.h, or as nested lists in JSON. */
#include "checkpoint/tool/inspect.h"

#include "base/human.h"
#include "base/json.h"
#include "base/program/terminal.h"
#include "base/text.h"
#include "checkpoint/tensor_print.h"
#include "checkpoint/tool/command.h"
#include "checkpoint/tool/short_value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 80, FLUSH = 1 << 16 };

struct printing {
    struct inspect *x;
    const struct source_tensor *tensor;
    struct tensor_print print; /* text */
    uint64_t at;               /* JSON: elements so far */
};

/* ---- text -------------------------------------------------------------------------------------------------------- */

static int print_piece(void *context, const void *bytes, size_t n, struct error *e)
{
    struct printing *p = context;

    (void)e;
    tensor_print_add(&p->print, p->tensor->type, bytes, n / tensor_type_size(p->tensor->type));
    return OK;
}

static int print_strings(struct printing *p, const struct source *s, struct error *e)
{
    struct tensor_string *items;
    int rc = source_strings(s, p->tensor, &items, e);

    for (uint64_t i = 0; i < p->tensor->elements && rc == OK; i++)
        tensor_print_add_string(&p->print, items[i].bytes, items[i].length);
    free(items);
    return rc;
}

static void put_title(struct inspect *x, const struct source_tensor *tensor)
{
    struct buffer *b = &x->out.text;
    char size[HUMAN_TEXT_MAX];

    if (x->count)
        buffer_append_byte(b, '\n');
    text_append_cut(b, tensor->name, tensor->name_length, TEXT_NAME_MOST, !terminal_utf8());
    buffer_format(b, ": %s ", tensor->type_name);
    command_shape(b, tensor->rank, tensor->shape);
    buffer_format(b, ", %s\n", human_bytes(tensor->bytes, size));
}

int inspect_values(struct inspect *x, const struct source *s, const struct source_tensor *tensor, struct error *e)
{
    struct printing p = { .x = x, .tensor = tensor };
    struct buffer text = BUFFER_EMPTY, *b = &x->out.text;
    int columns = terminal_columns(fileno(x->out.file)), rc;

    tensor_print_init(&p.print, tensor->rank, tensor->shape, tensor->elements, (uint64_t)x->limit);
    if (short_value_is_text(tensor))
        rc = short_value(s, tensor, &text, e);
    else if (tensor->type == TENSOR_STRING)
        rc = print_strings(&p, s, e);
    else
        rc = tensor_kind(tensor->type) ? source_pieces(s, tensor, print_piece, &p, e) : OK;
    if (rc == OK) {
        put_title(x, tensor);
        if (text.length) {
            text_append_safe(b, buffer_text(&text), text.length);
            buffer_append_byte(b, '\n');
        } else if (tensor_kind(tensor->type) || tensor->type == TENSOR_STRING) {
            tensor_print_append(&p.print, columns ? (size_t)columns : COLUMNS, b);
        } else {
            buffer_append_text(b, "(values of this type cannot be shown)\n");
        }
        output_put(&x->out);
    }
    buffer_release(&text);
    tensor_print_release(&p.print);
    return rc;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

/* The brackets before element `at`, and after it: one for each dimension that begins or ends there. */
static void put_brackets(struct printing *p, int opening)
{
    const struct source_tensor *tensor = p->tensor;
    uint64_t inner = tensor->elements;

    if (opening && p->at)
        buffer_append_byte(&p->x->out.text, ',');
    for (int d = 0; d < tensor->rank; d++) {
        if ((p->at + !opening) % inner == 0)
            buffer_append_byte(&p->x->out.text, opening ? '[' : ']');
        inner /= (uint64_t)tensor->shape[d];
    }
    p->at += !opening;
    if (p->x->out.text.length > FLUSH)
        output_put(&p->x->out);
}

static void put_number(struct buffer *b, int type, const void *element)
{
    char text[TENSOR_VALUE_TEXT];
    double value;

    tensor_values(type, element, 1, &value);
    tensor_value_text(type, element, text);
    if (type == TENSOR_BOOL)
        buffer_append_text(b, *text == '0' ? "false" : "true");
    else if (tensor_kind(type) == TENSOR_KIND_COMPLEX)
        json_text(b, text);
    else if (value - value != 0)
        json_double(b, value);
    else
        buffer_append_text(b, text);
}

static int json_piece(void *context, const void *bytes, size_t n, struct error *e)
{
    struct printing *p = context;
    size_t size = tensor_type_size(p->tensor->type);

    (void)e;
    for (size_t i = 0; i < n / size; i++) {
        put_brackets(p, 1);
        put_number(&p->x->out.text, p->tensor->type, (const char *)bytes + i * size);
        put_brackets(p, 0);
    }
    return OK;
}

static int json_strings(struct printing *p, const struct source *s, struct error *e)
{
    struct tensor_string *items;
    int rc = source_strings(s, p->tensor, &items, e);

    for (uint64_t i = 0; i < p->tensor->elements && rc == OK; i++) {
        put_brackets(p, 1);
        json_span(&p->x->out.text, items[i].bytes, items[i].length, 0);
        put_brackets(p, 0);
    }
    free(items);
    return rc;
}

int inspect_values_json(struct inspect *x, const struct source *s, const struct source_tensor *tensor, struct error *e)
{
    struct printing p = { .x = x, .tensor = tensor };
    struct buffer *b = &x->out.text;

    if (tensor->elements > (uint64_t)x->limit || (!tensor_kind(tensor->type) && tensor->type != TENSOR_STRING)) {
        buffer_append_text(b, "null");
        return OK;
    }
    if (!tensor->elements) {
        buffer_append_text(b, "[]");
        return OK;
    }
    return tensor->type == TENSOR_STRING ? json_strings(&p, s, e) : source_pieces(s, tensor, json_piece, &p, e);
}
