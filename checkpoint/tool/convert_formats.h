/*
 * convert_formats.h - the formats that `checkpoint convert` writes: ROW(the format's name; the end of destinations that
 * mean it, "/" also for a directory, NULL: none; the same in the words of --help). convert_NAME() in convert_NAME.c
 * writes the selected tensors to the destination.
 */
#ifndef CHECKPOINT_TOOL_CONVERT_FORMATS_H
#define CHECKPOINT_TOOL_CONVERT_FORMATS_H

#include "checkpoint/tool/conversion.h"

#define CONVERT_FORMATS(ROW) \
    ROW(bundle, NULL, "") \
    ROW(safetensors, ".safetensors", "safetensors if DESTINATION ends in .safetensors, ") \
    ROW(npy, "/", "npy if it is a directory or ends in '/', ")

#define CONVERT_DECLARATION(name, end, when) int convert_##name(struct conversion *c, struct error *e);
CONVERT_FORMATS(CONVERT_DECLARATION)
#undef CONVERT_DECLARATION

#endif
