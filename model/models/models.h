/* models.h - the models of this folder, one file each; the table of their names is in model.c. */
#ifndef MODEL_MODELS_MODELS_H
#define MODEL_MODELS_MODELS_H

#include "model/model.h"

extern const struct model model_lenet, model_cifar10_cnn, model_resnet32;

#endif
