/* FROM as --step-from takes it, after the first newline the bytes of its file, which may name a checkpoint as well. */
#include "evaluator/watch/checkpoint_source.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *newline = memchr(data, '\n', size);
    size_t n = newline ? (size_t)(newline - data) : size, left = newline ? size - n - 1 : 0;
    const char *bytes = newline ? (const char *)newline + 1 : "";
    char *from = malloc(n + 1), path[64];
    int64_t number = -1;
    struct step_rule r;
    struct pattern p;

    if (!from)
        return 0;
    memcpy(from, data, n);
    from[n] = '\0';
    if (step_rule_parse(&r, from, 3, -5, NULL) == OK && r.from == STEP_FROM_FILE) {
        if (step_rule_path(&r, "name", 1, path, sizeof path) && strlen(path) >= sizeof path)
            abort();
        if (step_rule_find(&r, "f", bytes, left, &number, NULL) == OK &&
            (number < 0 ||
             (step_rule_step(&r, number) >= 0 && step_rule_number(&r, step_rule_step(&r, number)) != number)))
            abort();
    }
    if (pattern_parse("step_{step}", 1, &p, NULL) != OK)
        abort();
    if (ready_rule_latest(&p, bytes, left, &number) && number < 0)
        abort();
    free(from);
    return 0;
}
