/* The path of a marker, and after the first newline its bytes: what is no JSON is whole; and both as rules. */
#include "evaluator/watch/checkpoint_source.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), path[64];
    const char *rules[2], *bytes;
    struct ready_rule r;

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    rules[0] = text;
    rules[1] = bytes = text + strcspn(text, "\n");
    if (*bytes) {
        text[bytes - text] = '\0';
        rules[1] = ++bytes;
    }
    if (ready_rule_parse(&r, rules, 2, NULL) == OK && !(r.quiet_seconds >= 0))
        abort();
    if (ready_rule_marker_path(text, "name", 5, 1, path, sizeof path) && strlen(path) >= sizeof path)
        abort();
    size -= (size_t)(bytes - text);
    if (ready_rule_marker_whole(text, bytes, size, NULL) != OK && !ready_rule_says_json(text, bytes, size))
        abort();
    free(text);
    return 0;
}
