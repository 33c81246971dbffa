/* The list of own files in EVAL/best/: what was read is written and read again as it was, and leads nowhere else. */
#include "evaluator/record/evaluation_best.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buffer text = BUFFER_EMPTY;
    struct best_names names;

    if (best_manifest_parse((const char *)data, size, &names, NULL) != OK)
        return 0;
    for (size_t i = 0; i < names.count; i++)
        if (strchr(names.items[i], '/') || !strcmp(names.items[i], ".."))
            abort();
    best_manifest_format(&names, &text);
    if (text.length != size || memcmp(text.data, data, size) != 0)
        abort();
    buffer_release(&text);
    best_names_release(&names);
    return 0;
}
