/*
 * A block is a varint32, the length of what it unpacks to, then elements. The low two bits of an element's first byte
 * are its kind, the upper six a number t; integers are little-endian:
 *
 *   0  literal  t + 1 bytes follow; t of 60 to 63: one to four bytes with that number follow first
 *   1  copy     4 + (t & 7) bytes, from (t >> 3) * 256 + one byte before
 *   2  copy     t + 1 bytes, from the number in two bytes before
 *   3  copy     t + 1 bytes, from the number in four bytes before
 *
 * A copy may begin less than its length before: then it repeats what it makes. Source: google/snappy,
 * format_description.txt.
 */
#include "checkpoint/snappy_block.h"

#include "base/bytes.h"

#include <string.h>

enum { LENGTH_BYTES_MAX = 5, NUMBER_IN_BYTES = 60 /* literals of this t and above have it in bytes of their own */ };

/* Returns how many bytes the length takes; 0: there is none. */
static size_t length_bytes(const void *block, size_t n, size_t *length)
{
    uint64_t value;
    const int used = get_varint(block, n, &value);

    if (used <= 0 || used > LENGTH_BYTES_MAX || value > UINT32_MAX)
        return 0;
    *length = (size_t)value;
    return (size_t)used;
}

int snappy_block_length(const void *block, size_t n, size_t *length)
{
    return length_bytes(block, n, length) > 0;
}

static size_t number_of(const uint8_t *bytes, size_t count)
{
    size_t number = 0;

    for (size_t i = 0; i < count; i++)
        number |= (size_t)bytes[i] << 8 * i;
    return number;
}

int snappy_block_unpack(const void *block, size_t n, void *out, size_t length)
{
    static const uint8_t offset_bytes[] = { 0, 1, 2, 4 }; /* by kind */
    const uint8_t *in = block;
    uint8_t *to = out;
    size_t said, at = length_bytes(block, n, &said), made = 0;

    if (!at || said != length)
        return 0;
    while (at < n) {
        const unsigned kind = in[at] & 3, t = in[at] >> 2;
        const size_t more = kind ? offset_bytes[kind] : t >= NUMBER_IN_BYTES ? t - NUMBER_IN_BYTES + 1 : 0;
        size_t number, count = t + 1;

        at++;
        if (more > n - at)
            return 0;
        number = number_of(in + at, more);
        at += more;
        if (kind == 0) {
            count = more ? number + 1 : count;
            if (count > n - at || count > length - made)
                return 0;
            memcpy(to + made, in + at, count);
            at += count;
        } else {
            if (kind == 1) {
                count = 4 + (t & 7);
                number += (size_t)(t >> 3) << 8;
            }
            if (number == 0 || number > made || count > length - made)
                return 0;
            for (size_t i = made; i < made + count; i++)
                to[i] = to[i - number];
        }
        made += count;
    }
    return made == length;
}
