/*
 * buffer.h - a growable byte string. Owned by the caller of buffer_init(); one thread at a time. When memory runs out
 * the buffer goes into the failed state: later appends do nothing, and the caller checks once at the end with
 * buffer_ok() instead of after each append.
 */
#ifndef BASE_BUFFER_H
#define BASE_BUFFER_H

#include <stddef.h>
#include <stdint.h>

struct buffer {
    char *data; /* length bytes, then always a NUL once anything was appended; NULL while empty */
    size_t length, capacity;
    int failed;
};

#define BUFFER_EMPTY \
    { \
        NULL, 0, 0, 0 \
    }

void buffer_init(struct buffer *b);
void buffer_release(struct buffer *b); /* frees the bytes and empties b */
void buffer_clear(struct buffer *b);   /* length 0, not failed, memory kept */
int buffer_ok(const struct buffer *b); /* 1 while no append failed */

/* Room for n more bytes: a pointer to it (the caller adds to length), or NULL and the failed state. */
char *buffer_reserve(struct buffer *b, size_t n);
void buffer_append(struct buffer *b, const void *bytes, size_t n);
void buffer_append_text(struct buffer *b, const char *text);
void buffer_append_byte(struct buffer *b, int byte);
void buffer_append_utf8(struct buffer *b, uint32_t code_point); /* at most 0x10ffff */
void buffer_format(struct buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The text so far, never NULL ("" while empty). Borrowed until the next append. */
const char *buffer_text(const struct buffer *b);

#endif
