/* A model file: it is refused, or its network is built or refused; what is built is printed, and read again as itself. */
#include "model/file/model_file.h"
#include "model/file/model_print.h"
#include "model/network.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The network of a text as a text again. 1; 0: it has none. */
static int print(const char *text, size_t size, struct buffer *out)
{
    struct model_file *f = NULL;
    struct network *n = NULL;
    int done = 0;

    if (model_file_parse(&f, "fuzz.model", text, size, NULL) != OK)
        return 0;
    model_file_complete(f, 8, 8, 3, 10);
    if (network_describe(&n, &f->model, NULL) == OK) {
        model_print(out, n, &f->recipe);
        done = 1;
    }
    network_free(n);
    model_file_free(f);
    return done;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buffer once = BUFFER_EMPTY, twice = BUFFER_EMPTY;

    model_file_same((const char *)data, size, (const char *)data, size, NULL);
    if (print((const char *)data, size, &once) && once.length < MODEL_FILE_BYTES_MAX) {
        if (!print(buffer_text(&once), once.length, &twice) || strcmp(buffer_text(&once), buffer_text(&twice)) != 0)
            abort();
    }
    buffer_release(&once);
    buffer_release(&twice);
    return 0;
}
