/*
 * model_settings.h - the table of settings of a model file: those of the model, and those of its recipe, which a
 * command line may override and scoring ignores.
 */
#ifndef MODEL_FILE_MODEL_SETTINGS_H
#define MODEL_FILE_MODEL_SETTINGS_H

#include "base/buffer.h"
#include "base/error.h"
#include "model/file/model_description.h"

struct model_setting {
    const char *name, *form, *help;
    int of_recipe;
    /* values: the words after the name. ERR_ARG with a sentence that names neither file nor line. */
    int (*parse)(struct model_file *f, char *const *values, size_t count, struct error *e);
    /* Appends the values; nothing: the line is not needed. */
    void (*print)(struct buffer *out, const struct model *m, const struct recipe *r);
};

const struct model_setting *model_settings(size_t *count);

#endif
