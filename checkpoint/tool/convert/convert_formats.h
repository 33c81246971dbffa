/*
 * convert_formats.h - the formats that `checkpoint convert` writes: ROW(the format's name, and that of its file,
 * convert_NAME.c, in which convert_NAME() writes what is wanted of the source to its destination; the end of
 * destinations that mean it, "/" also for a directory, NULL: none; the same as --help says it).
 */
#ifndef CHECKPOINT_TOOL_CONVERT_CONVERT_FORMATS_H
#define CHECKPOINT_TOOL_CONVERT_CONVERT_FORMATS_H

#include "checkpoint/tool/convert/conversion.h"

#define CONVERT_FORMATS(ROW) \
    ROW(bundle, NULL, "") \
    ROW(safetensors, ".safetensors", "safetensors if DESTINATION ends in .safetensors, ") \
    ROW(npy, "/", "npy if it is a directory or ends in '/', ")

#define CONVERT_DECLARATION(name, end, when) int convert_##name(struct conversion *c, struct error *e);
CONVERT_FORMATS(CONVERT_DECLARATION)
#undef CONVERT_DECLARATION

#endif
