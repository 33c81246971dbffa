/*
 * time_text.h - reads and writes times and durations for people. Pure, except for the time zone (TZ).
 */
#ifndef BASE_PROGRAM_TIME_TEXT_H
#define BASE_PROGRAM_TIME_TEXT_H

enum { TIME_TEXT_MAX = 40 };

/* Parses "90s", "30min", "2h", "1h30min", "1.5 d": numbers with units: s, m or min, h, d, w, or the English name. 1 and
 * *seconds (0 or more, finite), or 0: not a duration. */
int time_parse_duration(const char *text, double *seconds);

/* Parses a time into seconds since 1970: a duration before `now` ("2h"); "@1700000000.5"; "2026-11-01", optionally with
 * a time, "2026-11-01T10:00" or "2026-11-01 10:00:30.5", local unless "Z" or "+01:00" follows. 1 or 0. */
int time_parse(const char *text, double now, double *seconds);

enum time_style {
    TIME_UNIX,  /* 1700000000.25: seconds since 1970, as number_text() */
    TIME_ISO,   /* 2023-11-14T22:13:20.25Z: with microseconds as needed */
    TIME_LOCAL, /* 2023-11-14T23:13:20.25+01:00 */
    TIME_SHORT, /* 2023-11-14 23:13:20: local, for tables */
};

/* Some writers count other units than seconds since 1970, up to .NET's ticks of 100 ns since the year 1. What is beyond
 * the year 9999 in seconds is taken for the unit in which it is a time of our days. */
enum time_unit { TIME_SECONDS, TIME_MILLISECONDS, TIME_MICROSECONDS, TIME_NANOSECONDS, TIME_TICKS, TIME_UNITS };
enum time_unit time_unit_of(double t);
const char *time_unit_name(enum time_unit unit); /* "milliseconds" */
/* The time in seconds since 1970, whatever its unit; what is in seconds, or in none of these units, stays as it is. */
double time_in_seconds(double t);

/* Writes a time to out, TIME_TEXT_MAX bytes; returns out. It is in seconds since 1970; other units become that, except
 * in TIME_UNIX. Outside the years 1 to 9999 as TIME_UNIX. */
const char *time_text(enum time_style style, double when, char *out);

#endif
