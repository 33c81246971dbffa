#include "base/number.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* printf and strtod follow the thread's locale; the numbers of files never do. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t c_locale;

static void prepare(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static double read_back(const char *text, int single)
{
    return single ? (double)strtof_l(text, NULL, c_locale) : strtod_l(text, NULL, c_locale);
}

/* Digits of x (finite, > 0), the fewest that read back, without zeros at the end; *point is the place of the decimal
 * point relative to the first digit. A power of two has a nearer neighbour below than above, so the nearest 16 digits
 * can miss the interval while the next 16-digit number is inside it: that is the second try. */
static int shortest_digits(double x, int single, char digits[20], int *point)
{
    int low = single ? 6 : 15, high = single ? 9 : 17, n = 0, precision;
    char text[40], upper[40], *c;

    if (x < (single ? 1.17549435e-38 : 2.2250738585072014e-308))
        low = 1; /* subnormal: fewer digits may do */
    for (precision = low; precision < high; precision++) {
        snprintf(text, sizeof text, "%.*e", precision - 1, x);
        if (read_back(text, single) == x)
            break;
    }
    if (precision == high) {
        int i;

        snprintf(text, sizeof text, "%.*e", high - 1, x);
        snprintf(upper, sizeof upper, "%.*e", high - 2, x);
        for (i = high - 1; i >= 0; i--) { /* upper, "d.ddd": last digit up by one; upper[1] is the point */
            if (i == 1)
                continue;
            if (upper[i] != '9') {
                upper[i]++;
                break;
            }
            upper[i] = '0';
        }
        if (i >= 0 && read_back(upper, single) == x)
            memcpy(text, upper, sizeof text);
    }
    for (c = text; *c != 'e'; c++)
        if (*c >= '0' && *c <= '9')
            digits[n++] = *c;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    digits[n] = '\0';
    *point = atoi(c + 1) + 1;
    return n;
}

/* Wall times nearly always are whole microseconds: for 1e9 <= x < 2^32 the spacing of doubles is below one unit of the
 * sixth decimal, so if the nearest microsecond divides back to x, its digits are the shortest. */
static int microseconds(double x, char *out)
{
    uint64_t k = (uint64_t)rint(x * 1e6);
    int n;

    if (!(x >= 1e9 && x < 4294967296.0) || (double)k / 1e6 != x)
        return 0;
    n = sprintf(out, "%llu.%06llu", (unsigned long long)(k / 1000000), (unsigned long long)(k % 1000000));
    while (out[n - 1] == '0' && out[n - 2] != '.')
        out[--n] = '\0';
    return n;
}

static int text_of(double x, int single, char *out)
{
    char digits[20], *start = out;
    locale_t before;
    int n, point;

    pthread_once(&once, prepare);
    if (isnan(x))
        return (int)strlen(strcpy(out, "nan"));
    if (signbit(x))
        *out++ = '-';
    x = fabs(x);
    if (isinf(x) || x == 0)
        return (int)(strlen(strcpy(out, x == 0 ? "0.0" : "inf")) + (size_t)(out - start));
    if (x >= 1e9 && x < 4294967296.0 && !single && (n = microseconds(x, out)))
        return n + (int)(out - start);
    before = uselocale(c_locale);
    n = shortest_digits(x, single, digits, &point);
    uselocale(before);
    if (point > 16 || point <= -4)
        out += sprintf(out, "%c%s%se%c%02d", digits[0], n > 1 ? "." : "", digits + 1, point > 0 ? '+' : '-',
                       abs(point - 1));
    else if (point <= 0)
        out += sprintf(out, "0.%.*s%s", -point, "000", digits);
    else if (point >= n)
        out += sprintf(out, "%s%.*s.0", digits, point - n, "0000000000000000");
    else
        out += sprintf(out, "%.*s.%s", point, digits, digits + point);
    return (int)(out - start);
}

int number_text(double x, char *out)
{
    return text_of(x, 0, out);
}

int number_text_float(float x, char *out)
{
    return text_of((double)x, 1, out);
}

int number_parse_int(const char *text, int64_t *out)
{
    char *end;
    long long v;

    if (!*text || !strchr("+-0123456789", *text))
        return 0;
    errno = 0;
    v = strtoll(text, &end, 10);
    if (*end || end == text || errno)
        return 0;
    *out = v;
    return 1;
}

int number_parse_double(const char *text, double *out)
{
    char *end;
    double v;

    pthread_once(&once, prepare);
    if (!*text || strchr(" \t\n\r\f\v", *text))
        return 0;
    errno = 0;
    v = strtod_l(text, &end, c_locale);
    if (*end || end == text || (errno && fabs(v) > 1))
        return 0;
    *out = v;
    return 1;
}
