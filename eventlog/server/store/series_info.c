#include "eventlog/server/store/series_info.h"

#include "base/bytes.h"
#include "eventlog/format/summary_metadata.h"
#include "eventlog/format/wire.h"
#include "eventlog/server/store/utf8_text.h"

#include <stdlib.h>
#include <string.h>

/* fields of SummaryMetadata, and of its PluginData */
enum { METADATA_PLUGIN = 1, METADATA_NAME, METADATA_DESCRIPTION, METADATA_CLASS, PLUGIN_NAME = 1, PLUGIN_CONTENT };

struct description {
    struct span plugin, content, display_name, text;
    enum series_class class;
};

/* The metadata that a legacy value gets, by its kind. */
static const struct {
    const char *plugin, *content;
    size_t length;
    enum series_class class;
} legacy[] = {
    [EVENT_VALUE_SIMPLE] = { "scalars", "", 0, SERIES_SCALARS },
    [EVENT_VALUE_IMAGE] = { "images", "\x10\x01", 2, SERIES_BLOBS },        /* converted_to_tensor */
    [EVENT_VALUE_AUDIO] = { "audio", "\x10\x0b\x18\x01", 4, SERIES_BLOBS }, /* encoding WAV, converted_to_tensor */
    [EVENT_VALUE_HISTOGRAM] = { "histograms", "", 0, SERIES_TENSORS },
    [EVENT_VALUE_TENSOR] = { NULL, NULL, 0, SERIES_UNKNOWN },
};

static const struct {
    const char *plugin;
    enum series_class class;
} plugins[] = {
    { "scalars", SERIES_SCALARS },
    { "histograms", SERIES_TENSORS },
    { "text", SERIES_TENSORS },
    { "hparams", SERIES_TENSORS },
    { "pr_curves", SERIES_TENSORS },
    { "mesh", SERIES_TENSORS },
    { "custom_scalars", SERIES_TENSORS },
    { "images", SERIES_BLOBS },
    { "audio", SERIES_BLOBS },
    { "graph_run_metadata", SERIES_BLOBS },
    { "graph_run_metadata_graph", SERIES_BLOBS },
    { "graph_keras_model", SERIES_BLOBS },
};

static struct span span_of(const char *text, size_t n)
{
    return (struct span){ (const uint8_t *)text, n };
}

static void append_text(struct wire *w, int field, struct span text)
{
    struct buffer valid = BUFFER_EMPTY;

    if (!text.length)
        return;
    utf8_text_append(&valid, (const char *)text.bytes, text.length);
    if (buffer_ok(&valid))
        wire_bytes(w, field, valid.data, valid.length);
    else
        w->bytes.failed = 1;
    buffer_release(&valid);
}

static void write_metadata(struct wire *w, const struct description *d)
{
    if (d->plugin.length || d->content.length) {
        size_t mark = wire_begin(w, METADATA_PLUGIN);

        append_text(w, PLUGIN_NAME, d->plugin);
        if (d->content.length)
            wire_bytes(w, PLUGIN_CONTENT, d->content.bytes, d->content.length);
        wire_end(w, mark);
    }
    append_text(w, METADATA_NAME, d->display_name);
    append_text(w, METADATA_DESCRIPTION, d->text);
    wire_integer(w, METADATA_CLASS, d->class);
}

/* One allocation: the struct, the tag, the plugin's name, the metadata. */
static struct series_info *info_of_parts(const struct series_info *parts)
{
    struct series_info *s = malloc(sizeof *s + parts->tag_length + parts->plugin_length + parts->metadata_length);
    char *at;

    if (!s)
        return NULL;
    at = (char *)(s + 1);
    *s = *parts;
    s->references = 1;
    s->tag = at;
    s->plugin = at + s->tag_length;
    s->metadata = (const uint8_t *)s->plugin + s->plugin_length;
    if (s->tag_length)
        memcpy(at, parts->tag, s->tag_length);
    if (s->plugin_length)
        memcpy(at + s->tag_length, parts->plugin, s->plugin_length);
    if (s->metadata_length)
        memcpy(at + s->tag_length + s->plugin_length, parts->metadata, s->metadata_length);
    return s;
}

static struct series_info *series_new(const char *tag, size_t n, const struct description *d)
{
    struct wire metadata = WIRE_EMPTY, plugin = WIRE_EMPTY;
    struct series_info *s = NULL;

    write_metadata(&metadata, d);
    utf8_text_append(&plugin.bytes, (const char *)d->plugin.bytes, d->plugin.length);
    if (buffer_ok(&metadata.bytes) && buffer_ok(&plugin.bytes))
        s = info_of_parts(&(struct series_info){ d->class, tag, n, plugin.bytes.data, plugin.bytes.length,
                                                 (const uint8_t *)metadata.bytes.data, metadata.bytes.length, 0 });
    wire_release(&metadata);
    wire_release(&plugin);
    return s;
}

static enum series_class class_of_plugin(struct span name)
{
    for (size_t i = 0; i < sizeof plugins / sizeof *plugins; i++)
        if (strlen(plugins[i].plugin) == name.length && !memcmp(plugins[i].plugin, name.bytes, name.length))
            return plugins[i].class;
    return SERIES_UNKNOWN;
}

struct series_info *series_info_of_value(const char *tag, size_t n, const struct event_value *value)
{
    struct summary_metadata given = { .plugin = span_of("", 0) };
    struct description d = { span_of("", 0), span_of("", 0), span_of("", 0), span_of("", 0), SERIES_UNKNOWN };

    if (value->has_metadata) {
        summary_metadata_read(&given, value->metadata, value->metadata_length);
        d = (struct description){ given.plugin, given.content, given.display_name, given.description, SERIES_UNKNOWN };
    }
    if (value->has_metadata && given.data_class) {
        d.class = given.data_class >= SERIES_SCALARS && given.data_class <= SERIES_BLOBS
                      ? (enum series_class)given.data_class
                      : SERIES_UNKNOWN;
    } else if ((size_t)value->kind < sizeof legacy / sizeof *legacy && legacy[value->kind].plugin) {
        d.plugin = span_of(legacy[value->kind].plugin, strlen(legacy[value->kind].plugin));
        d.content = span_of(legacy[value->kind].content, legacy[value->kind].length);
        d.class = legacy[value->kind].class;
    } else {
        d.class = class_of_plugin(d.plugin);
    }
    return series_new(tag, n, &d);
}

struct series_info *series_info_of_graph(void)
{
    struct description d = { span_of("graphs", 6), span_of("", 0), span_of("", 0), span_of("", 0), SERIES_BLOBS };

    return series_new(SERIES_GRAPH_TAG, strlen(SERIES_GRAPH_TAG), &d);
}

struct series_info *series_info_of_run_metadata(const char *tag, size_t n)
{
    const char *plugin = "graph_tagged_run_metadata";
    struct description d = { span_of(plugin, strlen(plugin)), span_of("", 0), span_of("", 0), span_of("", 0),
                             SERIES_BLOBS };

    return series_new(tag, n, &d);
}

struct series_info *series_info_keep(struct series_info *s)
{
    __atomic_fetch_add(&s->references, 1, __ATOMIC_RELAXED);
    return s;
}

void series_info_drop(struct series_info *s)
{
    if (s && __atomic_fetch_sub(&s->references, 1, __ATOMIC_ACQ_REL) == 1)
        free(s);
}
