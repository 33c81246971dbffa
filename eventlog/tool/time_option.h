/* time_option.h - --time: how a command writes the times of points. */
#ifndef EVENTLOG_TOOL_TIME_OPTION_H
#define EVENTLOG_TOOL_TIME_OPTION_H

#include "base/buffer.h"
#include "base/program/time_text.h"

/* Row of a table, for lines of single points; more: text that the command adds, or "". */
#define TIME_OPTION(time, more) \
    { \
        OPTION_CHOICE, 0, "time", &(time), \
            .help = "Write wall times as seconds since 1970, as ISO 8601 in UTC, or as local time with its offset " \
                    "from UTC (default unix)" more, \
            .choices = "unix|iso|local" \
    }

/* The style for the word of --time; TIME_UNIX for NULL and "relative". */
enum time_style time_option_style(const char *word);

/* Appends a time as JSON: a number, or a text in the other styles. */
void time_option_json(struct buffer *out, enum time_style style, double seconds);

#endif
