/* convert_formats.h - the formats that `checkpoint convert` writes: a row is the format's name, and that of its file,
 * convert_NAME.c, in which convert_NAME() writes what is wanted of the source to its destination. */
#ifndef CHECKPOINT_TOOL_CONVERT_FORMATS_H
#define CHECKPOINT_TOOL_CONVERT_FORMATS_H

#include "checkpoint/tool/conversion.h"

#define CONVERT_FORMATS(ROW) \
    ROW(bundle)              \
    ROW(safetensors)         \
    ROW(npy)

#define CONVERT_DECLARATION(name) int convert_##name(struct conversion *c, struct error *e);
CONVERT_FORMATS(CONVERT_DECLARATION)
#undef CONVERT_DECLARATION

#endif
