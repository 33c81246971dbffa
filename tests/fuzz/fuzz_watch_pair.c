/* A line of a --watch-file: a name that is taken leads nowhere but below the eval root. */
#include "evaluator/evaluation_set.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *line = malloc(size + 1), *name, *directory, framed[4096];

    if (!line)
        return 0;
    memcpy(line, data, size);
    line[size] = '\0';
    if (watch_pair_parse(line, &name, &directory, NULL) == 1) {
        if (!*name || !*directory || *name == '/' || strchr(name, '='))
            abort();
        snprintf(framed, sizeof framed, "/%s/", name);
        if (strlen(name) < sizeof framed - 3 &&
            (strstr(framed, "//") || strstr(framed, "/./") || strstr(framed, "/../")))
            abort();
    }
    free(line);
    return 0;
}
