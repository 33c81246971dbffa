/* model_file_internal.h - what the reader of a model file leaves to building the network. */
#ifndef MODEL_FILE_MODEL_FILE_INTERNAL_H
#define MODEL_FILE_MODEL_FILE_INTERNAL_H

#include "model/file/model_description.h"
#include "model/layer_call.h"

/* A layer, with all arguments. Value 0 is the input, value k what call k - 1 gives. */
struct model_file_call {
    const struct layer_call *kind;
    int line;
    char name[CALL_NAME_MAX];
    struct argument arguments[CALL_PARAMETERS_MAX];
    int inputs[CALL_INPUTS_MAX], input_count;
};

enum { MODEL_LAYER_KINDS_MAX = 64 };
/* All kinds, by layers/layers.h, and NULL. */
const struct layer_call *const *model_layer_kinds(void);

/* Fills f's settings and calls from its text. */
int model_reader_read(struct model_file *f, struct error *e);

#endif
