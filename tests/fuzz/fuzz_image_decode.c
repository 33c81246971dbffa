/* Any bytes as a JPEG or PNG file, decoded, and brought to a size that the first byte picks. */
#include "dataset/stream/image_resize.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    uint8_t out[16 * 16 * 3];
    struct error e = { 0 };
    struct image head, image;
    int rc;

    if (size == 0)
        return 0;
    if (image_decode_size(bytes + 1, size - 1, "file", &head, &e) == OK && (int64_t)head.height * head.width > 1 << 20)
        return 0; /* time, not a finding */
    if ((rc = image_decode(bytes + 1, size - 1, "file", &image, &e)) == OK) {
        if (image.height != head.height || image.width != head.width)
            abort();
        if (image_resize(&image, "file", 1 + bytes[0] % 16, 1 + bytes[0] / 16, out, &e) != OK)
            abort();
    } else if (!e.message[0] || image.pixels)
        abort(); /* an error without a sentence, or pixels with one */
    free(image.pixels);
    return 0;
}
