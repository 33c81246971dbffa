#include "eventlog/tool/value_words.h"

#include "base/human.h"
#include "base/json.h"
#include "eventlog/format/value_content.h"
#include "eventlog/format/wire.h"

#include <string.h>

enum { FIELD_HISTOGRAM = 5, FIELD_AUDIO = 6, TEXT_MOST = 200 };

struct found {
    struct tensor_content tensor;
    size_t rank; /* how many of its dimensions are known */
    int64_t width, height;
    uint64_t count, bytes;
    int has_size, has_count, has_shape;
    struct span text; /* bytes NULL: none */
};

const char *value_words_word(const struct event_value *v, const char *plugin)
{
    static const struct {
        const char *plugin, *word;
    } known[] = {
        { "images", "image" },
        { "histograms", "histogram" },
        { "audio", "audio" },
        { "text", "text" },
        { "pr_curves", "pr_curve" },
        { "mesh", "mesh" },
        { "hparams", "hparams" },
        { "custom_scalars", "layout" },
        { "scalars", "scalar" },
        { "graph_run_metadata", "graph" },
        { "graph_run_metadata_graph", "graph" },
        { "graph_keras_model", "graph" },
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
        return event->session == EVENT_SESSION_START        ? "session_start"
               : event->session == EVENT_SESSION_STOP       ? "session_stop"
               : event->session == EVENT_SESSION_CHECKPOINT ? "checkpoint"
                                                            : NULL;
    default: return NULL;
    }
}

/* ---- what is inside -------------------------------------------------------------------------------------------- */

static void tensor(struct found *found, const struct event_value *v, const char *word)
{
    int is_image = !strcmp(word, "image"), is_audio = !strcmp(word, "audio"), is_text = !strcmp(word, "text");
    struct span text;
    size_t at = 0, strings = 0, bytes = 0;

    if (!tensor_content_read(&found->tensor, v->bytes, v->length))
        return;
    for (; tensor_content_string(&found->tensor, &at, &text); strings++) {
        bytes += is_image && strings < 2 ? 0 : text.length;
        if (is_text && !strings)
            found->text = text;
    }
    found->bytes = strings ? bytes : found->bytes;
    found->has_shape = !is_image && !is_audio;
    if (is_image && strings >= 2) {
        found->has_size = found->has_count = 1;
        found->count = strings - 2;
    } else if (is_audio) {
        found->has_count = 1;
        found->count = found->tensor.rank == 2 ? (uint64_t)found->tensor.shape[0] : strings;
    }
}

static struct found look(const struct event_value *v, const char *word)
{
    const uint8_t *p = v->bytes, *end = p + v->length;
    struct found found = { .bytes = v->length };
    struct wire_field f;
    struct span file;

    if (v->kind == EVENT_VALUE_TENSOR) {
        tensor(&found, v, word);
    } else if (v->kind == EVENT_VALUE_IMAGE) {
        found.has_size = found.has_count = 1;
        found.count = 1;
        if (image_content_read(v->bytes, v->length, &file))
            found.bytes = file.length;
    } else {
        while (wire_take(&p, end, &f) == 1)
            if (f.type == WIRE_BYTES && (f.number == FIELD_HISTOGRAM || f.number == FIELD_AUDIO))
                found.bytes = f.length;
    }
    if (found.has_size)
        image_content_size(v->bytes, v->length, &found.width, &found.height);
    found.rank = found.tensor.rank < TENSOR_RANK ? (size_t)found.tensor.rank : TENSOR_RANK;
    return found;
}

/* ---- as text --------------------------------------------------------------------------------------------------- */

static void words(struct buffer *b, const struct found *f, const char *word)
{
    char size[HUMAN_TEXT_MAX];

    if (f->text.bytes) {
        size_t n = f->text.length < TEXT_MOST ? f->text.length : TEXT_MOST;

        while (n && n < f->text.length && (f->text.bytes[n] & 0xc0) == 0x80)
            n--; /* not within a character */
        buffer_append(b, f->text.bytes, n);
        if (n < f->text.length)
            buffer_append_text(b, "...");
        return;
    }
    if (f->has_size)
        buffer_format(b, "%lldx%lld, ", (long long)f->width, (long long)f->height);
    if (f->has_count && f->count != 1)
        buffer_format(b, "%llu %s, ", (unsigned long long)f->count, !strcmp(word, "image") ? "images" : "clips");
    for (size_t i = 0; f->has_shape && i < f->rank; i++)
        buffer_format(b, i + 1 < f->rank ? "%lldx" : "%lld, ", (long long)f->tensor.shape[i]);
    buffer_append_text(b, human_bytes(f->bytes, size));
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
        buffer_format(b, ",\"width\":%lld,\"height\":%lld", (long long)f.width, (long long)f.height);
    if (f.has_count)
        buffer_format(b, ",\"count\":%llu", (unsigned long long)f.count);
    if (f.has_shape) {
        buffer_append_text(b, ",\"shape\":[");
        for (size_t i = 0; i < f.rank; i++)
            buffer_format(b, i ? ",%lld" : "%lld", (long long)f.tensor.shape[i]);
        buffer_append_byte(b, ']');
    }
    if (f.text.bytes) {
        buffer_append_text(b, ",\"text\":");
        json_span(b, (const char *)f.text.bytes, f.text.length, 0);
    }
}
