#include "checkpoint/tool/command.h"

#include "base/text.h"

#include <string.h>

int command_wanted(const struct option_list *globs, const char *name)
{
    return !globs->count || option_list_matches(globs, name);
}

void command_shape(struct buffer *out, int rank, const int64_t *shape)
{
    buffer_append_byte(out, '[');
    for (int d = 0; d < rank; d++)
        buffer_format(out, d ? ", %lld" : "%lld", (long long)shape[d]);
    buffer_append_byte(out, ']');
}

void columns_cell(struct columns *c, const char *text)
{
    size_t column = c->filled++ % c->count, n = text_columns(text, strlen(text));

    buffer_append(&c->cells, text, strlen(text) + 1);
    c->width[column] = n > c->width[column] ? n : c->width[column];
}

static void pad(struct buffer *line, size_t n)
{
    while (n--)
        buffer_append_byte(line, ' ');
}

void columns_print(struct columns *c, struct output *o)
{
    struct buffer *line = &o->text;
    const char *cell = c->cells.data;

    for (size_t i = 0; i < c->filled && buffer_ok(&c->cells); i++, cell += strlen(cell) + 1) {
        size_t column = i % c->count, gap = c->width[column] - text_columns(cell, strlen(cell));
        int last = column + 1 == c->count, right = c->right >> column & 1;

        if (right)
            pad(line, gap);
        buffer_append_text(line, cell);
        if (!right && !last)
            pad(line, gap);
        buffer_append_text(line, last ? "\n" : "  ");
        if (last)
            output_put(o);
    }
    buffer_release(&c->cells);
}
