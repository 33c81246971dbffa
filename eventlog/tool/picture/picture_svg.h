/*
 * picture_svg.h - draws a picture (picture.h) as a self-contained SVG document: one panel per tag, one colour and dash
 * per run, with axes, a legend, and the final and best value of each curve marked and written out. With more than eight
 * runs, curves end in letters. Readable on light and dark backgrounds. Pure.
 */
#ifndef EVENTLOG_TOOL_PICTURE_PICTURE_SVG_H
#define EVENTLOG_TOOL_PICTURE_PICTURE_SVG_H

#include "base/buffer.h"
#include "eventlog/tool/picture/picture.h"
#include "eventlog/tool/picture/picture_range.h"

/* ---- picture svg curve ------------------------------------------------------------------------------------------- */

/*
 * Draws the line of a curve and the band around it as paths of an SVG document, whose classes
 * name the colour (c0 to c7) and dash (d0 to d7) of the run. If a long curve has many points in one column of the
 * screen, only the first, lowest, highest and last are drawn, which looks the same; of a band, the outermost. Pure.
 */

/* where a plot is and its range */
struct picture_svg_plot {
    double left, top, width, height; /* in units of the picture */
    struct picture_range range;
    double per_x, per_y; /* units of the picture per unit of the axis */
};

static inline double picture_svg_x(const struct picture_svg_plot *f, double x)
{
    return f->left + (x - f->range.x0) * f->per_x;
}

static inline double picture_svg_y(const struct picture_svg_plot *f, double y)
{
    return f->top + (f->range.y1 - y) * f->per_y;
}

/* The number of a run's colour, and of its dash, which tells runs of one colour apart. */
static inline size_t picture_svg_colour(const struct picture *p, size_t run)
{
    return picture_colour(p, run, RUN_COLOURS);
}

static inline size_t picture_svg_dash(const struct picture *p, size_t run)
{
    const size_t style = picture_style(p, run);

    return (style + style / RUN_COLOURS * 3) % RUN_COLOURS;
}

/* Draws the curve with this smoothing; class: the kind of line. A line of one point is a short stroke. */
void picture_svg_line(struct buffer *b, const struct picture *p, const struct picture_svg_plot *f,
                      const struct picture_curve *c, double smoothing, const char *class);

/* Draws the area between the edges of its band, with gaps where these are NaN. */
void picture_svg_band(struct buffer *b, const struct picture *p, const struct picture_svg_plot *f,
                      const struct picture_curve *c);

/* ---- picture svg ------------------------------------------------------------------------------------------------- */

struct picture_size {
    double width, height;
};

/* Appends the document and returns its size; check buffer_ok() at the end. */
struct picture_size picture_svg_draw(struct buffer *out, const struct picture *p);

#endif
