#include "eventlog/tool/value_words.h"

#include "base/bytes.h"
#include "base/json.h"
#include "eventlog/wire.h"

#include <string.h>

enum { FIELD_IMAGE = 4, FIELD_HISTOGRAM = 5, FIELD_AUDIO = 6, FIELD_TENSOR = 8, DIMENSIONS_MOST = 8, TEXT_MOST = 200 };

struct found {
    uint64_t width, height, count, dimensions[DIMENSIONS_MOST], bytes;
    size_t rank;
    int has_size, has_count, has_shape;
    const char *text;
    size_t text_length;
};

const char *value_words_word(const struct event_value *v, const char *plugin)
{
    static const struct { const char *plugin, *word; } known[] = {
        { "images", "image" },       { "histograms", "histogram" }, { "audio", "audio" },
        { "text", "text" },          { "pr_curves", "pr_curve" },   { "mesh", "mesh" },
        { "hparams", "hparams" },    { "custom_scalars", "layout" }, { "scalars", "scalar" },
        { "graph_run_metadata", "graph" }, { "graph_run_metadata_graph", "graph" }, { "graph_keras_model", "graph" },
    };

    switch (v->kind) {
    case EVENT_VALUE_IMAGE: return "image";
    case EVENT_VALUE_OLD_HISTOGRAM:
    case EVENT_VALUE_HISTOGRAM: return "histogram";
    case EVENT_VALUE_AUDIO: return "audio";
    default: break;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].plugin, plugin))
            return known[i].word;
    return v->kind == EVENT_VALUE_TENSOR ? "tensor" : "value";
}

const char *value_words_event(const struct event *event)
{
    switch (event->what) {
    case EVENT_GRAPH: return "graph";
    case EVENT_META_GRAPH: return "meta_graph";
    case EVENT_RUN_METADATA: return "run_metadata";
    case EVENT_LOG_MESSAGE: return "log_message";
    case EVENT_SESSION_LOG:
        return event->session == EVENT_SESSION_START ? "session_start" : event->session == EVENT_SESSION_STOP
                   ? "session_stop" : event->session == EVENT_SESSION_CHECKPOINT ? "checkpoint" : NULL;
    default: return NULL;
    }
}

/* ---- what is inside -------------------------------------------------------------------------------------------- */

static void image(struct found *found, const uint8_t *p, size_t n)
{
    const uint8_t *end = p + n;
    struct wire_field f;

    found->has_size = found->has_count = 1;
    found->count = 1;
    while (p < end && wire_take(&p, end, &f) == 1) {
        if (f.number == 1 && f.type == WIRE_VARINT)
            found->height = f.integer;
        else if (f.number == 2 && f.type == WIRE_VARINT)
            found->width = f.integer;
        else if (f.number == 4 && f.type == WIRE_BYTES)
            found->bytes = f.length;
    }
}

static void shape(struct found *found, const uint8_t *p, size_t n)
{
    const uint8_t *end = p + n;
    struct wire_field f, inner;

    found->has_shape = 1;
    while (p < end && wire_take(&p, end, &f) == 1) {
        const uint8_t *q = f.bytes, *stop = q + f.length;
        uint64_t size = 0;

        if (f.number != 2 || f.type != WIRE_BYTES || found->rank == DIMENSIONS_MOST)
            continue;
        while (q < stop && wire_take(&q, stop, &inner) == 1)
            if (inner.number == 1 && inner.type == WIRE_VARINT)
                size = inner.integer;
        found->dimensions[found->rank++] = size;
    }
}

/* A number of digits, as images have their sizes. */
static uint64_t digits(const uint8_t *p, size_t n)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n && i < 10 && p[i] >= '0' && p[i] <= '9'; i++)
        v = v * 10 + (uint64_t)(p[i] - '0');
    return v;
}

static void tensor(struct found *found, const uint8_t *p, size_t n, const char *word)
{
    int is_image = !strcmp(word, "image"), is_audio = !strcmp(word, "audio"), is_text = !strcmp(word, "text");
    const uint8_t *end = p + n;
    uint64_t strings = 0, bytes = 0;
    struct wire_field f;

    while (p < end && wire_take(&p, end, &f) == 1) {
        if (f.type != WIRE_BYTES)
            continue;
        if (f.number == 2)
            shape(found, f.bytes, f.length);
        if (f.number != 8)
            continue;
        strings++;
        if (is_image && strings == 1)
            found->width = digits(f.bytes, f.length);
        else if (is_image && strings == 2)
            found->height = digits(f.bytes, f.length);
        else
            bytes += f.length;
        if (is_text && strings == 1) {
            found->text = (const char *)f.bytes;
            found->text_length = f.length;
        }
    }
    if (is_image && strings >= 2) {
        found->has_size = found->has_count = 1;
        found->count = strings - 2;
    }
    if (is_audio) {
        found->has_count = 1;
        found->count = found->rank == 2 ? found->dimensions[0] : strings;
    }
    found->bytes = strings ? bytes : found->bytes;
    if (is_image || is_audio)
        found->has_shape = 0;
}

static struct found look(const struct event_value *v, const char *word)
{
    const uint8_t *p = v->bytes, *end = p + v->length;
    struct found found = { .bytes = v->length };
    struct wire_field f;

    while (p < end && wire_take(&p, end, &f) == 1) {
        if (f.type != WIRE_BYTES)
            continue;
        if (f.number == FIELD_IMAGE && v->kind == EVENT_VALUE_IMAGE)
            image(&found, f.bytes, f.length);
        else if (f.number == FIELD_TENSOR && v->kind == EVENT_VALUE_TENSOR)
            tensor(&found, f.bytes, f.length, word);
        else if (f.number == FIELD_HISTOGRAM || f.number == FIELD_AUDIO)
            found.bytes = f.length;
    }
    return found;
}

/* ---- as text --------------------------------------------------------------------------------------------------- */

static void words(struct buffer *b, const struct found *f, const char *word)
{
    if (f->text) {
        size_t n = f->text_length < TEXT_MOST ? f->text_length : TEXT_MOST;

        while (n && n < f->text_length && ((unsigned char)f->text[n] & 0xc0) == 0x80)
            n--; /* not within a character */
        buffer_append(b, f->text, n);
        if (n < f->text_length)
            buffer_append_text(b, "...");
        return;
    }
    if (f->has_size)
        buffer_format(b, "%llux%llu, ", (unsigned long long)f->width, (unsigned long long)f->height);
    if (f->has_count && f->count != 1)
        buffer_format(b, "%llu %s, ", (unsigned long long)f->count, !strcmp(word, "image") ? "images" : "clips");
    for (size_t i = 0; f->has_shape && i < f->rank; i++)
        buffer_format(b, i + 1 < f->rank ? "%llux" : "%llu, ", (unsigned long long)f->dimensions[i]);
    buffer_format(b, "%llu bytes", (unsigned long long)f->bytes);
}

void value_words_details(struct buffer *b, const struct event_value *v, const char *plugin, int json)
{
    const char *word = value_words_word(v, plugin);
    struct found f = look(v, word);

    if (!json) {
        words(b, &f, word);
        return;
    }
    buffer_format(b, ",\"bytes\":%llu", (unsigned long long)f.bytes);
    if (f.has_size)
        buffer_format(b, ",\"width\":%llu,\"height\":%llu", (unsigned long long)f.width, (unsigned long long)f.height);
    if (f.has_count)
        buffer_format(b, ",\"count\":%llu", (unsigned long long)f.count);
    if (f.has_shape) {
        buffer_append_text(b, ",\"shape\":[");
        for (size_t i = 0; i < f.rank; i++)
            buffer_format(b, i ? ",%llu" : "%llu", (unsigned long long)f.dimensions[i]);
        buffer_append_byte(b, ']');
    }
    if (f.text) {
        buffer_append_text(b, ",\"text\":");
        json_span(b, f.text, f.text_length, 0);
    }
}
