#include "evaluator/score/metrics/metric.h"

#include <stdio.h>
#include <string.h>

#define METRIC_ADDRESS(name) &metric_##name,
const struct metric *const metric_table[METRIC_COUNT] = { METRICS(METRIC_ADDRESS) };

#define METRIC_TEXT(name) #name,
const char *const metric_names[METRIC_COUNT] = { METRICS(METRIC_TEXT) };

#define METRIC_CHOICE(name) { #name, 1u << METRIC_##name },
static const struct {
    const char *name;
    unsigned bits;
} words[] = {
    METRICS(METRIC_CHOICE){ "hparams", METRIC_SETTINGS },
    { "captions", METRIC_CAPTIONS },
    { "all", METRIC_ALL },
};

unsigned metric_choice(const char *text)
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

unsigned metric_written(unsigned choice)
{
    unsigned bits = 0;

    for (size_t i = 0; i < METRIC_COUNT; i++)
        bits |= metric_table[i]->write ? choice & 1u << i : 0;
    return bits;
}

unsigned metric_of_classes(unsigned choice)
{
    unsigned bits = 0;

    for (size_t i = 0; i < METRIC_COUNT; i++)
        bits |= metric_table[i]->of_classes ? choice & 1u << i : 0;
    return bits;
}

int metric_no_memory(struct eventlog_error *error)
{
    if (error) {
        error->code = EVENTLOG_ERROR_MEMORY;
        error->system = 0;
        snprintf(error->message, sizeof error->message, "no memory for what is counted of classes");
    }
    return EVENTLOG_ERROR_MEMORY;
}
