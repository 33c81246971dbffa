/* Times and lengths of time: what is read, what is refused, what is written, and that it reads back. */

#include "base/program/time_text.h"

#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

static int zone(void **state)
{
    (void)state;
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1); /* as in Berlin, without its files */
    tzset();
    return 0;
}

static void test_durations(void **state)
{
    static const struct {
        const char *text;
        double seconds;
    } good[] = {
        { "90s", 90 },       { "30min", 1800 },     { "30m", 1800 },      { "2h", 7200 },
        { "1h30min", 5400 }, { "1h 30 min", 5400 }, { "1.5 d", 129600 },  { "2 weeks", 1209600 },
        { "0s", 0 },         { "1.s", 1 },          { "3 Days", 259200 }, { "1d1h1m1.5s", 90061.5 },
    };
    static const char *const bad[] = { "",    " ",     "5",    "s",
                                       "-1h", "1e5s",  "1h30", "1 fortnight",
                                       "2h ", "1..5s", ".5s",  "nan",
                                       "inf", "0x10s", "1,5h", "99999999999999999999999999999999999s" };
    double v;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (!time_parse_duration(good[i].text, &v))
            fail_msg("'%s' is refused", good[i].text);
        assert_true(v == good[i].seconds);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (time_parse_duration(bad[i], &v))
            fail_msg("'%s' is taken for %f s", bad[i], v);
}

static void test_times(void **state)
{
    static const struct {
        const char *text;
        double seconds;
    } good[] = {
        { "2h", 1e9 - 7200 },
        { "@1700000000.25", 1700000000.25 },
        { "@-1", -1 },
        { "2023-11-14T22:13:20Z", 1700000000 },
        { "2023-11-14t22:13:20.25z", 1700000000.25 },
        { "2023-11-14 23:13:20+01:00", 1700000000 },
        { "2023-11-14T17:13-0500", 1699999980 },
        { "2023-11-14T23:13:20", 1700000000 }, /* winter: one hour before UTC */
        { "2023-07-01T02:00", 1688169600 },    /* summer: two */
        { "2024-02-29", 1709161200 },
        { "0001-01-01T00:00Z", -62135596800.0 },
    };
    static const char *const bad[] = { "",
                                       "@",
                                       "@nan",
                                       "@1e999",
                                       "now",
                                       "2023",
                                       "2023-11",
                                       "2023-11-1",
                                       "2023-13-01",
                                       "2023-02-29",
                                       "1900-02-29",
                                       "2023-11-14T",
                                       "2023-11-14T24:00",
                                       "2023-11-14T10",
                                       "2023-11-14T10:60",
                                       "2023-11-14T10:00:60",
                                       "2023-11-14T10:00+25:00",
                                       "2023-11-14T10:00Zx",
                                       "2023-11-14x10:00",
                                       "0000-01-01",
                                       "2023-11-14Z1" };
    double v;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (!time_parse(good[i].text, 1e9, &v))
            fail_msg("'%s' is refused", good[i].text);
        if (v != good[i].seconds)
            fail_msg("'%s' is %f, not %f", good[i].text, v, good[i].seconds);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (time_parse(bad[i], 1e9, &v))
            fail_msg("'%s' is taken for %f", bad[i], v);
}

static void test_texts(void **state)
{
    static const struct {
        enum time_style style;
        double seconds;
        const char *text;
    } cases[] = {
        { TIME_UNIX, 1700000000.25, "1700000000.25" },
        { TIME_ISO, 1700000000, "2023-11-14T22:13:20Z" },
        { TIME_ISO, 1700000000.25, "2023-11-14T22:13:20.25Z" },
        { TIME_ISO, 1700000022.123456, "2023-11-14T22:13:42.123456Z" },
        { TIME_ISO, 1700000000.9999999, "2023-11-14T22:13:21Z" },
        { TIME_ISO, -0.5, "1969-12-31T23:59:59.5Z" },
        { TIME_ISO, -62135596800.0, "0001-01-01T00:00:00Z" },
        { TIME_LOCAL, 1700000000.5, "2023-11-14T23:13:20.5+01:00" },
        { TIME_LOCAL, 1688169600, "2023-07-01T02:00:00+02:00" },
        { TIME_SHORT, 1700000000.7, "2023-11-14 23:13:20" },
        { TIME_ISO, 1e18, "1e+18" },
        { TIME_ISO, 253402300798.0, "9999-12-31T23:59:58Z" },
        { TIME_ISO, 253402300800.0, "1978-01-11T21:31:40.8Z" }, /* milliseconds from here */
        { TIME_ISO, 1700000000250.0, "2023-11-14T22:13:20.25Z" },
        { TIME_SHORT, 1700000000250000.0, "2023-11-14 23:13:20" },
        { TIME_ISO, 1.7e18, "2023-11-14T22:13:20Z" },
        { TIME_ISO, 638355968000000000.0, "2023-11-14T22:13:20Z" }, /* .NET's ticks */
        { TIME_UNIX, 1700000000250.0, "1700000000250.0" },
        { TIME_LOCAL, -1e300, "-1e+300" },
        { TIME_SHORT, NAN, "nan" },
        { TIME_ISO, INFINITY, "inf" },
    };
    char out[TIME_TEXT_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(time_text(cases[i].style, cases[i].seconds, out), cases[i].text);
    for (int i = 0; i < 100000; i++) {
        double seconds = floor((double)i * 2533900.00123 * 1e6) / 1e6, back; /* 1970 to 9999 */

        for (enum time_style style = TIME_ISO; style <= TIME_LOCAL; style++) {
            time_text(style, seconds, out);
            if (!time_parse(out, 0, &back) || fabs(back - seconds) > 1e-6 + seconds * 2e-16)
                fail_msg("%s is %f, was %f", out, back, seconds);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_texts),
    };

    return cmocka_run_group_tests(tests, zone, NULL);
}
