/* The text of a state file; what is read, written and read again must be the same text. */
#include "checkpoint/directory/state_file.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buffer text = BUFFER_EMPTY, second = BUFFER_EMPTY;
    struct state_file one, two;
    struct error e = { 0 };

    if (state_file_parse((const char *)data, size, &one, &e) != OK) {
        if (!e.message[0])
            abort();
        return 0;
    }
    state_file_encode(&one, &text);
    if (state_file_parse(buffer_text(&text), text.length, &two, &e) != OK)
        abort();
    state_file_encode(&two, &second);
    if (strcmp(buffer_text(&text), buffer_text(&second)) != 0)
        abort();
    state_file_release(&one);
    state_file_release(&two);
    buffer_release(&text);
    buffer_release(&second);
    return 0;
}
