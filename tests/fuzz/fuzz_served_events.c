/* Any bytes as the events of a log under the data server, in records with right CRCs: all series are listed and read, and
 * each blob of each point is asked for. Each answer is a sequence of whole messages, and each message is protobuf's. The
 * input is events, each after its length in two bytes. */
#include "eventlog/server/data_answer.h"

#include "base/bytes.h"
#include "base/record_frame.h"
#include "eventlog/format/wire.h"
#include "eventlog/read/event_reader.h"
#include "eventlog/server/blob_key.h"
#include "eventlog/server/store/run_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_records(int fd, const uint8_t *data, size_t size)
{
    uint8_t *record = malloc(size + RECORD_OVERHEAD);

    if (!record)
        abort();
    for (size_t n; size >= 2; data += n, size -= n) {
        n = data[0] | (size_t)data[1] << 8;
        data += 2;
        size -= 2;
        n = n < size ? n : size;
        memcpy(record + RECORD_HEADER, data, n);
        record_seal(record, n);
        if (write(fd, record, n + RECORD_OVERHEAD) != (ssize_t)(n + RECORD_OVERHEAD))
            abort();
    }
    free(record);
}

/* NULL: no event with a time. */
static struct run_view *load(const char *path)
{
    struct run_data *run = run_data_new("r", 1);
    struct event_reader *reader;
    struct log_input input = { 0 };
    struct event_damage damage;
    struct run_view *view;
    struct event event;
    uint64_t offset;
    size_t n;
    int rc;

    if (!run || event_reader_open(&reader, &input, path, NULL) != OK)
        abort();
    while ((rc = event_reader_next(reader, &event, &damage, NULL)) > 0) {
        if (rc != EVENTLOG_READ_EVENT)
            continue;
        event_reader_record(reader, &n, &offset);
        if (run_data_event(run, 0, path, &event, offset, NULL) != OK)
            abort(); /* one file never overlaps another */
    }
    if (run_data_view(run, &view, NULL) != OK)
        abort();
    run_data_free(run);
    event_reader_close(reader);
    log_input_release(&input);
    return view;
}

static void check_messages(const struct buffer *out)
{
    const uint8_t *at = (const uint8_t *)out->data, *end = out->length ? at + out->length : at;

    while (at < end) {
        const uint8_t *message_end;
        struct wire_field field;

        if (end - at < DATA_PREFIX || *at || get_be32(at + 1) > (size_t)(end - at) - DATA_PREFIX)
            abort();
        message_end = at + DATA_PREFIX + get_be32(at + 1);
        for (at += DATA_PREFIX; at < message_end;)
            if (wire_take(&at, message_end, &field) != 1)
                abort();
    }
}

static struct span span_of(const char *text, size_t n)
{
    return (struct span){ (const uint8_t *)text, n };
}

static enum data_code ask(struct data_source *source, const struct data_request *request)
{
    const struct data_patience patience = { 0, NULL };
    char message[DATA_ANSWER_MESSAGE];
    struct buffer out = BUFFER_EMPTY;
    enum data_code code = data_answer(source, request, &patience, &out, message);

    if (code == DATA_OK)
        check_messages(&out);
    else if (out.length || !*message)
        abort();
    buffer_release(&out);
    return code;
}

static void ask_for_blobs(struct data_source *source, const struct run_view *run, struct series_view *series)
{
    for (size_t row = 0; row < series->count; row++)
        for (uint64_t index = 0; index <= series->most_blobs && index < 8; index++) {
            struct blob_key key = { .run = span_of(run->name, run->name_length),
                                    .tag = span_of(series->info->tag, series->info->tag_length),
                                    .step = (int64_t)series_view_at(series, row, COLUMN_STEP),
                                    .index = index };
            struct data_request request = { .method = DATA_READ_BLOB };
            struct buffer text = BUFFER_EMPTY;

            blob_key_append(&text, &key);
            request.blob_key = span_of(text.data, text.length);
            switch (ask(source, &request)) {
            case DATA_OK:
            case DATA_NOT_FOUND: break;
            default: abort();
            }
            buffer_release(&text);
        }
}

static void ask_for_all(struct data_source *source, const struct run_view *run)
{
    struct data_request request = { .has_limit = 1 };

    for (request.method = DATA_GET_EXPERIMENT; request.method < DATA_LIST_SCALARS; request.method++)
        if (ask(source, &request) != DATA_OK)
            abort();
    for (size_t i = 0; i < run->count; i++) {
        const struct series_info *info = run->series[i]->info;

        request.plugin = span_of(info->plugin, info->plugin_length);
        for (request.method = DATA_LIST_SCALARS; request.method < DATA_READ_BLOB; request.method++)
            for (request.limit = 1; request.limit <= 1000; request.limit *= 10)
                if (ask(source, &request) != (info->plugin_length ? DATA_OK : DATA_INVALID_ARGUMENT))
                    abort();
        if (info->class == SERIES_BLOBS)
            ask_for_blobs(source, run, run->series[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct snapshot snapshot;
    struct data_source source = { .snapshot = &snapshot, .location = "x", .values = value_source_new() };
    struct run_view *run;
    struct log_view *view;
    char path[64];
    int fd = memfd_create("events", MFD_CLOEXEC);

    if (fd < 0 || !source.values || snapshot_init(&snapshot) != OK)
        abort();
    write_records(fd, data, size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if ((run = load(path))) {
        if (!(view = log_view_new(&run, 1)))
            abort();
        snapshot_put(&snapshot, view);
        ask_for_all(&source, run);
        run_view_drop(run);
    }
    snapshot_release(&snapshot);
    value_source_free(source.values);
    close(fd);
    return 0;
}
