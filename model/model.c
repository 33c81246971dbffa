#include "model/model.h"

#include "model/models/models.h"
#include "model/real.h"

#include <string.h>

#define MODEL_ADDRESS(name) &model_##name,
#define MODEL_TEXT(name) #name,
static const struct model *const models[] = { MODELS(MODEL_ADDRESS) };
static const char *const names[] = { MODELS(MODEL_TEXT) NULL };

struct field model_input(const struct model *m, const void *input, int count)
{
    return (struct field){
        input, m->integers ? ELEMENT_INT32 : ELEMENT_REAL, 4, { count, m->height, m->width, m->channels }
    };
}

int model_in_scope(const char *scopes, const char *variable)
{
    while (scopes && *scopes) {
        const size_t n = strcspn(scopes, ",");

        if (n && !strncmp(variable, scopes, n) && (!variable[n] || variable[n] == '/' || variable[n] == '.'))
            return 1;
        scopes += n + (scopes[n] == ',');
    }
    return 0;
}

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
