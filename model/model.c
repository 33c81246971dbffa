#include "model/model.h"

#include "model/models/models.h"

#include <string.h>

static const struct model *const models[] = { &model_lenet, &model_cifar10_cnn, &model_resnet32 };
static const char *const names[] = { "lenet", "cifar10_cnn", "resnet32", NULL };

const struct model *model_find(const char *name)
{
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (!strcmp(models[i]->name, name))
            return models[i];
    return NULL;
}

const char *const *model_names(void)
{
    return names;
}
