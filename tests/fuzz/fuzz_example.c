/* Any bytes as a tf.train.Example: whole and in windows, whose size the first byte picks, it reads as the same. */
#include "dataset/stream/example.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static int in_windows(const struct example_keys *keys, unsigned wanted, size_t more, const uint8_t *record, size_t n,
                      struct example *out)
{
    struct example_scan s;
    int rc = 0;

    example_scan_begin(&s, keys, wanted, n);
    while (rc == 0) {
        const size_t at = s.position, left = n - at, length = s.need + more < left ? s.need + more : left;
        uint8_t *window = malloc(length + 1);

        if (!window || at > n || s.need > left)
            abort();
        memcpy(window, record + at, length);
        rc = example_scan_next(&s, window, length);
        for (int part = 0; part < EXAMPLE_PARTS; part++)
            if (s.found.bytes[part] >= window && s.found.bytes[part] <= window + length)
                s.found.bytes[part] = record + at + (s.found.bytes[part] - window);
        free(window);
        if (rc == 0 && s.position == at && s.need <= length)
            abort(); /* would never end */
    }
    if (rc < 0 && !s.problem)
        abort(); /* an error without a sentence */
    *out = s.found;
    return rc < 0 ? ERR_CORRUPT : OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct example_scan whole;
    struct example_keys keys;
    struct example x;

    if (size < 2 || example_keys_parse(&keys, "image=i,label=l,format=f", NULL) < 0)
        return 0;
    if (example_scan_whole(&whole, &keys, bytes[1], bytes + 2, size - 2) !=
        in_windows(&keys, bytes[1], bytes[0], bytes + 2, size - 2, &x))
        abort();
    if (!whole.problem && memcmp(&whole.found, &x, sizeof x) != 0)
        abort();
    return 0;
}
