/* The index of safetensors in parts: what parses is in order, each tensor once, and names only files beside it. */
#include "checkpoint/safetensors.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct safetensors_index index;
    struct error e = { 0 };

    if (safetensors_index_parse("fuzz", (const char *)data, size, &index, &e) != OK) {
        if (!e.message[0] || index.count || index.places)
            abort();
        return 0;
    }
    if (!index.count || index.total_size < SAFETENSORS_TOTAL_ODD)
        abort();
    for (size_t i = 0; i < index.count; i++) {
        const struct safetensors_pair *p = &index.places[i];

        if (!p->value_length || strlen(p->value) != p->value_length || strchr(p->value, '/') ||
            !strcmp(p->value, "..") || (i && bytes_compare(p[-1].key, p[-1].key_length, p->key, p->key_length) >= 0) ||
            safetensors_index_find(&index, p->key, p->key_length) != p)
            abort();
    }
    safetensors_index_release(&index);
    return 0;
}
