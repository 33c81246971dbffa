/* A pattern, and after the first newline a name: what fits must have the step's digits in it. */
#include "evaluator/watch/checkpoint_source.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *name;
    struct pattern p;
    int64_t step = -1;

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if ((name = strchr(text, '\n')))
        *name++ = '\0';
    if (pattern_parse(text, 1, &p, NULL) == OK && pattern_match(&p, name ? name : "", &step) &&
        (step < 0 || !strpbrk(name ? name : "", "0123456789")))
        abort();
    if (pattern_parse(text, 0, &p, NULL) == OK && pattern_match(&p, name ? name : "", &step) && step != -1)
        abort();
    free(text);
    return 0;
}
