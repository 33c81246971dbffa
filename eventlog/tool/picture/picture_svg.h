/*
 * picture_svg.h - draws a picture (picture.h) as a self-contained SVG document: one panel per tag, one colour and dash
 * per run, with axes, a legend, and the final and best value of each curve marked and written out. With more than eight
 * runs, curves end in letters. Readable on light and dark backgrounds. Pure.
 */
#ifndef EVENTLOG_TOOL_PICTURE_PICTURE_SVG_H
#define EVENTLOG_TOOL_PICTURE_PICTURE_SVG_H

#include "base/buffer.h"
#include "eventlog/tool/picture/picture.h"

struct picture_size {
    double width, height;
};

/* Appends the document and returns its size; check buffer_ok() at the end. */
struct picture_size picture_svg_draw(struct buffer *out, const struct picture *p);

#endif
