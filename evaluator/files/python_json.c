#include "evaluator/files/python_json.h"

#include "base/buffer.h"

#include <string.h>

/* Quotes bare NaN, Infinity and -Infinity, so that a strict parser accepts them. */
static void quote_bare(const char *line, size_t n, struct buffer *out)
{
    static const char *const words[] = { "NaN", "Infinity", "-Infinity" };
    int inside = 0;

    for (size_t i = 0; i < n; i++) {
        size_t length = 0;

        for (size_t k = 0; !inside && k < 3; k++)
            if (n - i >= strlen(words[k]) && !memcmp(line + i, words[k], strlen(words[k])))
                length = strlen(words[k]);
        if (length) {
            buffer_append_byte(out, '"');
            buffer_append(out, line + i, length);
            buffer_append_byte(out, '"');
            i += length - 1;
            continue;
        }
        buffer_append_byte(out, line[i]);
        if (inside && line[i] == '\\' && i + 1 < n)
            buffer_append_byte(out, line[++i]);
        else if (line[i] == '"')
            inside = !inside;
    }
}

json_t *python_json_parse(const char *bytes, size_t n, size_t flags, json_error_t *why)
{
    struct buffer text = BUFFER_EMPTY;
    json_t *value = NULL;

    memset(why, 0, sizeof *why);
    quote_bare(bytes, n, &text);
    if (buffer_ok(&text))
        value = json_loadb(buffer_text(&text), text.length, flags, why);
    buffer_release(&text);
    return value;
}
