/* model_description.h - what a model file says, once it is read, and the limits of reading. */
#ifndef MODEL_FILE_MODEL_DESCRIPTION_H
#define MODEL_FILE_MODEL_DESCRIPTION_H

#include "model/file/recipe.h"
#include "model/model.h"

#include <stddef.h>

enum {
    MODEL_FILE_BYTES_MAX = 1 << 20,
    MODEL_FILE_LINE_MAX = 4096,
    MODEL_FILE_LAYERS_MAX = 4096,
    MODEL_FILE_STEPS_MAX = 100000, /* lines read, with those of repeats each time */
    MODEL_FILE_DEPTH_MAX = 8,      /* blocks within each other */
    MODEL_FILE_WORD_MAX = 64,
};

struct model_file_call; /* model_file_internal.h */

struct model_file {
    struct model model; /* model.file is this. Its height, width, channels, and classes are 0 if the file leaves them to
                           the data: network_new() wants them */
    struct recipe recipe;
    char *path, *text; /* as given */
    size_t length;
    char words[4][MODEL_FILE_WORD_MAX]; /* optimizer, transforms */
    struct model_file_call *calls;
    size_t call_count, call_room;
};

#endif
