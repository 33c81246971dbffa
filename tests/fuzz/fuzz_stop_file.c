/* A stop file of anybody: what parses has a reason that ends within its array. */
#include "checkpoint/directory/training_state.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stop_file s;

    if (stop_file_parse("stop.json", (const char *)data, size, &s, NULL) != OK)
        return 0;
    if (!*s.reason || strlen(s.reason) >= sizeof s.reason || strlen(s.metric) >= sizeof s.metric ||
        strlen(s.best_checkpoint) >= sizeof s.best_checkpoint)
        abort();
    return 0;
}
