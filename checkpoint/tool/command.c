#include "checkpoint/tool/command.h"

#include "base/program/terminal.h"

int command_open(struct source *s, const char *path, int index_only, struct output *o, struct error *e)
{
    int rc = source_open(s, path, index_only, e);

    for (size_t i = 0; rc == OK && i < sizeof s->notes / sizeof *s->notes; i++)
        if (s->notes[i].code != OK)
            output_fail(o, &s->notes[i]);
    return rc;
}

int command_selected(struct selection *s, const struct output *o, int status)
{
    size_t unmatched = 0;
    struct log log;

    log_init(&log, o->program, 2);
    if (status == EXIT_DONE || (status == EXIT_NO && s->names)) /* no names: damage hid them, which was reported */
        unmatched = selection_tell(s, "--tensor", "tensor", &log);
    selection_release(s);
    return unmatched ? EXIT_NO : status;
}

void command_shape(struct buffer *out, int rank, const int64_t *shape)
{
    buffer_append_byte(out, '[');
    for (int d = 0; d < rank; d++)
        buffer_format(out, d ? ", %lld" : "%lld", (long long)shape[d]);
    buffer_append_byte(out, ']');
}

void command_table(struct table *t, struct output *o)
{
    table_print(t, 0, terminal_columns(fileno(o->file)), !terminal_utf8(), &o->text);
    output_put(o);
}
