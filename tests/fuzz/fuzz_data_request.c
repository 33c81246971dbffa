/* Any bytes as a request to a data server, by its first byte, and as the key of a blob: each is answered or refused, and
 * an answer is a sequence of whole messages. */
#include "eventlog/server/data_answer.h"

#include "base/bytes.h"
#include "eventlog/server/blob_key.h"
#include "eventlog/server/store/run_data.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Two runs with a curve of ten points and an image, whose file does not exist. */
static void fill(struct snapshot *s)
{
    /* wall time 2, summary { a: 1 } and { tag "i", image {} } */
    static const uint8_t number[] = { 0x09, 0,    0,    0,    0,   0,    0, 0, 0x40, 0x2a, 0x0a,
                                      0x0a, 0x08, 0x0a, 0x01, 'a', 0x15, 0, 0, 0x80, 0x3f },
                         image[] = {
                             0x09, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x2a, 0x07, 0x0a, 0x05, 0x0a, 0x01, 'i', 0x22, 0
                         };
    struct run_view *views[2];
    struct log_view *view;

    for (int i = 0; i < 2; i++) {
        struct run_data *r = run_data_new(i ? "b" : "a", 1);
        struct event event;

        if (!r || event_decode(number, sizeof number, &event, NULL) != 0)
            abort();
        for (event.step = 0; event.step < 10; event.step++)
            if (run_data_event(r, 0, "/nowhere", &event, 0, NULL) != OK)
                abort();
        if (event_decode(image, sizeof image, &event, NULL) != 0 ||
            run_data_event(r, 0, "/nowhere", &event, 0, NULL) != OK || run_data_view(r, &views[i], NULL) != OK)
            abort();
        run_data_free(r);
    }
    if (!(view = log_view_new(views, 2)))
        abort();
    run_view_drop(views[0]);
    run_view_drop(views[1]);
    snapshot_put(s, view);
}

static void check_messages(const struct buffer *out)
{
    size_t at = 0;

    while (at < out->length) {
        if (out->length - at < DATA_PREFIX || out->data[at])
            abort();
        at += DATA_PREFIX + get_be32(out->data + at + 1);
    }
    if (at != out->length)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct snapshot snapshot;
    static struct data_source source = { .snapshot = &snapshot, .location = "x" };
    const struct data_patience patience = { 0, NULL };
    char message[DATA_ANSWER_MESSAGE];
    struct buffer out = BUFFER_EMPTY;
    struct data_request request;
    struct blob_key key;

    if (!source.values) {
        if (snapshot_init(&snapshot) != OK || !(source.values = value_source_new()))
            abort();
        fill(&snapshot);
    }
    if (!size)
        return 0;
    if (data_request_read(&request, (enum data_method)(*data % DATA_METHODS), data + 1, size - 1, NULL) == OK) {
        if (data_answer(&source, &request, &patience, &out, message) == DATA_OK)
            check_messages(&out);
        else if (out.length)
            abort();
        data_request_release(&request);
    }
    buffer_release(&out);
    if (blob_key_read(&key, data, size, NULL) == OK) {
        if (!utf8_valid(key.run.bytes, key.run.length, NULL) || !utf8_valid(key.tag.bytes, key.tag.length, NULL))
            abort();
        blob_key_append(&out, &key);
        buffer_release(&out);
        blob_key_release(&key);
    }
    return 0;
}
