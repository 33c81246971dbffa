/*
 * crc32c.h - CRC-32C (Castagnoli) and TensorFlow's masking of it, for TFRecord framing and tensor bundles.
 * Polynomial 0x1EDC6F41 (reflected 0x82F63B78), initial and final xor 0xffffffff; check value of "123456789" is
 * 0xe3069283. Uses SSE4.2 or ARMv8 instructions if the processor has them, otherwise a table. Thread-safe.
 */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* CRC of n bytes. crc32c_extend(crc32c(a), b) is the CRC of a followed by b. */
uint32_t crc32c(const void *bytes, size_t n);
uint32_t crc32c_extend(uint32_t crc, const void *bytes, size_t n);

/* The CRC of a followed by b, from crc32c(a) and crc32c(b) and the length n of b, so parts can be computed
 * separately. */
uint32_t crc32c_combine(uint32_t a, uint32_t b, uint64_t n);

/* crc32c_extend using only the table: for processors without the instruction, and for tests to compare with. */
uint32_t crc32c_extend_portable(uint32_t crc, const void *bytes, size_t n);

/* A stored CRC is rotated and offset, so that a CRC over data that contains CRCs is not a special value. */
static inline uint32_t crc32c_mask(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

#endif
