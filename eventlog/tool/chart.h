/*
 * chart.h - a picture (picture.h) as lines of text for a terminal: braille dots, 2 x 4 a character, or ASCII. Pure.
 */
#ifndef EVENTLOG_TOOL_CHART_H
#define EVENTLOG_TOOL_CHART_H

#include "base/buffer.h"
#include "eventlog/tool/picture.h"

struct chart {
    int columns, rows; /* of characters: the whole width; the plot's height without title, axis and legend */
    int ascii;         /* no character beyond 0x7e; curves are told apart by their signs */
    int colour;        /* with escape sequences for six colours; else curves of dots end in letters */
};

enum { CHART_COLUMNS_LEAST = 30, CHART_COLUMNS_MOST = 1000, CHART_ROWS_LEAST = 3, CHART_ROWS_MOST = 500 };

/* Appends the panels one below another, each with title, axes and a line for each curve: its last and best value. With
 * smoothing the smoothed curve is drawn alone. Ask buffer_ok() at the end. */
void chart_draw(struct buffer *out, const struct picture *p, const struct chart *chart);

#endif
