#include "eventlog/write/kinds/deflate_literals.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

enum {
    END = 256,
    SYMBOLS = 257,
    BITS_MAX = 14, /* of a code; deflate allows 15, but so four codes and what is left of a byte are in 64 bits */
    LENGTH_CODES = 19,
    DISTANCES = 2,
    HEAD_BITS = 3 + 5 + 5 + 4 + 3 * LENGTH_CODES + 4 * (SYMBOLS + DISTANCES),
};

/* ---- the plan ---------------------------------------------------------------------------------------------------- */

static void count_bytes(const uint8_t *bytes, size_t n, uint32_t *counts)
{
    uint32_t part[4][256] = { { 0 } }; /* several, so that equal bytes do not wait for each other's sums */
    size_t i = 0;

    for (; i + 4 <= n; i += 4)
        for (size_t k = 0; k < 4; k++)
            part[k][bytes[i + k]]++;
    for (; i < n; i++)
        part[0][bytes[i]]++;
    for (size_t v = 0; v < 256; v++)
        counts[v] = part[0][v] + part[1][v] + part[2][v] + part[3][v];
    counts[END] = 1;
}

struct leaf {
    uint32_t weight;
    uint16_t symbol;
};

static int by_weight(const void *x, const void *y)
{
    const struct leaf *a = x, *b = y;

    return a->weight != b->weight ? (a->weight < b->weight ? -1 : 1) : a->symbol - b->symbol;
}

/* Depths of the leaves, in the order of their weights, in a Huffman tree; returns the largest. */
static int tree_depths(const struct leaf *leaves, size_t n, uint8_t *depth)
{
    uint64_t weight[2 * SYMBOLS];
    size_t parent[2 * SYMBOLS], leaf = 0, inner = n;
    int deep[2 * SYMBOLS], most = 0;

    for (size_t i = 0; i < n; i++)
        weight[i] = leaves[i].weight;
    for (size_t node = n; node < 2 * n - 1; node++) {
        weight[node] = 0;
        for (int k = 0; k < 2; k++) { /* the two lightest that have no parent yet: both rows are sorted */
            const size_t least = leaf < n && (inner == node || weight[leaf] <= weight[inner]) ? leaf++ : inner++;

            weight[node] += weight[least];
            parent[least] = node;
        }
    }
    deep[2 * n - 2] = 0;
    for (size_t node = 2 * n - 2; node-- > 0;) {
        deep[node] = deep[parent[node]] + 1;
        if (node < n) {
            depth[node] = (uint8_t)deep[node];
            most = deep[node] > most ? deep[node] : most;
        }
    }
    return most;
}

void deflate_literals_plan(struct deflate_literals *out, const uint8_t *bytes, size_t n)
{
    uint32_t counts[SYMBOLS];
    struct leaf leaves[SYMBOLS];
    uint8_t depth[SYMBOLS];
    uint64_t bits = HEAD_BITS;
    size_t used = 0;

    count_bytes(bytes, n, counts);
    for (size_t v = 0; v < SYMBOLS; v++)
        if (counts[v])
            leaves[used++] = (struct leaf){ counts[v], (uint16_t)v };
    qsort(leaves, used, sizeof *leaves, by_weight);
    while (tree_depths(leaves, used, depth) > BITS_MAX) /* a flatter one, in the same order */
        for (size_t i = 0; i < used; i++)
            leaves[i].weight = leaves[i].weight / 2 + leaves[i].weight % 2;
    memset(out->length, 0, sizeof out->length);
    for (size_t i = 0; i < used; i++) {
        out->length[leaves[i].symbol] = depth[i];
        bits += (uint64_t)counts[leaves[i].symbol] * depth[i];
    }
    out->bytes = (size_t)((bits + 7) / 8);
}

/* ---- the stream -------------------------------------------------------------------------------------------------- */

/* Bits that are not written yet, the first one lowest; fewer than 8 after a flush. */
struct bits {
    uint64_t held;
    unsigned count;
    uint8_t *at;
};

static inline void put(struct bits *b, uint32_t value, unsigned count)
{
    b->held |= (uint64_t)value << b->count;
    b->count += count;
}

static inline void flush(struct bits *b)
{
    put_le64(b->at, b->held);
    b->at += b->count / 8;
    b->held >>= b->count & ~7u;
    b->count &= 7;
}

/* The code of each symbol, its first bit lowest, as they follow from the lengths (RFC 1951, 3.2.2); above it, from bit
 * 16 on, its length. */
static void make_codes(const uint8_t *length, uint32_t *codes)
{
    uint32_t counts[BITS_MAX + 1] = { 0 }, next[BITS_MAX + 1] = { 0 };

    for (size_t v = 0; v < SYMBOLS; v++)
        counts[length[v]]++;
    counts[0] = 0;
    for (int bits = 1; bits <= BITS_MAX; bits++)
        next[bits] = (next[bits - 1] + counts[bits - 1]) << 1;
    for (size_t v = 0; v < SYMBOLS; v++) {
        const uint32_t code = length[v] ? next[length[v]]++ : 0;

        codes[v] = (uint32_t)length[v] << 16;
        for (int k = 0; k < length[v]; k++)
            codes[v] |= (code >> k & 1) << (length[v] - 1 - k);
    }
}

/* A number of four bits in the code for lengths, in which all sixteen have as many: the last bit first. */
static void put_length(struct bits *b, unsigned length)
{
    put(b, (length & 1) << 3 | (length & 2) << 1 | (length & 4) >> 1 | length >> 3, 4);
    flush(b);
}

static void put_block_header(struct bits *b, const uint8_t *length)
{
    put(b, 1, 1); /* the last block */
    put(b, 2, 2); /* codes of its own */
    put(b, SYMBOLS - 257, 5);
    put(b, DISTANCES - 1, 5);
    put(b, LENGTH_CODES - 4, 4);
    flush(b);
    for (int i = 0; i < LENGTH_CODES; i++) { /* the first three are for repetitions, which are not used */
        put(b, i < 3 ? 0 : 4, 3);
        flush(b);
    }
    for (size_t v = 0; v < SYMBOLS; v++)
        put_length(b, length[v]);
    for (int i = 0; i < DISTANCES; i++) /* two, since some readers want a whole code, though no distance comes */
        put_length(b, 1);
}

void deflate_literals_write(const struct deflate_literals *plan, const uint8_t *bytes, size_t n, uint8_t *out)
{
    struct bits b = { 0, 0, out };
    uint32_t codes[SYMBOLS];
    size_t i = 0;

    make_codes(plan->length, codes);
    put_block_header(&b, plan->length);
    for (; i + 4 <= n; i += 4) {
        for (size_t k = 0; k < 4; k++)
            put(&b, codes[bytes[i + k]] & 0xffff, codes[bytes[i + k]] >> 16);
        flush(&b);
    }
    for (; i < n; i++) {
        put(&b, codes[bytes[i]] & 0xffff, codes[bytes[i]] >> 16);
        flush(&b);
    }
    put(&b, codes[END] & 0xffff, codes[END] >> 16);
    flush(&b);
    if (b.count)
        *b.at = (uint8_t)b.held;
}
