#include "evaluator/metric_choice.h"

#include "base/options.h"

#include <stdio.h>
#include <string.h>

static const char *const names[] = { "top5", "classes", "confusion", "curves", "speed", "hparams", "basic", "all" };
static const unsigned bits[] = {
    METRIC_TOP, METRIC_CLASSES, METRIC_CONFUSION, METRIC_CURVES, METRIC_SPEED, METRIC_SETTINGS, 0, METRIC_ALL,
};
enum { NAMES = sizeof names / sizeof *names, NAME_ROOM = 64 };

int metric_choice_parse(const char *text, unsigned *out, struct error *e)
{
    *out = 0;
    while (text && *text) {
        const size_t n = strcspn(text, ",");
        char name[NAME_ROOM];
        const char *near;
        int i = 0;

        snprintf(name, sizeof name, "%.*s", n < sizeof name ? (int)n : NAME_ROOM - 1, text);
        while (i < NAMES && strcmp(names[i], name) != 0)
            i++;
        if (i == NAMES) {
            near = options_nearest(name, names, NAMES);
            return error_set(e, ERR_ARG, "unknown metric '%s'; %s%s%sit is basic, all, or some of "
                             METRIC_CHOICE_NAMES " with commas between", name, near ? "did you mean '" : "",
                             near ? near : "", near ? "'? " : "");
        }
        *out |= bits[i];
        text += n;
        text += *text == ',';
    }
    return OK;
}
