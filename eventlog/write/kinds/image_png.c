#include "eventlog/write/kinds/image_png.h"

#include "base/vector.h"
#include "eventlog/write/kinds/deflate_literals.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#if DEFLATE
#include <libdeflate.h>
#endif

enum { NONE, SUB, UP, AVERAGE, PAETH, FILTERS };
enum { SAMPLE = 1 << 16, PIECES = 4 }; /* bytes that tell how to pack the others, in so many places */
enum { LEFT_ROOM = 4 };                /* zeros before a row: what is left of its first pixel */

/* ---- filters --------------------------------------------------------------------------------------------------- */

/* What a filter subtracts from x: a is to the left, b above, c above a. */
static inline uint8_t paeth(uint8_t a, uint8_t b, uint8_t c)
{
    int16_t to_a = (int16_t)(b - c), to_b = (int16_t)(a - c), to_c = (int16_t)(to_a + to_b);

    to_a = (int16_t)(to_a < 0 ? -to_a : to_a);
    to_b = (int16_t)(to_b < 0 ? -to_b : to_b);
    to_c = (int16_t)(to_c < 0 ? -to_c : to_c);
    return to_a <= to_b && to_a <= to_c ? a : to_b <= to_c ? b : c;
}

static inline uint8_t magnitude(uint8_t v)
{
    return (uint8_t)(v < 128 ? v : 256 - v);
}

/* A filter over n bytes of a row: the results to out; returns the sum of their magnitudes, as signed bytes. */
#define FILTER(name, subtracted) \
    VECTOR_CLONES static uint32_t name(const uint8_t *restrict x, const uint8_t *restrict a, \
                                       const uint8_t *restrict b, const uint8_t *restrict c, uint8_t *restrict out, \
                                       size_t n) \
    { \
        uint32_t sums[VECTOR_WIDTH_MAX] = { 0 }, sum = 0; \
        size_t at = 0; \
\
        (void)a; \
        (void)b; \
        (void)c; \
        VECTOR_EACH(at, n, width, { \
            for (size_t k = 0; k < width; k++) { \
                size_t i = at + k; \
\
                out[i] = (uint8_t)(x[i] - (subtracted)); \
                sums[k] += magnitude(out[i]); \
            } \
        }); \
        for (size_t k = 0; k < VECTOR_WIDTH_MAX; k++) \
            sum += sums[k]; \
        return sum; \
    }

FILTER(filter_none, 0)
FILTER(filter_sub, a[i])
FILTER(filter_up, b[i])
FILTER(filter_average, (a[i] + b[i]) >> 1)
FILTER(filter_paeth, paeth(a[i], b[i], c[i]))

static uint32_t (*const filters[FILTERS])(const uint8_t *restrict x, const uint8_t *restrict a,
                                          const uint8_t *restrict b, const uint8_t *restrict c, uint8_t *restrict out,
                                          size_t n) = {
    filter_none, filter_sub, filter_up, filter_average, filter_paeth,
};

/* 1 if most pixels of the image equal the one to the left of them. */
static int is_drawn(const uint8_t *pixels, size_t height, size_t width, size_t channels)
{
    size_t equal = 0;

    for (size_t i = 0; i < height; i++) {
        const uint8_t *row = pixels + i * width * channels;

        for (size_t k = channels; k < width * channels; k++)
            equal += row[k] == row[k - channels];
    }
    return 2 * equal > height * (width - 1) * channels;
}

/* Memory for one row at a time: as it is, the one before it, and as each filter makes it. */
struct png_rows {
    uint8_t *row, *above, *made[FILTERS];
    uint8_t *memory;
};

static int rows_open(struct png_rows *r, size_t n)
{
    size_t room = n + LEFT_ROOM;

    if (!(r->memory = calloc(room, FILTERS + 2)))
        return 0;
    r->above = r->memory + LEFT_ROOM;
    r->row = r->memory + room + LEFT_ROOM;
    for (size_t i = 0; i < FILTERS; i++)
        r->made[i] = r->memory + (2 + i) * room;
    return 1;
}

/* The rows of n bytes, each behind the number of its filter. */
static void filter_rows(struct png_rows *r, const uint8_t *pixels, size_t height, size_t n, size_t channels,
                        uint8_t *out)
{
    for (size_t i = 0; i < height; i++, out += n + 1) {
        uint8_t *swap = r->above;
        uint32_t least = UINT32_MAX;

        memcpy(r->row, pixels + i * n, n);
        for (size_t k = 0; k < FILTERS; k++) {
            uint32_t sum = filters[k](r->row, r->row - channels, r->above, r->above - channels, r->made[k], n);

            if (sum < least) {
                least = sum;
                *out = (uint8_t)k;
            }
        }
        memcpy(out + 1, r->made[*out], n);
        r->above = r->row;
        r->row = swap;
    }
}

static void copy_rows(const uint8_t *pixels, size_t height, size_t n, uint8_t *out)
{
    for (size_t i = 0; i < height; i++, out += n + 1) {
        *out = NONE;
        memcpy(out + 1, pixels + i * n, n);
    }
}

/* ---- the container --------------------------------------------------------------------------------------------- */

enum { HEAD = 8, CHUNK = 12, IHDR = 13, AROUND = HEAD + CHUNK + IHDR + CHUNK + CHUNK };

static void put_be32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

/* Length, type and CRC around the n bytes at p + 8; returns the chunk's end. */
static uint8_t *seal_chunk(uint8_t *p, const char *type, size_t n)
{
    put_be32(p, (uint32_t)n);
    memcpy(p + 4, type, 4);
#if DEFLATE
    put_be32(p + 8 + n, libdeflate_crc32(0, p + 4, n + 4));
#else
    put_be32(p + 8 + n, (uint32_t)crc32_z(0, p + 4, n + 4));
#endif
    return p + CHUNK + n;
}

static uint8_t *put_head(uint8_t *p, size_t height, size_t width, size_t channels)
{
    static const uint8_t colour_types[] = { 0, 0, 4, 2, 6 };

    memcpy(p, "\x89PNG\r\n\x1a\n", HEAD);
    p += HEAD;
    put_be32(p + 8, (uint32_t)width);
    put_be32(p + 12, (uint32_t)height);
    memcpy(p + 16, (const uint8_t[]){ 8, colour_types[channels], 0, 0, 0 }, 5); /* bits, colours, not interlaced */
    return seal_chunk(p, "IHDR", IHDR);
}

/* ---- deflate --------------------------------------------------------------------------------------------------- */

#if DEFLATE
static size_t room_for(size_t n)
{
    return libdeflate_zlib_compress_bound(NULL, n);
}

static uint32_t checksum(const uint8_t *bytes, size_t n)
{
    return libdeflate_adler32(1, bytes, n);
}

/* Returns the length; 0: without memory, or more than the room. */
static size_t squeeze(const uint8_t *bytes, size_t n, unsigned level, uint8_t *out, size_t room)
{
    struct libdeflate_compressor *c = libdeflate_alloc_compressor((int)level);
    size_t packed = c ? libdeflate_zlib_compress(c, bytes, n, out, room) : 0;

    libdeflate_free_compressor(c);
    return packed;
}
#else
static size_t room_for(size_t n)
{
    return compressBound(n);
}

static uint32_t checksum(const uint8_t *bytes, size_t n)
{
    return (uint32_t)adler32_z(1, bytes, n);
}

static size_t squeeze(const uint8_t *bytes, size_t n, unsigned level, uint8_t *out, size_t room)
{
    uLongf packed = room;

    return compress2(out, &packed, bytes, n, level < 9 ? (int)level : 9) == Z_OK ? packed : 0;
}
#endif

/* 1 if pieces from all over the rows are hardly larger without matches, by a twentieth at most: then all of them are
 * packed so. */
static int is_literal(const uint8_t *rows, size_t n)
{
    const size_t piece = SAMPLE / PIECES;
    struct deflate_literals plan;
    uint8_t *sample, *out;
    size_t smaller;
    int literal;

    if (n < 2 * SAMPLE || n > UINT32_MAX || !(sample = malloc(SAMPLE + SAMPLE)))
        return 0;
    out = sample + SAMPLE;
    for (size_t i = 0; i < PIECES; i++) /* from the middle of each quarter */
        memcpy(sample + i * piece, rows + i * (n / PIECES) + (n / PIECES - piece) / 2, piece);
    deflate_literals_plan(&plan, sample, SAMPLE);
    smaller = plan.bytes - plan.bytes / 21;
    literal = !squeeze(sample, SAMPLE, 1, out, smaller < SAMPLE ? smaller : SAMPLE);
    free(sample);
    return literal;
}

/* A zlib stream of literals (RFC 1950). Returns its length. */
static size_t put_literals(const struct deflate_literals *plan, const uint8_t *rows, size_t n, uint8_t *out)
{
    memcpy(out, "\x78\x01", 2); /* a window of 32 KiB, packed quickly */
    deflate_literals_write(plan, rows, n, out + 2);
    put_be32(out + 2 + plan->bytes, checksum(rows, n));
    return 2 + plan->bytes + 4;
}

/* A file of the rows: its length, or 0 without memory. level 0: of literals. */
static size_t pack(const uint8_t *rows, size_t n, unsigned level, size_t height, size_t width, size_t channels,
                   uint8_t **out)
{
    struct deflate_literals plan = { .bytes = 0 };
    size_t room, packed;
    uint8_t *at;

    if (!level)
        deflate_literals_plan(&plan, rows, n);
    room = level ? room_for(n) : 2 + plan.bytes + 4 + DEFLATE_LITERALS_SPARE;
    if (!(*out = malloc(AROUND + room)))
        return 0;
    at = put_head(*out, height, width, channels);
    packed = level ? squeeze(rows, n, level, at + 8, room) : put_literals(&plan, rows, n, at + 8);
    if (!packed) {
        free(*out);
        return 0;
    }
    at = seal_chunk(at, "IDAT", packed);
    return (size_t)(seal_chunk(at, "IEND", 0) - *out);
}

int image_png(const uint8_t *pixels, size_t height, size_t width, size_t channels, unsigned level, void **bytes,
              size_t *n, struct error *e)
{
    size_t row = width * channels, length = height * (row + 1);
    uint8_t *filtered = malloc(length), *file = NULL;
    int drawn = !level && is_drawn(pixels, height, width, channels);
    struct png_rows rows = { .memory = NULL };

    *bytes = NULL;
    *n = 0;
    if (filtered && (drawn || rows_open(&rows, row))) {
        if (drawn)
            copy_rows(pixels, height, row, filtered);
        else
            filter_rows(&rows, pixels, height, row, channels, filtered);
        if (!level)
            level = drawn ? 2 : !is_literal(filtered, length);
        *n = pack(filtered, length, level, height, width, channels, &file);
    }
    free(rows.memory);
    free(filtered);
    if (!*n)
        return error_memory(e, NULL, "for an image of %zu x %zu", width, height);
    *bytes = file;
    return OK;
}
