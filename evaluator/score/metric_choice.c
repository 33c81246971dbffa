#include "evaluator/score/metric_choice.h"

#include <stddef.h>
#include <string.h>

static const struct { const char *name; unsigned bits; } words[] = {
    { "top5", METRIC_TOP }, { "classes", METRIC_CLASSES }, { "confusion", METRIC_CONFUSION },
    { "curves", METRIC_CURVES }, { "speed", METRIC_SPEED }, { "hparams", METRIC_SETTINGS }, { "all", METRIC_ALL },
};

unsigned metric_choice_bits(const char *text)
{
    unsigned bits = 0;

    while (text && *text) {
        const size_t n = strcspn(text, ",");

        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (strlen(words[i].name) == n && !memcmp(words[i].name, text, n))
                bits |= words[i].bits;
        text += n;
        text += *text == ',';
    }
    return bits;
}
