#include "checkpoint/slice_key.h"

#include <string.h>

void slice_key_append_number(struct buffer *out, int64_t v)
{
    uint8_t bytes[10];
    uint64_t magnitude = v < 0 ? ~(uint64_t)v : (uint64_t)v;
    int n = 1;

    while (n < 10 && magnitude >> (7 * n - 1) != 0)
        n++;
    /* Ten bytes are more than the 64 bits of v: the ones in front repeat its sign. */
    for (int i = 0; i < n; i++) {
        int shift = 8 * (n - 1 - i);

        bytes[i] = (uint8_t)(shift < 64 ? (uint64_t)v >> shift : v < 0 ? 0xff : 0);
    }
    for (int bit = 0; bit < n; bit++)
        bytes[bit / 8] = (uint8_t)(bytes[bit / 8] ^ 0x80 >> bit % 8);
    buffer_append(out, bytes, (size_t)n);
}

void slice_key_append(struct buffer *out, const char *name, size_t name_length, int rank, const int64_t *start,
                      const int64_t *length)
{
    uint8_t bytes[8];
    int n = 0;

    buffer_append_byte(out, 0);
    for (size_t i = 0; i < name_length; i++) {
        uint8_t c = (uint8_t)name[i];

        buffer_append_byte(out, c);
        if (c == 0x00 || c == 0xff)
            buffer_append_byte(out, c ^ 0xff);
    }
    buffer_append(out, "\0\1", 2);
    for (unsigned rest = (unsigned)rank; rest; rest >>= 8)
        n++;
    for (int i = 0; i < n; i++)
        bytes[i] = (uint8_t)((unsigned)rank >> (8 * (n - 1 - i)));
    buffer_append_byte(out, n);
    buffer_append(out, bytes, (size_t)n);
    for (int d = 0; d < rank; d++) {
        slice_key_append_number(out, start[d]);
        slice_key_append_number(out, length[d]);
    }
}
