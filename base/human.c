#include "base/human.h"

#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

const char *human_bytes(uint64_t bytes, char *out)
{
    static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    double value = (double)bytes / 1024;
    int unit = 0;

    if (bytes < 1024) {
        snprintf(out, HUMAN_TEXT_MAX, "%u B", (unsigned)bytes);
        return out;
    }
    for (; value >= 999.5 && unit < 5; unit++)
        value /= 1024;
    snprintf(out, HUMAN_TEXT_MAX, "%.*f %s", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, units[unit]);
    return out;
}

int human_parse_bytes(const char *text, uint64_t *bytes)
{
    static const char *const units[][3] = {
        { "", "B", "byte" }, { "k", "kB", "KiB" }, { "M", "MB", "MiB" }, { "G", "GB", "GiB" }, { "T", "TB", "TiB" }
    };
    size_t n = strspn(text, "0123456789."), count = sizeof units / sizeof *units;
    const char *unit = text + n + (text[n] == ' ');
    char digits[NUMBER_TEXT_MAX];
    double value;

    if (!n || n >= sizeof digits)
        return 0;
    memcpy(digits, text, n);
    digits[n] = '\0';
    if (!number_parse_double(digits, &value))
        return 0;
    for (size_t i = 0; i < count; i++, value *= 1024)
        for (size_t k = 0; k < 3; k++)
            if (!strcasecmp(unit, units[i][k])) {
                *bytes = value < 0x1p63 ? (uint64_t)value : 0;
                return value < 0x1p63;
            }
    return 0;
}

const char *human_count(uint64_t n, const char *one, char *out)
{
    size_t length = strlen(one);

    snprintf(out, HUMAN_TEXT_MAX, "%llu %s%s", (unsigned long long)n, one,
             n == 1 || (length && one[length - 1] == 's') ? "" : "s");
    return out;
}

const char *human_duration(double seconds, char *out)
{
    long long s;

    if (!(fabs(seconds) < 1e15)) {
        snprintf(out, HUMAN_TEXT_MAX, "-");
        return out;
    }
    s = seconds > 0 ? (long long)(seconds + 0.5) : 0;
    if (s == 0 && seconds < 0.05)
        snprintf(out, HUMAN_TEXT_MAX, "0 s");
    else if (seconds < 9.95)
        snprintf(out, HUMAN_TEXT_MAX, "%.1f s", seconds);
    else if (s < 120)
        snprintf(out, HUMAN_TEXT_MAX, "%lld s", s);
    else if (s < 7200)
        snprintf(out, HUMAN_TEXT_MAX, "%lld min", s / 60);
    else if (s < 2 * 86400)
        snprintf(out, HUMAN_TEXT_MAX, "%lld h %lld min", s / 3600, s % 3600 / 60);
    else
        snprintf(out, HUMAN_TEXT_MAX, "%lld d %lld h", s / 86400, s % 86400 / 3600);
    return out;
}

const char *human_number(double value, char *out)
{
    const double magnitude = fabs(value);

    snprintf(out, HUMAN_TEXT_MAX, magnitude >= 1000 && magnitude < 1e15 ? "%.0f" : "%.4g", value);
    return out;
}

void human_rounding_add(struct human_rounding *r, double value)
{
    double magnitude = fabs(value);

    if (!isfinite(value) || magnitude == 0)
        return;
    if (r->greatest == 0 || magnitude < r->least)
        r->least = magnitude;
    r->greatest = fmax(r->greatest, magnitude);
    r->fractions |= magnitude != floor(magnitude);
}

/* How many digits are before the decimal point: 0 for 0.5, -1 for 0.05. */
static int whole_digits(double magnitude)
{
    return magnitude > 0 ? (int)floor(log10(magnitude)) + 1 : 1;
}

const char *human_rounded(const struct human_rounding *r, double value, char *out)
{
    enum { GREATEST = 5, LEAST = 2, MOST = 10 };
    int whole = whole_digits(r->greatest), decimals = 0;

    if (r->fractions) {
        decimals = (int)fmax(fmax((double)GREATEST - fmax(whole, 1), LEAST - whole_digits(r->least)), 0);
        decimals = decimals + (whole > 1 ? whole : 1) > MOST ? -1 : decimals;
    } else if (r->greatest >= 1e15) {
        decimals = -1;
    }
    if (isnan(value))
        snprintf(out, HUMAN_TEXT_MAX, "nan");
    else if (isinf(value))
        snprintf(out, HUMAN_TEXT_MAX, value > 0 ? "inf" : "-inf");
    else if (decimals < 0 && value != 0)
        snprintf(out, HUMAN_TEXT_MAX, "%.5g", value);
    else
        snprintf(out, HUMAN_TEXT_MAX, "%.*f", decimals < 0 ? 0 : decimals, value);
    return out;
}
