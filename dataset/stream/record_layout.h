/* record_layout.h - the option --record-fields, which says what the records of --data records consist of. Pure. */
#ifndef DATASET_STREAM_RECORD_LAYOUT_H
#define DATASET_STREAM_RECORD_LAYOUT_H

#include "dataset/stream/fixed_records.h"

/*
 * text: the fields of a record in their order, with commas between them:
 *   label=N         the label, N bytes (1, 2 or 4), little-endian
 *   image=HxWxC     pixels, a byte for each colour, row by row
 *   planes=CxHxW    the same, first all of the first colour
 *   floats=HxWxC    the same as image, in little-endian float32
 *   skip=N          N bytes of something else
 * Of CIFAR-100: "skip=1,label=1,planes=3x32x32". There is one label and one of image, planes and floats. ERR_ARG: the
 * sentence says which field is wrong.
 */
int record_layout_parse(struct fixed_layout *out, const char *text, struct error *e);

#endif
