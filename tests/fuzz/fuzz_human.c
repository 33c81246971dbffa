/* Any text as a size: what is taken, written for people, is taken again, and is the same as far as they write it. */
#include "base/human.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), out[HUMAN_TEXT_MAX];
    uint64_t bytes, back;

    if (!text)
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    if (human_parse_bytes(text, &bytes)) {
        if (bytes >> 63)
            abort();
        human_bytes(bytes, out);
        if (bytes < (uint64_t)1 << 49 &&
            (!human_parse_bytes(out, &back) || fabs((double)back - (double)bytes) > (double)bytes * 0.006))
            abort();
    }
    free(text);
    return 0;
}
