/* Any bytes as CIFAR-10's list of class names. */
#include "dataset/cifar10.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char names[CIFAR10_CLASSES][CIFAR10_NAME_MAX];
    struct error e = { 0 };

    if (cifar10_decode_names((const char *)bytes, size, "file", names, &e) < 0 && !e.message[0])
        abort(); /* an error without a sentence */
    return 0;
}
