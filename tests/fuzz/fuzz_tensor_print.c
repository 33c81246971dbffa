/* A tensor of any shape and type as text.
 *
 *   first byte     the rank, 0..15
 *   second         the type; of strings, whose lengths are bytes before them
 *   third          the limit beyond which it is cut
 *   fourth         how many elements are handed in at a time
 *   the sizes      a byte each
 *   the rest       elements, again from the start when it ends
 *
 * What is printed has balanced brackets and at most as many values as there are; in pieces it is the same. */
#include "checkpoint/tensor_bundle.h"
#include "checkpoint/tensor_print.h"
#include "checkpoint/tensor_value.h"

#include <stdlib.h>
#include <string.h>

enum { HEAD = 4, ELEMENTS_MOST = 200000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *print(int type, int rank, const int64_t *shape, uint64_t elements, uint64_t limit, size_t piece,
                   const uint8_t *bytes, size_t n)
{
    struct buffer out = BUFFER_EMPTY, values = BUFFER_EMPTY;
    struct tensor_print p;
    size_t each = type == TENSOR_STRING ? 0 : tensor_type_size(type);

    tensor_print_init(&p, rank, shape, elements, limit);
    for (uint64_t i = 0; i < elements && type == TENSOR_STRING; i++) {
        size_t at = n ? i % n : 0, length = n ? bytes[at] % 32 : 0;

        tensor_print_add_string(&p, (const char *)bytes + at, length < n - at ? length : n - at);
    }
    for (uint64_t i = 0; i < elements * each; i++)
        buffer_append_byte(&values, n ? bytes[i % n] : 0);
    for (uint64_t at = 0; at < elements && each; at += piece)
        tensor_print_add(&p, type, values.data + at * each, elements - at < piece ? elements - at : piece);
    tensor_print_append(&p, 40, &out);
    if (!buffer_ok(&out) || !out.length || out.data[out.length - 1] != '\n' || p.shown > elements)
        abort();
    tensor_print_release(&p);
    buffer_release(&values);
    return out.data;
}

static void check_brackets(const char *text)
{
    long depth = 0;

    for (; *text; text++) {
        depth += *text == '[' ? 1 : *text == ']' ? -1 : 0;
        if (depth < 0)
            abort();
    }
    if (depth)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t shape[16];
    int rank = size ? data[0] % 16 : 0, type;
    uint64_t elements = 1, limit;
    size_t piece;
    char *whole, *pieces;

    if (size < HEAD + (size_t)rank)
        return 0;
    type = data[1] % 34;
    for (int d = 0; d < rank; d++) {
        shape[d] = data[HEAD + d];
        elements *= (uint64_t)shape[d];
        if (elements > ELEMENTS_MOST)
            return 0;
    }
    if (type != TENSOR_STRING && !tensor_kind(type))
        return 0;
    limit = data[2];
    piece = 1 + (size_t)data[3];
    data += HEAD + rank;
    size -= HEAD + (size_t)rank;
    whole = print(type, rank, shape, elements, limit, ELEMENTS_MOST, data, size);
    pieces = print(type, rank, shape, elements, limit, piece, data, size);
    if (strcmp(whole, pieces) != 0)
        abort();
    if (type != TENSOR_STRING)
        check_brackets(whole);
    free(whole);
    free(pieces);
    return 0;
}
