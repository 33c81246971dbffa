#include "eventlog/read/log_series.h"

#include "eventlog/format/summary_metadata.h"

#include <stdlib.h>
#include <string.h>

/* Copies a span and a NUL to *at, moves *at past them, and returns the copy. */
static const char *series_put(char **at, const struct span *s)
{
    char *text = *at;

    memcpy(text, s->bytes, s->length);
    text[s->length] = '\0';
    *at += s->length + 1;
    return text;
}

struct log_series *log_series_new(const char *run, const struct scalar_series *s, int wanted)
{
    struct log_series *l = calloc(1, sizeof *l);
    struct summary_metadata m;
    char *at;

    summary_metadata_read(&m, (const uint8_t *)(s->metadata ? s->metadata : ""), s->metadata_length);
    if (!l || !(at = l->texts = malloc(m.display_name.length + m.description.length + m.content.length + 3))) {
        free(l);
        return NULL;
    }
    l->wanted = wanted;
    l->shown.run = run;
    l->shown.tag = s->tag;
    l->shown.tag_length = s->tag_length;
    l->shown.plugin = s->plugin;
    l->shown.display_name = series_put(&at, &m.display_name);
    l->shown.description = series_put(&at, &m.description);
    l->shown.plugin_content = series_put(&at, &m.content);
    l->shown.plugin_content_length = m.content.length;
    return l;
}

void log_series_free(struct log_series *s)
{
    if (s)
        free(s->texts);
    free(s);
}

enum eventlog_kind log_series_kind(const struct event_value *v, const char *plugin, int is_point)
{
    int tensor = v->kind == EVENT_VALUE_TENSOR, strings = tensor && v->dtype == EVENT_STRING;

    if (is_point)
        return EVENTLOG_KIND_SCALAR;
    if (v->kind == EVENT_VALUE_HISTOGRAM || (tensor && !strings && !strcmp(plugin, "histograms")))
        return EVENTLOG_KIND_HISTOGRAM;
    if (v->kind == EVENT_VALUE_IMAGE || (strings && !strcmp(plugin, "images")))
        return EVENTLOG_KIND_IMAGE;
    if (v->kind == EVENT_VALUE_AUDIO || (strings && !strcmp(plugin, "audio")))
        return EVENTLOG_KIND_AUDIO;
    if (strings && !strcmp(plugin, "text"))
        return EVENTLOG_KIND_TEXT;
    return tensor ? EVENTLOG_KIND_TENSOR : EVENTLOG_KIND_OTHER;
}
