/*
 * loaded_network.h - a network of a built-in model, of one that only tests have, or of a model file, with the weights of
 * a checkpoint that another program may have written. At the end, after all networks: loaded_release().
 */
#ifndef TESTS_PEERS_LOADED_NETWORK_H
#define TESTS_PEERS_LOADED_NETWORK_H

#include "checkpoint/tensor_bundle.h"
#include "model/file/model_file.h"
#include "model/network.h"
#include "tests/peers/layer_models.h"

#include <string.h>

static inline int loaded_variable(struct tensor_bundle *bundle, struct network *n, const struct variable *v,
                                  struct error *e)
{
    const struct tensor_entry *entry = tensor_bundle_find(bundle, v->name);
    real *to = (v->kind == VARIABLE_WEIGHT ? network_parameters(n) : network_statistics(n)) + v->offset;

    if (!entry)
        return error_set(e, ERR_ARG, "the checkpoint has no %s", v->name);
    if (entry->rank != v->rank || memcmp(entry->shape, v->shape, (size_t)v->rank * sizeof *v->shape) != 0)
        return error_set(e, ERR_ARG, "%s has another shape in the checkpoint", v->name);
    return tensor_bundle_read_float(bundle, entry, to, v->count, e);
}

static struct model_file *loaded_file; /* networks borrow it */

/* The model of that name, or of the file. NULL: there is none. */
static inline const struct model *loaded_model(const char *name, struct error *e)
{
    const struct model *model;

    if (!model_file_is_path(name)) {
        if (!(model = layer_model_find(name)))
            error_set(e, ERR_ARG, "unknown model %s", name);
        return model;
    }
    if (!loaded_file && model_file_open(&loaded_file, name, e) < 0)
        return NULL;
    return &loaded_file->model;
}

/* Puts the checkpoint's values into n; prefix NULL: none. */
static inline int loaded_weights(struct network *n, const char *prefix, struct error *e)
{
    struct tensor_bundle *bundle = NULL;
    const struct variable *variables;
    size_t count;
    int rc;

    if (!prefix)
        return OK;
    if ((rc = tensor_bundle_open(&bundle, prefix, e)) < 0)
        return rc;
    variables = network_variables(n, &count);
    for (size_t i = 0; i < count && rc == OK; i++)
        rc = loaded_variable(bundle, n, &variables[i], e);
    tensor_bundle_close(bundle);
    return rc;
}

/* A network of the model's name with weights from the checkpoint (prefix NULL: none). */
static inline int loaded_network(struct network **out, const char *name, const char *prefix, int max_batch,
                                 struct error *e)
{
    const struct model *model = loaded_model(name, e);
    int rc;

    if (!model)
        return e->code;
    rc = network_new(out, model, max_batch, e);
    return rc < 0 ? rc : loaded_weights(*out, prefix, e);
}

/* The same for inference alone, as the evaluator's. */
static inline int loaded_for_inference(struct network **out, const char *name, const char *prefix, int max_batch,
                                       struct error *e)
{
    const struct model *model = loaded_model(name, e);
    int rc;

    if (!model)
        return e->code;
    rc = network_new_for_inference(out, model, max_batch, e);
    return rc < 0 ? rc : loaded_weights(*out, prefix, e);
}

static inline void loaded_release(void)
{
    model_file_free(loaded_file);
}

#endif
