#include "base/program/time_text.h"

#include "base/number.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

static const double first_time = -62135596800.0, end_time = 253402300800.0; /* the years 1 to 9999, in UTC */

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* Parses the digits at *at, with a fraction if `fraction`: 1 and *v, and *at after them. */
static int take_number(const char **at, int fraction, double *v)
{
    char digits[32];
    size_t n = strspn(*at, "0123456789");

    if (!n)
        return 0;
    if (fraction && (*at)[n] == '.')
        n += 1 + strspn(*at + n + 1, "0123456789");
    if (n >= sizeof digits)
        return 0;
    memcpy(digits, *at, n);
    digits[n] = '\0';
    *at += n;
    return number_parse_double(digits, v);
}

/* Seconds in the unit of n letters; 0: there is no such unit. */
static double unit_seconds(const char *text, size_t n)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {
        { "s", 1 },     { "sec", 1 },     { "second", 1 },   { "seconds", 1 }, { "m", 60 },        { "min", 60 },
        { "mins", 60 }, { "minute", 60 }, { "minutes", 60 }, { "h", 3600 },    { "hour", 3600 },   { "hours", 3600 },
        { "d", 86400 }, { "day", 86400 }, { "days", 86400 }, { "w", 604800 },  { "week", 604800 }, { "weeks", 604800 },
    };

    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i].name) == n && !strncasecmp(units[i].name, text, n))
            return units[i].seconds;
    return 0;
}

int time_parse_duration(const char *text, double *seconds)
{
    double sum = 0, v, unit;

    do {
        size_t letters;

        if (!take_number(&text, 1, &v))
            return 0;
        text += strspn(text, " ");
        for (letters = 0; isalpha((unsigned char)text[letters]);)
            letters++;
        if ((unit = unit_seconds(text, letters)) == 0)
            return 0;
        sum += v * unit;
        text += letters;
        if (*text == ' ' && !*(text += strspn(text, " ")))
            return 0;
    } while (*text);
    *seconds = sum;
    return isfinite(sum);
}

/* Parses two digits, at most `most`. */
static int take_two(const char **at, int least, int most, int *v)
{
    if (!isdigit((unsigned char)(*at)[0]) || !isdigit((unsigned char)(*at)[1]))
        return 0;
    *v = ((*at)[0] - '0') * 10 + (*at)[1] - '0';
    *at += 2;
    return *v >= least && *v <= most;
}

static int take(const char **at, const char *one_of)
{
    if (!**at || !strchr(one_of, **at))
        return 0;
    ++*at;
    return 1;
}

/* Parses "Z", "+01:00", "-0530" or nothing, which means local time: 1, *local, *offset in seconds. */
static int take_zone(const char **at, int *local, int *offset)
{
    int sign = **at == '-' ? -1 : 1, hours, minutes;

    *local = !**at;
    *offset = 0;
    if (!**at || take(at, "Zz"))
        return 1;
    if (!take(at, "+-") || !take_two(at, 0, 23, &hours))
        return 0;
    take(at, ":");
    if (!take_two(at, 0, 59, &minutes))
        return 0;
    *offset = sign * (hours * 3600 + minutes * 60);
    return 1;
}

static int parse_date(const char *at, double *seconds)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    int century, year, month, day, hour = 0, minute = 0, local, offset, leap;
    double second = 0;
    struct tm t = { .tm_isdst = -1 };
    time_t whole;

    if (!take_two(&at, 0, 99, &century) || !take_two(&at, 0, 99, &year) || !take(&at, "-") ||
        !take_two(&at, 1, 12, &month) || !take(&at, "-") || !take_two(&at, 1, 31, &day))
        return 0;
    year += century * 100;
    leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (!year || day > days[month - 1] + (month == 2 && leap))
        return 0;
    if (take(&at, "Tt ")) {
        if (!take_two(&at, 0, 23, &hour) || !take(&at, ":") || !take_two(&at, 0, 59, &minute))
            return 0;
        if (take(&at, ":") && (!take_number(&at, 1, &second) || second >= 60))
            return 0;
    }
    if (!take_zone(&at, &local, &offset) || *at)
        return 0;
    t.tm_year = year - 1900;
    t.tm_mon = month - 1;
    t.tm_mday = day;
    t.tm_hour = hour;
    t.tm_min = minute;
    whole = local ? mktime(&t) : timegm(&t);
    *seconds = (double)whole + second - offset;
    return 1;
}

int time_parse(const char *text, double now, double *seconds)
{
    double ago;

    if (*text == '@')
        return number_parse_double(text + 1, seconds) && isfinite(*seconds);
    if (time_parse_duration(text, &ago)) {
        *seconds = now - ago;
        return 1;
    }
    return parse_date(text, seconds);
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    double from, to;       /* of what is taken for this unit */
    double second, origin; /* how many make a second, and which is the beginning of 1970 */
} units[TIME_UNITS] = {
    [TIME_SECONDS] = { "seconds", -INFINITY, 253402300800.0, 1, 0 },
    [TIME_MILLISECONDS] = { "milliseconds", 253402300800.0, 253402300800e3, 1e3, 0 },
    [TIME_MICROSECONDS] = { "microseconds", 253402300800e3, 253402300800e6, 1e6, 0 },
    [TIME_TICKS] = { ".NET ticks", 621355968e9, 725500800e9, 1e7, 621355968e9 }, /* from 1970 to 2300 */
    [TIME_NANOSECONDS] = { "nanoseconds", 11e17, 97e17, 1e9, 0 },                /* from 2004 to 2277 */
};

enum time_unit time_unit_of(double t)
{
    static const enum time_unit order[] = { TIME_MILLISECONDS, TIME_MICROSECONDS, TIME_TICKS, TIME_NANOSECONDS };

    for (size_t i = 0; i < sizeof order / sizeof *order && t >= units[TIME_SECONDS].to; i++)
        if (t >= units[order[i]].from && t < units[order[i]].to)
            return order[i];
    return TIME_SECONDS;
}

const char *time_unit_name(enum time_unit unit)
{
    return units[unit].name;
}

double time_in_seconds(double t)
{
    const enum time_unit unit = time_unit_of(t);

    return unit == TIME_SECONDS ? t : (t - units[unit].origin) / units[unit].second;
}

const char *time_text(enum time_style style, double when, char *out)
{
    double seconds = style == TIME_UNIX ? when : time_in_seconds(when), whole = floor(seconds);
    long micro = seconds >= first_time && seconds < end_time - 1 ? lrint((seconds - whole) * 1e6) : -1;
    time_t at;
    struct tm t;
    size_t n;

    if (style == TIME_UNIX || micro < 0) {
        number_text(seconds, out);
        return out;
    }
    at = (time_t)whole + (micro == 1000000);
    micro = micro == 1000000 ? 0 : micro;
    if (!(style == TIME_ISO ? gmtime_r(&at, &t) : localtime_r(&at, &t)) || t.tm_year < -1899 || t.tm_year > 8099) {
        number_text(seconds, out);
        return out;
    }
    n = (size_t)snprintf(out, TIME_TEXT_MAX, "%04d-%02d-%02d%c%02d:%02d:%02d", t.tm_year + 1900, t.tm_mon + 1,
                         t.tm_mday, style == TIME_SHORT ? ' ' : 'T', t.tm_hour, t.tm_min, t.tm_sec);
    if (style == TIME_SHORT)
        return out;
    if (micro) {
        n += (size_t)snprintf(out + n, TIME_TEXT_MAX - n, ".%06ld", micro);
        while (out[n - 1] == '0')
            n--;
    }
    if (style == TIME_ISO)
        snprintf(out + n, TIME_TEXT_MAX - n, "Z");
    else
        snprintf(out + n, TIME_TEXT_MAX - n, "%c%02ld:%02ld", t.tm_gmtoff < 0 ? '-' : '+', labs(t.tm_gmtoff) / 3600,
                 labs(t.tm_gmtoff) % 3600 / 60);
    return out;
}
