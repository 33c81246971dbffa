/* First byte even: a block, unpacked and by a second decoder, one byte at a time: both must agree. Odd: what is packed
 * here must unpack to itself. */
#include "base/bytes.h"
#include "checkpoint/table.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1 << 20 };

/* The next byte; -1: there is none. */
static int next(const uint8_t *in, size_t n, size_t *at)
{
    return *at < n ? in[(*at)++] : -1;
}

/* 1 and its length in *made: the block is sound. */
static int unpack_slowly(const uint8_t *in, size_t n, uint8_t *out, size_t length, size_t *made)
{
    size_t at = 0;

    *made = 0;
    for (int byte; (byte = next(in, n, &at)) >= 0 && byte >= 0x80;)
        ;
    while (at < n) {
        const int tag = in[at++], kind = tag & 3, long_literal = kind == 0 && tag >> 2 >= 60;
        const int bytes = kind == 0 ? (long_literal ? (tag >> 2) - 59 : 0) : kind == 3 ? 4 : kind;
        uint64_t number = 0, count = (uint64_t)(tag >> 2) + 1;

        for (int i = 0, byte; i < bytes; i++) {
            if ((byte = next(in, n, &at)) < 0)
                return 0;
            number += (uint64_t)byte << 8 * i;
        }
        if (long_literal)
            count = number + 1;
        if (kind == 1) {
            count = (uint64_t)(tag >> 2 & 7) + 4;
            number += (uint64_t)(tag >> 5) << 8;
        }
        if (kind && (number == 0 || number > *made))
            return 0;
        for (uint64_t i = 0; i < count; i++) {
            const int byte = kind ? (*made < length ? out[*made - number] : -1) : next(in, n, &at);

            if (byte < 0 || *made == length)
                return 0;
            out[(*made)++] = (uint8_t)byte;
        }
    }
    return *made == length;
}

static void check_block(const uint8_t *in, size_t n)
{
    size_t length = 0, made = 0;
    uint8_t *out, *slowly;
    int sound;

    if (!snappy_block_length(in, n, &length) || length > MOST || length / SNAPPY_BLOCK_EXPANSION > n)
        return;
    out = malloc(length);
    slowly = malloc(length + 1);
    if (out && slowly) {
        sound = snappy_block_unpack(in, n, out, length);
        if (sound != unpack_slowly(in, n, slowly, length, &made) || (sound && memcmp(out, slowly, length) != 0))
            abort();
    }
    free(out);
    free(slowly);
}

/* Literals and copies of at most 64 bytes, from where the same 4 bytes were last. */
static size_t pack(const uint8_t *bytes, size_t n, uint8_t *out)
{
    size_t last[256] = { 0 }, used = (size_t)put_varint(out, n);

    for (size_t at = 0, run; at < n; at += run) {
        const size_t from = last[bytes[at]], room = n - at < 64 ? n - at : 64;

        run = 0;
        while (from && run < room && bytes[from - 1 + run] == bytes[at + run])
            run++;
        last[bytes[at]] = at + 1;
        if (run > 3) {
            const size_t offset = at + 1 - from;

            out[used++] = (uint8_t)((run - 1) << 2 | (offset > 0xffff ? 3 : 2));
            for (int i = 0; i < (offset > 0xffff ? 4 : 2); i++)
                out[used++] = (uint8_t)(offset >> 8 * i);
        } else {
            run = 1;
            out[used++] = 0;
            out[used++] = bytes[at];
        }
    }
    return used;
}

static void check_packed(const uint8_t *bytes, size_t n)
{
    uint8_t *packed = malloc(2 * n + VARINT_MAX), *block, *out = malloc(n + 1);
    size_t used = packed ? pack(bytes, n, packed) : 0, length = 0;

    block = malloc(used + 1);
    if (packed && block && out) {
        memcpy(block, packed, used);
        if (!snappy_block_length(block, used, &length) || length != n || !snappy_block_unpack(block, used, out, n) ||
            memcmp(out, bytes, n) != 0)
            abort();
    }
    free(packed);
    free(block);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = size > 1 ? malloc(size - 1) : NULL;

    if (copy) {
        memcpy(copy, data + 1, size - 1); /* so that a read beyond the end is seen */
        if (data[0] & 1)
            check_packed(data + 1, size - 1);
        else
            check_block(copy, size - 1);
    }
    free(copy);
    return 0;
}
