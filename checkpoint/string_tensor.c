#include "checkpoint/string_tensor.h"

#include "base/bytes.h"
#include "base/crc32c.h"

enum { CHECK = 4 };

static uint32_t crc_of_length(uint32_t crc, uint64_t length)
{
    uint8_t bytes[8];

    put_le64(bytes, length);
    return crc32c_extend(crc, bytes, length > UINT32_MAX ? 8 : 4);
}

int string_tensor_check(const void *stored, size_t n, uint64_t elements, uint32_t *crc, struct error *e)
{
    const uint8_t *p = stored;
    uint64_t length, total = 0;
    uint32_t c = 0;
    size_t at = 0;

    for (uint64_t i = 0; i < elements; i++) {
        int used = get_varint(p + at, n - at, &length);

        if (used <= 0)
            return error_set(e, ERR_CORRUPT, "the length of string %llu is cut off", (unsigned long long)i);
        at += (size_t)used;
        if (length > n - total)
            return error_set(e, ERR_CORRUPT, "string %llu is longer than the tensor", (unsigned long long)i);
        total += length;
        c = crc_of_length(c, length);
    }
    if (n - at < CHECK || n - at - CHECK != total)
        return error_set(e, ERR_CORRUPT, "strings of %llu bytes do not fit into the %zu after their lengths",
                         (unsigned long long)total, n - at);
    if (get_le32(p + at) != crc32c_mask(c))
        return error_set(e, ERR_CORRUPT, "CRC mismatch of the string lengths");
    *crc = crc32c_extend(c, p + at, n - at);
    return OK;
}

void string_tensor_split(const void *stored, size_t n, uint64_t elements, struct tensor_string *out)
{
    const uint8_t *p = stored;
    size_t at = 0, begin;

    for (uint64_t i = 0; i < elements; i++) {
        uint64_t length = 0;

        at += (size_t)get_varint(p + at, n - at, &length);
        out[i].length = (size_t)length;
    }
    begin = at + CHECK;
    for (uint64_t i = 0; i < elements; i++) {
        out[i].bytes = (const char *)p + begin;
        begin += out[i].length;
    }
}

uint32_t string_tensor_encode(struct buffer *out, const struct tensor_string *strings, size_t count)
{
    uint8_t bytes[VARINT_MAX];
    uint32_t crc = 0;

    for (size_t i = 0; i < count; i++) {
        buffer_append(out, bytes, (size_t)put_varint(bytes, strings[i].length));
        crc = crc_of_length(crc, strings[i].length);
    }
    put_le32(bytes, crc32c_mask(crc));
    buffer_append(out, bytes, CHECK);
    crc = crc32c_extend(crc, bytes, CHECK);
    for (size_t i = 0; i < count; i++) {
        buffer_append(out, strings[i].bytes, strings[i].length);
        crc = crc32c_extend(crc, strings[i].bytes, strings[i].length);
    }
    return crc;
}

int variant_tensor_check(const void *stored, size_t n, uint64_t elements, uint32_t *crc, struct error *e)
{
    const uint8_t *p = stored;
    uint8_t bytes[8];
    uint64_t length;
    uint32_t c = 0;
    size_t at = 0;

    for (uint64_t i = 0; i < elements; i++) {
        int used = get_varint(p + at, n - at, &length);

        if (used <= 0)
            return error_set(e, ERR_CORRUPT, "the length of variant %llu is cut off", (unsigned long long)i);
        at += (size_t)used;
        if (n - at < CHECK || length > n - at - CHECK)
            return error_set(e, ERR_CORRUPT, "variant %llu is longer than the tensor", (unsigned long long)i);
        put_le64(bytes, length);
        c = crc32c_extend(crc32c_extend(c, bytes, sizeof bytes), p + at, (size_t)length);
        at += (size_t)length;
        if (get_le32(p + at) != crc32c_mask(c))
            return error_set(e, ERR_CORRUPT, "CRC mismatch of variant %llu", (unsigned long long)i);
        c = crc32c_extend(c, p + at, CHECK);
        at += CHECK;
    }
    if (at != n)
        return error_set(e, ERR_CORRUPT, "%zu extra bytes after the variants", n - at);
    *crc = c;
    return OK;
}
