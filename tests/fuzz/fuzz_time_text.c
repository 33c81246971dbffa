/* Any text as a time: what is taken is finite, and written down it reads back as the same. */
#include "base/program/time_text.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), out[TIME_TEXT_MAX];
    double seconds, back;

    if (!text)
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    if (time_parse_duration(text, &seconds) && !(seconds >= 0 && isfinite(seconds)))
        abort();
    if (time_parse(text, 1700000000.25, &seconds)) {
        if (!isfinite(seconds))
            abort();
        time_text(TIME_SHORT, seconds, out);
        for (enum time_style style = TIME_ISO; style <= TIME_LOCAL; style++)
            if (strchr(time_text(style, seconds, out), ':') &&
                (!time_parse(out, 0, &back) || fabs(back - seconds) > 1e-6 + fabs(seconds) * 1e-15))
                abort();
    }
    free(text);
    return 0;
}
