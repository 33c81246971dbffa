#include "eventlog/server/loss_report.h"

#include "base/buffer.h"
#include "base/spool.h"
#include "eventlog/format/event_decode.h"
#include "eventlog/format/event_encode.h"
#include "eventlog/format/wire.h"
#include "eventlog/server/store/run_data.h"
#include "eventlog/server/store/utf8_text.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* fields of an Event and what is in it */
enum { EVENT_WALL_TIME = 1, EVENT_SUMMARY_FIELD = 5, SUMMARY_VALUE = 1 };
enum { VALUE_TAG = 1, VALUE_TENSOR = 8, VALUE_METADATA = 9 };
enum { METADATA_PLUGIN_DATA = 1, METADATA_DATA_CLASS = 4, PLUGIN_DATA_NAME = 1, CLASS_TENSOR = 2 };
enum { TENSOR_TYPE = 1, TENSOR_SHAPE_FIELD = 2, TENSOR_STRING = 8, SHAPE_DIMENSION = 2, DIMENSION_SIZE = 1 };

struct loss_report {
    struct spool file;
    char path[64];
    struct run_data *run;
    pthread_mutex_t lock; /* of what follows */
    struct buffer lines;
    size_t noted, shown; /* (size_t)-1: never */
};

int loss_report_open(struct loss_report **out, struct error *e)
{
    struct loss_report *r = calloc(1, sizeof *r);
    int rc;

    *out = NULL;
    if (!r || !(r->run = run_data_new(LOSS_REPORT_RUN, 1))) {
        free(r);
        return error_memory(e, NULL, "for a report");
    }
    if ((rc = spool_open(&r->file, e)) != OK) {
        run_data_free(r->run);
        free(r);
        return rc;
    }
    snprintf(r->path, sizeof r->path, "/proc/self/fd/%d", r->file.fd);
    pthread_mutex_init(&r->lock, NULL);
    r->shown = (size_t)-1;
    *out = r;
    return OK;
}

void loss_report_close(struct loss_report *r)
{
    if (!r)
        return;
    run_data_free(r->run);
    spool_close(&r->file);
    buffer_release(&r->lines);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

void loss_report_note(struct loss_report *r, const char *text)
{
    pthread_mutex_lock(&r->lock);
    if (r->noted++ < LOSS_REPORT_LINES) {
        buffer_append_text(&r->lines, "    "); /* as it is, in Markdown */
        for (; *text; text++)
            buffer_append_byte(&r->lines, *text == '\n' ? ' ' : *text);
        buffer_append_byte(&r->lines, '\n');
    }
    pthread_mutex_unlock(&r->lock);
}

/* The text so far; *noted: how many sentences it has. */
static void append_report(struct loss_report *r, struct buffer *out, size_t *noted)
{
    pthread_mutex_lock(&r->lock);
    *noted = r->noted;
    if (!r->noted)
        buffer_append_text(out, "Nothing is missing.\n");
    else
        buffer_format(out, "%zu message%s about what is missing:\n\n", r->noted, r->noted == 1 ? "" : "s");
    utf8_text_append(out, buffer_text(&r->lines), r->lines.length);
    if (r->noted > LOSS_REPORT_LINES)
        buffer_format(out, "\nand %zu more\n", r->noted - LOSS_REPORT_LINES);
    pthread_mutex_unlock(&r->lock);
}

/* A summary with the text, like those of the text plugin. */
static void write_event(struct wire *w, double now, const char *text)
{
    size_t summary, value, metadata, part, inner;

    wire_number(w, EVENT_WALL_TIME, now);
    summary = wire_begin(w, EVENT_SUMMARY_FIELD);
    value = wire_begin(w, SUMMARY_VALUE);
    wire_text(w, VALUE_TAG, LOSS_REPORT_TAG);
    part = wire_begin(w, VALUE_TENSOR);
    wire_integer(w, TENSOR_TYPE, EVENT_STRING);
    inner = wire_begin(w, TENSOR_SHAPE_FIELD);
    wire_end(w, inner);
    wire_text_always(w, TENSOR_STRING, text);
    wire_end(w, part);
    metadata = wire_begin(w, VALUE_METADATA);
    part = wire_begin(w, METADATA_PLUGIN_DATA);
    wire_text(w, PLUGIN_DATA_NAME, "text");
    wire_end(w, part);
    wire_integer(w, METADATA_DATA_CLASS, CLASS_TENSOR);
    wire_end(w, metadata);
    wire_end(w, value);
    wire_end(w, summary);
}

/* Replaces the event before it, because it is at the same step. */
static int add_report(struct loss_report *r, const struct wire *w)
{
    struct buffer record = BUFFER_EMPTY;
    const uint64_t offset = r->file.size;
    struct event event;
    int good;

    event_encode_record(&record, w->bytes.data, w->bytes.length);
    good = buffer_ok(&record) && spool_append(&r->file, record.data, record.length, NULL) == OK &&
           event_decode((const uint8_t *)w->bytes.data, w->bytes.length, &event, NULL) == OK &&
           run_data_event(r->run, 0, r->path, &event, offset, NULL) == OK;
    buffer_release(&record);
    return good;
}

int loss_report_view(struct loss_report *r, double now, struct run_view **view)
{
    struct buffer text = BUFFER_EMPTY;
    struct wire w = WIRE_EMPTY;
    size_t noted;
    int good = 0;

    append_report(r, &text, &noted);
    /* Where only the number changes, it is told again when it has doubled. */
    if (noted != r->shown && (r->shown < LOSS_REPORT_LINES || r->shown == (size_t)-1 || noted >= 2 * r->shown) &&
        buffer_ok(&text)) {
        write_event(&w, now, buffer_text(&text));
        good = wire_check(&w, "a report", NULL) == OK && add_report(r, &w) && run_data_view(r->run, view, NULL) == OK;
    }
    r->shown = good ? noted : r->shown;
    buffer_release(&text);
    wire_release(&w);
    return good;
}
