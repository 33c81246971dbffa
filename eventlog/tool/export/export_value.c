/* The strings of a text value as one text. */
#include "eventlog/tool/export/export.h"

#include "eventlog/format/event_decode.h"
#include "eventlog/format/value_content.h"

int export_value_text(const struct event_value *v, struct buffer *out)
{
    struct tensor_content t;
    struct span text;
    size_t at = 0, n = 0, columns = 0;

    if (v->kind != EVENT_VALUE_TENSOR || v->dtype != EVENT_STRING || !tensor_content_read(&t, v->bytes, v->length))
        return 0;
    if (t.rank >= 2 && t.rank <= TENSOR_RANK && t.shape[t.rank - 1] > 0)
        columns = (size_t)t.shape[t.rank - 1];
    while (tensor_content_string(&t, &at, &text)) {
        /* A table's cells are separated by tabs, its rows, and the elements of a list, by line ends. */
        if (n)
            buffer_append_byte(out, columns && n % columns ? '\t' : '\n');
        buffer_append(out, text.bytes, text.length);
        n++;
    }
    return 1;
}
