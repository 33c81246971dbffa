#include "checkpoint/tool/command.h"

#include "base/terminal.h"

int command_selected(struct selection *s, const struct output *o, int status)
{
    size_t unmatched = 0;
    struct log log;

    log_init(&log, o->program, 2);
    if (status != EXIT_USAGE)
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
