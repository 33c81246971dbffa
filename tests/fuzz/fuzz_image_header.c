/* Any bytes as a picture: a size comes with a kind and only with one, and needs no more bytes than were given. */
#include "eventlog/write/kinds/image_header.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1); /* its end is the end of the memory */
    uint32_t width, height;

    memcpy(copy, data, size);
    if ((image_header_read(copy, size, &width, &height) != IMAGE_UNKNOWN) != (width && height))
        abort();
    free(copy);
    return 0;
}
