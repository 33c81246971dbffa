/* Any bytes as CSV or JSON lines; the first byte says as what, and whether points come without a tag. What is visited
 * must be a point: a tag, and strings that end. */
#include "eventlog/read/point_input.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int visit(void *context, const struct point_input_point *p, struct error *e)
{
    size_t *sum = context;

    (void)e;
    if (!p->tag)
        abort();
    *sum += strlen(p->tag) + (p->run ? strlen(p->run) : 0);
    return OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct point_input *p;
    size_t sum = 0;

    if (!size || point_input_new(&p, (enum point_input_format)(data[0] % 3), data[0] & 4 ? "t" : NULL, NULL) != OK)
        return 0;
    for (const char *at = (const char *)data + 1, *end = (const char *)data + size; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((stop ? stop : end) - at);
        char *line = malloc(n ? n : 1); /* exactly the line, so that reading beyond it is seen */

        if (!line)
            abort();
        memcpy(line, at, n);
        point_input_line(p, line, n, visit, &sum, NULL);
        free(line);
        at = stop ? stop + 1 : end;
    }
    point_input_end(p, NULL);
    point_input_free(p);
    return 0;
}
