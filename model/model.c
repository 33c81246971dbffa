#include "model/model.h"

#include "model/models/models.h"

#include <string.h>

#define MODEL_ADDRESS(name) &model_##name,
#define MODEL_TEXT(name) #name,
static const struct model *const models[] = { MODELS(MODEL_ADDRESS) };
static const char *const names[] = { MODELS(MODEL_TEXT) NULL };

const struct model *model_find(const char *name)
{
    for (size_t i = 0; names[i]; i++)
        if (!strcmp(names[i], name))
            return models[i];
    return NULL;
}

const char *const *model_names(void)
{
    return names;
}
