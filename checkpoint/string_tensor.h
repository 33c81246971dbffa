/*
 * string_tensor.h - how a tensor of strings is stored in a checkpoint's data file, and its CRC. Pure.
 *
 *   lengths   varint64 each, row-major
 *   check     4 bytes: masked CRC-32C of the lengths, each as uint32 (uint64 above 0xffffffff), not of the varints
 *   strings   one after another
 *
 * The tensor's CRC starts from the unmasked CRC of the lengths and continues over the 4 bytes and the strings.
 */
#ifndef CHECKPOINT_STRING_TENSOR_H
#define CHECKPOINT_STRING_TENSOR_H

#include "base/buffer.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct tensor_string {
    const char *bytes;
    size_t length;
};

/* Checks n stored bytes of `elements` strings: the lengths against n, and their CRC. *crc is set to the unmasked CRC
 * that the tensor's entry must have. ERR_CORRUPT says what is wrong. */
int string_tensor_check(const void *stored, size_t n, uint64_t elements, uint32_t *crc, struct error *e);

/* Splits checked bytes into strings: out gets `elements` items, borrowed from stored. */
void string_tensor_split(const void *stored, size_t n, uint64_t elements, struct tensor_string *out);

/* Appends the stored form; returns its unmasked CRC. */
uint32_t string_tensor_encode(struct buffer *out, const struct tensor_string *strings, size_t count);

/*
 * A tensor of variants is, per element: varint64 length, that many bytes of a message, 4 bytes masked CRC-32C. The CRC
 * runs over the lengths (uint64 each), the messages and these 4 bytes, through all elements; its final value is the
 * tensor's. *crc is set to that, unmasked. ERR_CORRUPT says what is wrong.
 */
int variant_tensor_check(const void *stored, size_t n, uint64_t elements, uint32_t *crc, struct error *e);

#endif
