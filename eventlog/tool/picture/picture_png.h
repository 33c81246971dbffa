/*
 * picture_png.h - renders an SVG document as PNG, with librsvg. The library is loaded when the first picture is drawn,
 * so neither the build nor other commands need it or wait for it.
 */
#ifndef EVENTLOG_TOOL_PICTURE_PICTURE_PNG_H
#define EVENTLOG_TOOL_PICTURE_PICTURE_PNG_H

#include "base/buffer.h"
#include "base/error.h"
#include "eventlog/tool/picture/picture_svg.h"

/* Appends the PNG of a document of this size, with `scale` pixels per unit, or fewer if a row would have more than
 * 32767. OK; ERR_IO: librsvg is missing or rejects the document; ERR_NOMEM. */
int picture_png_draw(struct buffer *out, const struct buffer *svg, struct picture_size size, double scale,
                     struct error *e);

#endif
