/*
 * time_text.h - times and lengths of time as people write and read them. Pure but for the time zone (TZ).
 */
#ifndef BASE_PROGRAM_TIME_TEXT_H
#define BASE_PROGRAM_TIME_TEXT_H

enum { TIME_TEXT_MAX = 40 };

/* "90s", "30min", "2h", "1h30min", "1.5 d": numbers, each with its unit: s, m or min, h, d, w, or its English name. 1
 * and *seconds (0 or more, finite), or 0: not such a text. */
int time_parse_duration(const char *text, double *seconds);

/* A time in seconds since 1970: a length of time before `now` ("2h"); "@1700000000.5"; "2026-11-01", with an hour
 * behind it "2026-11-01T10:00" or "2026-11-01 10:00:30.5", in local time unless "Z" or "+01:00" follows. 1 or 0. */
int time_parse(const char *text, double now, double *seconds);

enum time_style {
    TIME_UNIX,  /* 1700000000.25: seconds since 1970, as number_text() */
    TIME_ISO,   /* 2023-11-14T22:13:20.25Z: microseconds as far as there are some */
    TIME_LOCAL, /* 2023-11-14T23:13:20.25+01:00 */
    TIME_SHORT, /* 2023-11-14 23:13:20: local, for tables */
};

/* seconds since 1970 as text into out, TIME_TEXT_MAX bytes; returns out. What is no time of the years 1 to 9999 comes
 * as TIME_UNIX. */
const char *time_text(enum time_style style, double seconds, char *out);

#endif
