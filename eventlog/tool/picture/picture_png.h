/*
 * picture_png.h - an SVG document as a PNG file, by librsvg. The library is loaded when the first picture is drawn, so
 * that neither the build nor other commands need it or wait for it.
 */
#ifndef EVENTLOG_TOOL_PICTURE_PICTURE_PNG_H
#define EVENTLOG_TOOL_PICTURE_PICTURE_PNG_H

#include "base/buffer.h"
#include "base/error.h"
#include "eventlog/tool/picture/picture_svg.h"

/* Appends the PNG of a document of that size, with `scale` pixels a unit, fewer where these would be more than 32767 in
 * a line. OK; ERR_IO: librsvg is not there or does not take the document; ERR_NOMEM. */
int picture_png_draw(struct buffer *out, const struct buffer *svg, struct picture_size size, double scale,
                     struct error *e);

#endif
