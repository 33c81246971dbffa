/*
 * chart.h - a picture (picture.h) as lines of text for a terminal: braille dots, 2 x 4 a character, or ASCII. Pure.
 */
#ifndef EVENTLOG_TOOL_PICTURE_CHART_H
#define EVENTLOG_TOOL_PICTURE_CHART_H

#include "base/buffer.h"
#include "eventlog/tool/picture/picture.h"

struct chart {
    int columns, rows; /* of characters: the whole width; the plot's height without title, axis and legend */
    int ascii;         /* no character beyond 0x7e; curves are told apart by their signs */
    int colour;        /* with escape sequences for six colours */
    int bare;          /* panels are title, plot and what stands at its axes: CHART_BARE_LINES more than rows */
};

enum { CHART_COLUMNS_LEAST = 30, CHART_COLUMNS_MOST = 1000, CHART_ROWS_LEAST = 3, CHART_ROWS_MOST = 500,
       CHART_BARE_LINES = 3 };

/* Appends the panels one below another, each with title, axes and a table of its curves: their last and best values.
 * The axis below the plot is as wide as the chart, no line is wider. With smoothing the smoothed curve is drawn alone.
 * Curves of dots that have no colour of their own end in letters, to the right of the plot. Ask buffer_ok() at the
 * end. */
void chart_draw(struct buffer *out, const struct picture *p, const struct chart *chart);

/* Appends, a column wide, what marks the curves of a run in charts of pictures of `run_count` runs. */
void chart_sign(struct buffer *out, const struct chart *chart, size_t run, size_t run_count);

#endif
