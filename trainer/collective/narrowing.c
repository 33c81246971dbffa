#include "trainer/collective/narrowing.h"

#include "model/kernels/bfloat16.h"

#include <stdint.h>
#include <string.h>

enum { PART = 256 }; /* elements at once: bytes that are still to be read are not written before */

static size_t count_rounded(struct extent x, size_t rounded)
{
    const size_t end = rounded < x.to ? rounded : x.to;

    return end > x.from ? end - x.from : 0;
}

static size_t part_at(size_t k, size_t n)
{
    return n - k < PART ? n - k : PART;
}

size_t narrowing_bytes(struct extent x, size_t rounded)
{
    const size_t n = count_rounded(x, rounded);

    return n * sizeof(uint16_t) + (x.to - x.from - n) * sizeof(real);
}

void narrowing_pack(const real *v, struct extent x, size_t rounded, void *bytes)
{
    const size_t n = count_rounded(x, rounded);
    char *to = bytes;
    uint16_t part[PART];

    for (size_t k = 0; k < n; k += PART) {
        bfloat16_round(part_at(k, n), v + x.from + k, part);
        memcpy(to + k * sizeof *part, part, part_at(k, n) * sizeof *part);
    }
    if (n > 0 || (const char *)(v + x.from) != to)
        memmove(to + n * sizeof *part, v + x.from + n, (x.to - x.from - n) * sizeof *v);
}

void narrowing_unpack(const void *bytes, struct extent x, size_t rounded, real *v)
{
    const size_t n = count_rounded(x, rounded);
    const char *from = bytes;
    uint16_t part[PART];

    if (n > 0 || from != (const char *)(v + x.from))
        memmove(v + x.from + n, from + n * sizeof *part, (x.to - x.from - n) * sizeof *v);
    for (size_t left = n, count; left > 0; left -= count) { /* from the end: numbers grow in their place */
        count = left % PART ? left % PART : PART;
        memcpy(part, from + (left - count) * sizeof *part, count * sizeof *part);
        for (size_t i = 0; i < count; i++)
            v[x.from + left - count + i] = (real)bfloat16_wide(part[i]);
    }
}

void narrowing_round(real *v, struct extent x, size_t rounded)
{
    narrowing_pack(v, x, rounded, v + x.from);
    narrowing_unpack(v + x.from, x, rounded, v);
}
