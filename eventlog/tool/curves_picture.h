/* curves_picture.h - curves (curves.h) laid out as a picture (picture.h), and written as one. */
#ifndef EVENTLOG_TOOL_CURVES_PICTURE_H
#define EVENTLOG_TOOL_CURVES_PICTURE_H

#include "eventlog/tool/curves.h"
#include "eventlog/tool/output.h"
#include "eventlog/tool/picture.h"

enum { CURVES_PANELS_MOST = 60 };

/* The first `most` chosen tags as a picture, a panel for each tag and axis; that there are more is told. Sorts the
 * points by step where a panel runs over steps. */
struct curves_picture {
    struct picture picture;
    struct picture_panel *panels;
    struct picture_curve *curves;
    struct picture_point *points;
    double *starts;
    size_t curve_count, point_count;
};
int curves_picture_new(struct curves_picture *p, struct curves *w, size_t most, struct error *e);
void curves_picture_release(struct curves_picture *p); /* also after an error */

/* The picture as an SVG document. */
int curves_print_svg(struct curves *w, struct output *out, struct error *e);

#endif
