#include "eventlog/tool/time_option.h"

#include "base/json.h"

#include <math.h>
#include <string.h>

enum time_style time_option_style(const char *word)
{
    return word && !strcmp(word, "iso") ? TIME_ISO : word && !strcmp(word, "local") ? TIME_LOCAL : TIME_UNIX;
}

void time_option_json(struct buffer *out, enum time_style style, double seconds)
{
    char text[TIME_TEXT_MAX];

    if (style == TIME_UNIX || !isfinite(seconds))
        json_double(out, seconds);
    else
        json_text(out, time_text(style, seconds, text));
}
