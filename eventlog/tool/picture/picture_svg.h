/*
 * picture_svg.h - a picture (picture.h) as a self-contained SVG document: one panel a tag, one colour and dash a run,
 * with axes, a legend, and the final and the best value of each curve marked and written out. Curves of more than eight
 * runs have letters at their ends. Readable on light and dark ground. Pure.
 */
#ifndef EVENTLOG_TOOL_PICTURE_PICTURE_SVG_H
#define EVENTLOG_TOOL_PICTURE_PICTURE_SVG_H

#include "base/buffer.h"
#include "eventlog/tool/picture/picture.h"

struct picture_size { double width, height; };

/* Appends the document and returns its size; ask buffer_ok() at the end. */
struct picture_size picture_svg_draw(struct buffer *out, const struct picture *p);

#endif
