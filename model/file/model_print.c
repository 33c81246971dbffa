#include "model/file/model_print.h"

#include "model/file/argument.h"
#include "model/file/model_file_internal.h"
#include "model/file/model_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 80 };

/* Appends the words of `line` in lines that end with '\' where they must. */
static void append_line(struct buffer *out, const char *line)
{
    size_t column = 0;

    for (int first = 1; *line; first = 0) {
        const size_t n = strcspn(line, " "), wanted = n + (line[n] ? 2 : 0); /* " \" may follow */

        if (!first && column + 1 + wanted > COLUMNS) {
            buffer_append_text(out, " \\\n   ");
            column = 3;
        }
        if (!first)
            buffer_append_byte(out, ' ');
        buffer_append(out, line, n);
        column += n + (size_t)!first;
        line += n + (line[n] == ' ');
    }
    buffer_append_byte(out, '\n');
}

void model_print_parameters(struct buffer *out, const struct network_call *call)
{
    char text[ARGUMENT_TEXT_MAX], standard[ARGUMENT_TEXT_MAX];

    for (int k = 0; call->kind->parameters[k].name; k++) {
        const struct call_parameter *p = &call->kind->parameters[k];
        struct argument a;

        argument_text(p, &call->arguments[k], text);
        if (p->standard && argument_parse(p, p->standard, &a, NULL) == OK) {
            argument_text(p, &a, standard);
            if (!strcmp(text, standard))
                continue;
        }
        if (p->kind == PARAMETER_FLAG)
            buffer_format(out, " %s%s", p->name, call->arguments[k].v[0] != 0 ? "" : "=no");
        else
            buffer_format(out, " %s=%s", p->name, text);
    }
}

static void print_settings(struct buffer *out, const struct model *m, const struct recipe *r, int of_recipe)
{
    size_t count;
    const struct model_setting *table = model_settings(&count);

    for (size_t k = 0; k < count; k++) {
        struct buffer values = BUFFER_EMPTY;

        if (table[k].of_recipe == of_recipe) {
            table[k].print(&values, m, r);
            if (values.length)
                buffer_format(out, "%s %s\n", table[k].name, buffer_text(&values));
            if (!buffer_ok(&values))
                out->failed = 1;
        }
        buffer_release(&values);
    }
}

/* Numbers the values that some line must name: those that are not read by the next layer alone. */
static void name_values(const struct network_call *calls, size_t count, int *numbers)
{
    int last = 0, next = 1;

    for (size_t k = 0; k < count; k++) {
        for (int i = 0; i < calls[k].input_count; i++)
            if (calls[k].inputs[i] && (i > 0 || calls[k].inputs[i] != last))
                numbers[calls[k].inputs[i]] = -1;
        last = calls[k].out;
    }
    for (size_t k = 0; k < count; k++)
        if (calls[k].out > 0 && numbers[calls[k].out])
            numbers[calls[k].out] = next++;
}

static void append_value_name(struct buffer *out, int value, const int *numbers)
{
    if (value)
        buffer_format(out, "x%d", numbers[value]);
    else
        buffer_append_text(out, "input");
}

static void print_call(struct buffer *out, const struct network_call *call, int last, const int *numbers)
{
    struct buffer line = BUFFER_EMPTY;

    if (call->out > 0 && numbers[call->out])
        buffer_format(&line, "x%d = ", numbers[call->out]);
    buffer_append_text(&line, call->kind->name);
    if (call->kind->named)
        buffer_format(&line, " %s", call->name);
    model_print_parameters(&line, call);
    if (call->inputs[0] != last) {
        buffer_append_text(&line, " of=");
        append_value_name(&line, call->inputs[0], numbers);
    }
    for (int i = 1; i < call->input_count; i++) {
        buffer_append_text(&line, i == 1 ? " with=" : ",");
        append_value_name(&line, call->inputs[i], numbers);
    }
    append_line(out, buffer_text(&line));
    if (!buffer_ok(&line))
        out->failed = 1;
    buffer_release(&line);
}

void model_print(struct buffer *out, const struct network *n, const struct recipe *recipe)
{
    const struct model *m = network_model(n);
    size_t count;
    const struct network_call *calls = network_calls(n, &count);
    int values = 1, last = 0, *numbers;

    for (size_t k = 0; k < count; k++)
        values = calls[k].out >= values ? calls[k].out + 1 : values;
    if (!(numbers = calloc((size_t)values, sizeof *numbers))) {
        out->failed = 1;
        return;
    }
    buffer_append_text(out, "# the model\n");
    print_settings(out, m, recipe, 0);
    buffer_append_text(out, "\n# how it is trained\n");
    print_settings(out, m, recipe, 1);
    buffer_append_text(out, "\n# layers\n");
    name_values(calls, count, numbers);
    for (size_t k = 0; k < count; k++) {
        print_call(out, &calls[k], last, numbers);
        last = calls[k].out;
    }
    free(numbers);
}

/* ---- for documents ----------------------------------------------------------------------------------------------- */

static void print_kind(struct buffer *out, const struct layer_call *kind)
{
    buffer_append_text(out, kind->name);
    if (kind->named)
        buffer_append_text(out, " NAME");
    for (int k = 0; kind->parameters[k].name; k++)
        if (!kind->parameters[k].standard)
            buffer_format(out, " %s=%s", kind->parameters[k].name, argument_form(&kind->parameters[k]));
    if (kind->inputs_least > 1 || kind->inputs_most > 1)
        buffer_append_text(out, kind->inputs_most > 2 ? " with=VALUE,..." : " with=VALUE");
    buffer_format(out, "\n    %s\n", kind->help);
    for (int k = 0; kind->parameters[k].name; k++) {
        const struct call_parameter *p = &kind->parameters[k];

        buffer_format(out, "    %-10s %s", p->name, p->help);
        if (p->standard && p->kind != PARAMETER_FLAG)
            buffer_format(out, "; default: %s", p->standard);
        buffer_append_byte(out, '\n');
    }
}

void model_print_reference(struct buffer *out)
{
    size_t count;
    const struct model_setting *table = model_settings(&count);
    const struct layer_call *const *kinds = model_layer_kinds();

    buffer_append_text(out, "Layers:\n\n");
    for (size_t k = 0; kinds[k]; k++)
        print_kind(out, kinds[k]);
    for (int of_recipe = 0; of_recipe < 2; of_recipe++) {
        buffer_append_text(out, of_recipe ? "\nSettings of the training:\n\n" : "\nSettings of the model:\n\n");
        for (size_t k = 0; k < count; k++)
            if (table[k].of_recipe == of_recipe)
                buffer_format(out, "%s %s\n    %s\n", table[k].name, table[k].form, table[k].help);
    }
}
