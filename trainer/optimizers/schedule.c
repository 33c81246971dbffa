#include "trainer/optimizers/schedule.h"

#include "base/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { STEP_DIGITS = 20 };

double schedule_full_rate(const struct schedule *s, double base)
{
    return s->workers > 1 ? base * s->workers : base;
}

static double warmth(const struct schedule *s, int64_t step)
{
    const double start = s->workers > 1 ? 1.0 / s->workers : 1.0 / ((double)s->warmup + 1);

    return step < s->warmup ? start + (1 - start) * (double)step / (double)s->warmup : 1;
}

double schedule_rate(const struct schedule *s, double base, int64_t step)
{
    double rate = schedule_full_rate(s, base);
    int passed = 0;

    while (passed < s->decays && s->decay_at[passed] <= step)
        passed++;
    if (s->decays)
        rate *= pow(s->decay_factor, passed);
    else if (s->recipe)
        rate = rate_curve_rate(s->recipe, rate, step);
    return rate * warmth(s, step);
}

/* Appends, as far as there is room. */
__attribute__((format(printf, 4, 5))) static void append(char *text, size_t size, size_t *used, const char *format, ...)
{
    va_list list;
    int n;

    va_start(list, format);
    n = *used < size ? vsnprintf(text + *used, size - *used, format, list) : 0;
    va_end(list);
    *used += n > 0 ? (size_t)n : 0;
}

void schedule_describe(const struct schedule *s, double base, char *text, size_t size)
{
    size_t used = 0;

    append(text, size, &used, "%g", schedule_full_rate(s, base));
    if (s->workers > 1)
        append(text, size, &used, " (%g x %d workers)", base, s->workers);
    if (s->warmup > 0)
        append(text, size, &used, ", warm-up over %" PRId64 " steps", s->warmup);
    for (int i = 0; i < s->decays; i++) {
        if (i == 0)
            append(text, size, &used, ", x %g at ", s->decay_factor);
        append(text, size, &used, "%s%" PRId64, i ? ", " : "", s->decay_at[i]);
    }
}

int schedule_parse_decays(struct schedule *s, const char *text, struct error *e)
{
    struct schedule read = *s;
    const char *at = text;

    for (read.decays = 0;; at++) {
        const size_t length = strcspn(at, ",");
        int64_t *step = &read.decay_at[read.decays];
        char word[STEP_DIGITS + 1] = "";

        if (read.decays == SCHEDULE_DECAYS_MAX)
            return error_set(e, ERR_ARG, "'%.60s' has more than %d steps", text, SCHEDULE_DECAYS_MAX);
        if (length <= STEP_DIGITS)
            memcpy(word, at, length);
        if (!number_parse_int(word, step) || *step < 1)
            return error_set(e, ERR_ARG, "'%.*s' in '%.60s' is not a step (a whole number from 1 on)",
                             (int)(length < 30 ? length : 30), at, text);
        if (read.decays > 0 && *step <= step[-1])
            return error_set(e, ERR_ARG, "the steps of '%.60s' do not rise", text);
        read.decays++;
        at += length;
        if (!*at)
            break;
    }
    *s = read;
    return OK;
}
