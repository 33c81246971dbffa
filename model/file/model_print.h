/* model_print.h - a network as a model file, from which the same network is made, with the same bits. Pure. */
#ifndef MODEL_FILE_MODEL_PRINT_H
#define MODEL_FILE_MODEL_PRINT_H

#include "base/buffer.h"
#include "model/file/recipe.h"
#include "model/layer_call.h"
#include "model/network.h"

/* Appends the file, in lines of at most 80 columns where names allow it. What is as by default is left out. */
void model_print(struct buffer *out, const struct network *n, const struct recipe *recipe);

/* Appends a call's parameters that are not as by default: "channels=10 size=5". */
void model_print_parameters(struct buffer *out, const struct network_call *call);

/* Appends, for documents, a line for each layer and its parameters, and for each setting. */
void model_print_reference(struct buffer *out);

#endif
