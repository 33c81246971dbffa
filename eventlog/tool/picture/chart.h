/*
 * chart.h - draws a picture (picture.h) as lines of text: braille, 2 x 4 dots per character, or ASCII. Pure.
 */
#ifndef EVENTLOG_TOOL_PICTURE_CHART_H
#define EVENTLOG_TOOL_PICTURE_CHART_H

#include "base/buffer.h"
#include "eventlog/tool/picture/picture.h"

struct chart {
    int columns, rows; /* of characters: the whole width; the plot's height without title, axis and legend */
    int ascii;         /* no character beyond 0x7e; curves are told apart by their signs */
    int colour;        /* use escape sequences for six colours */
    int bare;          /* panels have only title, plot and axis labels: CHART_BARE_LINES more lines than rows */
};

enum {
    CHART_COLUMNS_LEAST = 30,
    CHART_COLUMNS_MOST = 1000,
    CHART_ROWS_LEAST = 3,
    CHART_ROWS_MOST = 500,
    CHART_BARE_LINES = 3
};

/* Appends the panels one below another, each with title, axes and a table of the last and best values of its curves. No
 * line is wider than the chart. With smoothing only the smoothed curve is drawn. Braille curves that share a colour end
 * in letters, to the right of the plot. Check buffer_ok() at the end. */
void chart_draw(struct buffer *out, const struct picture *p, const struct chart *chart);

/* Appends the mark, one column wide, of a run's curves in charts of pictures with p's runs and styles. */
void chart_sign(struct buffer *out, const struct chart *chart, const struct picture *p, size_t run);

#endif
