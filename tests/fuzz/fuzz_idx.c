/* Any bytes as an idx file, plain or gzipped: the first byte picks the size of the pieces they come in. */
#include "dataset/idx.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    size_t piece = size ? (size_t)bytes[0] + 1 : 1;
    struct idx_decoder *d;
    struct error e = { 0 };
    struct idx x;
    int rc = OK;

    if (size == 0 || idx_decoder_new(&d, "file", size - 1, &e) < 0)
        return 0;
    for (size_t at = 1; at < size && rc == OK; at += piece)
        rc = idx_decoder_feed(d, bytes + at, size - at < piece ? size - at : piece, &e);
    if (rc == OK && idx_decoder_finish(d, &x, &e) == OK)
        idx_release(&x);
    else if (!e.message[0])
        abort(); /* an error without a sentence */
    idx_decoder_free(d);
    return 0;
}
