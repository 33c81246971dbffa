/* Any bytes as records of CIFAR-10 and as its list of class names. */
#include "dataset/cifar10.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    uint8_t *images = malloc(size + 1), *labels = malloc(size / CIFAR10_RECORD + 1);
    char names[CIFAR10_CLASSES][CIFAR10_NAME_MAX];
    struct error e = { 0 };

    if (images && labels && cifar10_decode(bytes, size, "file", 0, images, labels, &e) < 0 && !e.message[0])
        abort(); /* an error without a sentence */
    e = (struct error){ 0 };
    if (cifar10_decode_names((const char *)bytes, size, "file", names, &e) < 0 && !e.message[0])
        abort();
    free(labels);
    free(images);
    return 0;
}
