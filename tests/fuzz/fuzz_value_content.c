/* Any bytes as the values of an event: tensors, histograms, files and hyperparameters are read out of each. */
#include "eventlog/format/value_content.h"

#include "eventlog/format/event_decode.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int count(void *context, const struct hparam *h)
{
    size_t *sum = context;

    for (size_t i = 0; i < h->name.length; i++)
        *sum += h->name.bytes[i];
    for (size_t i = 0; i < h->text.length; i++)
        *sum += h->text.bytes[i];
    return 0;
}

static void read_all(const uint8_t *value, size_t n)
{
    struct buffer rows = BUFFER_EMPTY, bytes = BUFFER_EMPTY;
    struct tensor_content t;
    struct span text, file;
    size_t found, at = 0;

    if (histogram_content_rows(value, n, &rows, &found) && rows.length != found * sizeof(struct histogram_row))
        abort();
    if (tensor_content_read(&t, value, n)) {
        while (tensor_content_string(&t, &at, &text))
            if (text.length > n)
                abort();
        if (tensor_content_bytes(&t, 1 << 16, &bytes) && bytes.length != t.elements * tensor_content_item(t.dtype))
            abort();
    }
    if (image_content_read(value, n, &file))
        media_extension(file.bytes, file.length);
    audio_content_read(value, n, &file);
    buffer_release(&rows);
    buffer_release(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct summary_metadata m;
    struct event_values values;
    const struct event_value *value;
    struct event event;
    size_t sum = 0;

    read_all(data, size);
    summary_metadata_read(&m, data, size);
    summary_metadata_hparams(&m, count, &sum);
    if (event_decode(data, size, &event, NULL) != 0)
        return 0;
    event_values_init(&values, &event);
    while ((value = event_values_next(&values))) {
        read_all(value->bytes, value->length);
        if (value->metadata) {
            summary_metadata_read(&m, value->metadata, value->metadata_length);
            summary_metadata_hparams(&m, count, &sum);
        }
    }
    return 0;
}
