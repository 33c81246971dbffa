/*
 * image_png.h - packs pixels as a PNG file: the container and the filters of the PNG specification (second edition,
 * ISO/IEC 15948:2003, chapters 5 and 9), deflate by libdeflate, or by zlib where the library was built without. Pure;
 * any number of threads.
 *
 * The time goes to deflate, so what it gets matters most. Each row is filtered in the way that leaves the smallest sum
 * of magnitudes, the specification's heuristic, in vector code. Drawn images (charts, screenshots), where most pixels
 * equal the one to the left, are not filtered at all: deflate finds their repetitions sooner and packs them better.
 * Of others, most filtered rows hold no repetitions worth the search: where pieces of them are hardly larger
 * without matches, all are packed as literals (deflate_literals.h), in a third of the time of the quickest search.
 */
#ifndef EVENTLOG_WRITE_KINDS_IMAGE_PNG_H
#define EVENTLOG_WRITE_KINDS_IMAGE_PNG_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { IMAGE_PNG_LEVEL_MAX = 12 };

/* Packs pixels (height, width, channels) of 8 bits, channels 1 to 4: grey, grey and alpha, RGB, RGBA. level: from 1,
 * quick, to 12, small and slow; 0: the quickest that suits the image. OK: *bytes is a PNG file of *n bytes, the
 * caller's to free(); or ERR_NOMEM. */
int image_png(const uint8_t *pixels, size_t height, size_t width, size_t channels, unsigned level, void **bytes,
              size_t *n, struct error *e);

#endif
