/* Any text as the option --record-fields: refused with a sentence, or a layout whose parts are within the record. */
#include "dataset/stream/record_layout.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *text = malloc(size + 1);
    struct error e = { 0 };
    struct fixed_layout l;

    if (!text)
        abort();
    memcpy(text, bytes, size);
    text[size] = '\0';
    if (record_layout_parse(&l, text, &e) < 0) {
        if (!e.message[0])
            abort();
    } else if (l.label_at + l.label_bytes > l.bytes || l.height < 1 || l.width < 1 || l.channels < 1 ||
               l.input_at + (size_t)l.height * (size_t)l.width * (size_t)l.channels * fixed_type_size(l.type) >
                   l.bytes) {
        abort();
    }
    free(text);
    return 0;
}
