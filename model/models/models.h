/* models.h - the table of models: a row is the name of a file in this folder, of its model, and of its model_NAME. */
#ifndef MODEL_MODELS_MODELS_H
#define MODEL_MODELS_MODELS_H

struct model; /* model.h */

#define MODELS(ROW) \
    ROW(lenet) \
    ROW(cifar10_cnn) \
    ROW(resnet32) \
    ROW(next_word) \
    ROW(mnist_cnn) \
    ROW(mnist_lstm) \
    ROW(mnist_lstm_128) \
    ROW(language_model) \
    ROW(resnet50) \
    ROW(resnet50b) \
    ROW(resnet50_torchvision) \
    ROW(show_and_tell) \
    ROW(inception_v3)

#define MODEL_DECLARATION(name) extern const struct model model_##name;
MODELS(MODEL_DECLARATION)

#endif
