#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buffer_init(struct buffer *b)
{
    memset(b, 0, sizeof *b);
}

void buffer_release(struct buffer *b)
{
    free(b->data);
    buffer_init(b);
}

void buffer_clear(struct buffer *b)
{
    b->length = 0;
    b->failed = 0;
    if (b->data)
        b->data[0] = '\0';
}

int buffer_ok(const struct buffer *b)
{
    return !b->failed;
}

char *buffer_reserve(struct buffer *b, size_t n)
{
    size_t want, capacity;
    char *data;

    if (b->failed)
        return NULL;
    if (n > (size_t)-1 / 4 - b->length)
        goto fail;
    want = b->length + n + 1;
    if (want > b->capacity) {
        capacity = b->capacity < 128 ? 128 : b->capacity;
        while (capacity < want)
            capacity += capacity / 2 + 64;
        if (!(data = realloc(b->data, capacity)))
            goto fail;
        b->data = data;
        b->capacity = capacity;
    }
    return b->data + b->length;
fail:
    b->failed = 1;
    return NULL;
}

void buffer_append(struct buffer *b, const void *bytes, size_t n)
{
    char *p = buffer_reserve(b, n);

    if (!p)
        return;
    if (n)
        memcpy(p, bytes, n);
    p[n] = '\0';
    b->length += n;
}

void buffer_append_text(struct buffer *b, const char *text)
{
    buffer_append(b, text, strlen(text));
}

void buffer_append_byte(struct buffer *b, int byte)
{
    char c = (char)byte;

    buffer_append(b, &c, 1);
}

void buffer_append_utf8(struct buffer *b, uint32_t c)
{
    const int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3; /* bytes behind the first */

    buffer_append_byte(b, (int)(more ? (0xf0 << (3 - more) & 0xf0) | c >> 6 * more : c));
    for (int i = more - 1; i >= 0; i--)
        buffer_append_byte(b, (int)(0x80 | (c >> 6 * i & 0x3f)));
}

void buffer_format(struct buffer *b, const char *format, ...)
{
    va_list args;
    char *p;
    int n;

    va_start(args, format);
    n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0 || !(p = buffer_reserve(b, (size_t)n)))
        return;
    va_start(args, format);
    vsnprintf(p, (size_t)n + 1, format, args);
    va_end(args);
    b->length += (size_t)n;
}

const char *buffer_text(const struct buffer *b)
{
    return b->data ? b->data : "";
}
