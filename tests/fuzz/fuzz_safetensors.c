/* A safetensors file: length, header, coverage. What is read is laid out and written again, and must read the same.
 * With the first byte odd the data is as long as the last tensor wants, so that the fuzzer gets behind that check. */
#include "checkpoint/safetensors.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_again(const struct safetensors_header *h)
{
    struct safetensors_header *again;
    struct buffer out = BUFFER_EMPTY;
    struct error e = { 0 };
    uint64_t end;
    size_t n;

    if (safetensors_layout(h->tensors, h->count, &e) != OK)
        return; /* the sum of bytes may be over what a file can have */
    end = h->count ? h->tensors[h->count - 1].end : 0;
    safetensors_header_encode(&out, h->tensors, h->count, h->pairs, h->pair_count);
    if (!buffer_ok(&out) || safetensors_header_length("fuzz", out.data, out.length + end, &n, &e) != OK ||
        n != out.length - 8 || n % 8 || safetensors_header_parse("fuzz", out.data + 8, n, end, &again, &e) != OK ||
        again->count != h->count || again->pair_count != h->pair_count)
        abort();
    for (size_t i = 0; i < h->pair_count; i++)
        if (strcmp(h->pairs[i].key, again->pairs[i].key) != 0 || strcmp(h->pairs[i].value, again->pairs[i].value) != 0)
            abort();
    safetensors_header_free(again);
    buffer_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct safetensors_header *h;
    struct error e = { 0 };
    uint64_t data_size = 0;
    size_t n;
    char *json;

    if (size < 3)
        return 0;
    if (size >= 8)
        safetensors_header_length("fuzz", data, size, &n, NULL);
    data_size = data[0] & 1 ? get_le16(data + 1) : 0;
    n = size - 3;
    if (!(json = malloc(n + 1)))
        return 0;
    memcpy(json, data + 3, n); /* exactly n bytes: reading one more is seen */
    json = realloc(json, n ? n : 1);
    if (safetensors_header_parse("fuzz", json, n, data_size, &h, &e) == OK) {
        write_again(h);
        safetensors_header_free(h);
    } else if (!e.message[0] || h) {
        abort();
    }
    free(json);
    return 0;
}
