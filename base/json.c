#include "base/json.h"

#include "base/bytes.h"
#include "base/number.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>

/* The text between the quotes: no control bytes in it. */
static void append_escaped(struct buffer *b, const char *text, size_t n, int ascii)
{
    static const char escapes[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* byte, letter after the backslash */
    const unsigned char *p = (const unsigned char *)text;

    while (n) {
        uint32_t c = 0;
        int length = utf8_character(p, n, &c);
        const char *escape = NULL;

        if (length == 1)
            for (int i = 0; i < 14 && !escape; i += 2)
                if ((unsigned char)escapes[i] == c)
                    escape = escapes + i + 1;
        if (!length)
            buffer_append_text(b, ascii ? "\\ufffd" : "\xef\xbf\xbd");
        else if (escape)
            buffer_format(b, "\\%c", *escape);
        else if (c < 0x20 || (c >= 0x7f && c < 0xa0) || (ascii && c > 0x7e && c < 0x10000))
            buffer_format(b, "\\u%04x", (unsigned)c);
        else if (ascii && c >= 0x10000)
            buffer_format(b, "\\u%04x\\u%04x", (unsigned)(0xd800 + ((c - 0x10000) >> 10)),
                          (unsigned)(0xdc00 + (c & 0x3ff)));
        else
            buffer_append(b, p, (size_t)length);
        p += length ? length : 1;
        n -= length ? (size_t)length : 1;
    }
}

void json_span(struct buffer *b, const char *text, size_t n, int ascii)
{
    buffer_append_byte(b, '"');
    append_escaped(b, text, n, ascii);
    buffer_append_byte(b, '"');
}

void json_text(struct buffer *b, const char *text)
{
    if (text)
        json_span(b, text, strlen(text), 0);
    else
        buffer_append_text(b, "null");
}

void json_file_name(struct buffer *b, const char *name)
{
    size_t left = strlen(name), bad;

    buffer_append_byte(b, '"');
    while (left && !utf8_valid(name, left, &bad)) {
        append_escaped(b, name, bad, 0);
        buffer_format(b, "/x%02x", (unsigned char)name[bad]);
        name += bad + 1;
        left -= bad + 1;
    }
    append_escaped(b, name, left, 0);
    buffer_append_byte(b, '"');
}

int json_file_name_read(const char *text, char *out, size_t size)
{
    for (; *text && size > 1; out++, size--) {
        unsigned byte;

        if (text[0] == '/' && text[1] == 'x' && isxdigit((unsigned char)text[2]) && isxdigit((unsigned char)text[3]) &&
            sscanf(text + 2, "%2x", &byte) == 1 && byte) {
            *out = (char)byte;
            text += 4;
        } else {
            *out = *text++;
        }
    }
    if (size)
        *out = '\0';
    return size && !*text;
}

void json_double(struct buffer *b, double x)
{
    char text[NUMBER_TEXT_MAX];

    if (isnan(x))
        buffer_append_text(b, "\"NaN\"");
    else if (isinf(x))
        buffer_append_text(b, x > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    else
        buffer_append(b, text, (size_t)number_text(x, text));
}
