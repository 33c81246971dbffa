#include "eventlog/rewrite/log_rewrite.h"

#include "eventlog/check/log_check.h"
#include "eventlog/format/record.h"
#include "eventlog/format/tag_index.h"
#include "eventlog/format/wire.h"

#include <stdlib.h>
#include <string.h>

enum { FIELD_SUMMARY = 5, FIELD_VALUE = 1, FIELD_TAG = 1, FIELD_METADATA = 9, WHAT_FIRST = 3, WHAT_LAST = 9 };

struct rewrite_series {
    uint8_t *metadata; /* NULL: none seen yet */
    size_t length;
    enum event_kind kind; /* of the value that had it: another kind has a meaning of its own */
    uint64_t file;        /* number of the file that last got a value */
};

struct log_rewrite {
    struct tag_index tags; /* items: struct rewrite_series */
    uint64_t file;         /* from 1 */
    struct wire summary;
    struct log_rewrite_totals totals;
};

int log_rewrite_new(struct log_rewrite **out, struct error *e)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return error_memory(e, NULL, "for a file's tags");
    (*out)->tags.item_size = sizeof(struct rewrite_series);
    (*out)->file = 1;
    return OK;
}

void log_rewrite_free(struct log_rewrite *r)
{
    const struct rewrite_series *series = r ? r->tags.items : NULL;

    if (!r)
        return;
    for (size_t i = 0; i < r->tags.count; i++)
        free(series[i].metadata);
    tag_index_release(&r->tags);
    wire_release(&r->summary);
    free(r);
}

void log_rewrite_next_file(struct log_rewrite *r)
{
    r->file++;
}

struct log_rewrite_totals log_rewrite_totals(const struct log_rewrite *r)
{
    return r->totals;
}

static struct rewrite_series *rewrite_series_of(struct log_rewrite *r, const char *tag, size_t n, struct error *e)
{
    struct rewrite_series *s = tag_index_item(&r->tags, tag, n);

    if (!s)
        error_memory(e, NULL, "for %zu tags", r->tags.count + 1);
    return s;
}

static int remember(struct rewrite_series *s, const struct event_value *v, struct error *e)
{
    if (!v->has_metadata || s->metadata)
        return OK;
    if (!(s->metadata = malloc(v->metadata_length + 1)))
        return error_memory(e, NULL, "for %zu bytes of metadata", v->metadata_length);
    memcpy(s->metadata, v->metadata, v->metadata_length);
    s->length = v->metadata_length;
    s->kind = v->kind;
    return OK;
}

int log_rewrite_remember(struct log_rewrite *r, const char *tag, size_t n, const struct event_value *value,
                         struct error *e)
{
    struct rewrite_series *s = rewrite_series_of(r, tag, n, e);

    return s ? remember(s, value, e) : ERR_NOMEM;
}

/* Puts one value into the summary: its fields unchanged, except for a new tag. */
static void put_value(struct wire *w, const struct event_value *v, const struct log_rewrite_choice *choice,
                      const struct rewrite_series *metadata)
{
    const uint8_t *p = v->bytes, *end = p + v->length;
    size_t mark = wire_begin(w, FIELD_VALUE);
    struct wire_field f;

    if (choice->tag && choice->tag_length)
        wire_bytes(w, FIELD_TAG, choice->tag, choice->tag_length);
    if (!choice->tag)
        buffer_append(&w->bytes, p, v->length);
    for (const uint8_t *from = p; choice->tag && wire_take(&p, end, &f) == 1; from = p)
        if (f.number != FIELD_TAG)
            buffer_append(&w->bytes, from, (size_t)(p - from));
    if (metadata)
        wire_bytes(w, FIELD_METADATA, metadata->metadata, metadata->length);
    wire_end(w, mark);
}

/* Puts one value into the summary as chosen; *changed: the record has changed. */
static int take_value(struct log_rewrite *r, const struct event_value *v, const struct log_rewrite_choice *choice,
                      int *changed, struct error *e)
{
    const char *tag = choice->tag ? choice->tag : v->tag;
    struct rewrite_series *s = rewrite_series_of(r, tag, choice->tag ? choice->tag_length : v->tag_length, e),
                          *lacking = NULL;

    if (!s || remember(s, v, e) != OK)
        return ERR_NOMEM;
    if (!choice->keep) {
        r->totals.dropped++;
        *changed = 1;
        return OK;
    }
    if (s->file != r->file && !v->has_metadata && s->metadata && s->kind == v->kind)
        lacking = s;
    s->file = r->file;
    *changed |= choice->tag || lacking;
    r->totals.values++;
    r->totals.renamed += choice->tag != NULL;
    put_value(&r->summary, v, choice, lacking);
    return OK;
}

static int seal(struct buffer *out, size_t mark, struct error *e)
{
    if (!buffer_reserve(out, RECORD_FOOTER) || !buffer_ok(out))
        return error_memory(e, NULL, "for a record of %zu bytes", out->length - mark);
    record_seal((uint8_t *)out->data + mark, out->length - mark - RECORD_HEADER);
    out->length += RECORD_FOOTER;
    return OK;
}

/* Room for a header; the place where the record begins. */
static size_t begin_record(struct buffer *out)
{
    static const uint8_t nothing[RECORD_HEADER];
    size_t mark = out->length;

    buffer_append(out, nothing, sizeof nothing);
    return mark;
}

int log_rewrite_record(struct log_rewrite *r, const uint8_t *data, size_t n, const struct event *event,
                       log_rewrite_choose *choose, void *context, struct buffer *out, struct error *e)
{
    const uint8_t *p = data, *end = data + n;
    struct log_rewrite_choice choice = { .keep = 1 };
    uint64_t before = r->totals.values;
    struct event_values values;
    const struct event_value *v;
    struct wire_field f;
    int changed = 0, rc = OK;
    size_t mark, number = 0;

    buffer_clear(&r->summary.bytes);
    event_values_init(&values, event);
    while (event->what == EVENT_SUMMARY && rc == OK && (v = event_values_next(&values))) {
        choice = (struct log_rewrite_choice){ .keep = 1 };
        if ((rc = choose(context, event, v, number++, &choice, e)) == OK)
            rc = take_value(r, v, &choice, &changed, e);
    }
    if (event->what != EVENT_SUMMARY && (rc = choose(context, event, NULL, 0, &choice, e)) == OK && !choice.keep) {
        r->totals.dropped++;
        return OK;
    }
    if (rc != OK || (changed && r->totals.values == before))
        return rc;
    if (!buffer_ok(&r->summary.bytes))
        return error_memory(e, NULL, "for a record of %zu bytes", n);
    mark = begin_record(out);
    if (!changed)
        buffer_append(out, data, n);
    for (const uint8_t *from = p; changed && wire_take(&p, end, &f) == 1; from = p)
        if (f.number < WHAT_FIRST || f.number > WHAT_LAST)
            buffer_append(out, from, (size_t)(p - from));
    if (changed) {
        struct wire whole = { *out, NULL, 0 };

        wire_bytes(&whole, FIELD_SUMMARY, r->summary.bytes.data, r->summary.bytes.length);
        *out = whole.bytes;
    }
    r->totals.records++;
    return seal(out, mark, e);
}

int log_rewrite_sound(const uint8_t *data, size_t n, struct event *event)
{
    size_t place;

    return log_check_data(data, n, &place) == LOG_KINDS && event_decode(data, n, event, &place) == OK;
}
