#include "checkpoint/tool/command.h"

#include "base/log.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

int command_fail(const char *program, const struct error *e)
{
    struct log log;

    fflush(stdout);
    log_init(&log, program, 2);
    log_line(&log, "%s", e->message);
    return EXIT_USAGE;
}

void command_put(struct buffer *b)
{
    fwrite(buffer_text(b), 1, b->length, stdout);
    buffer_clear(b);
}

int command_finish(const char *program, int status)
{
    struct error e = { .code = OK };

    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    error_system(&e, "standard output: cannot write");
    return command_fail(program, &e);
}

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

void columns_print(struct columns *c)
{
    struct buffer line = BUFFER_EMPTY;
    const char *cell = c->cells.data;

    for (size_t i = 0; i < c->filled && buffer_ok(&c->cells); i++, cell += strlen(cell) + 1) {
        size_t column = i % c->count, gap = c->width[column] - text_columns(cell, strlen(cell));
        int last = column + 1 == c->count, right = c->right >> column & 1;

        if (right)
            pad(&line, gap);
        buffer_append_text(&line, cell);
        if (!right && !last)
            pad(&line, gap);
        buffer_append_text(&line, last ? "\n" : "  ");
        if (last)
            command_put(&line);
    }
    buffer_release(&line);
    buffer_release(&c->cells);
}
