#include "eventlog/tool/rewrite/split_session.h"

#include "base/array.h"
#include "eventlog/format/tag_index.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* of a series: in the session before this file, and in this file */
struct span {
    int64_t high, low;
    double last, first, last_here;
    int64_t high_here;
    int known, here;
};

struct start {
    size_t file;
    uint64_t offset;
};

struct split_session {
    struct tag_index tags; /* items: struct span */
    size_t file;
    char *begins;         /* one a file: a session begins with it */
    struct start *starts; /* session starts within files */
    size_t start_count, start_capacity, next;
    int values; /* the session at hand has some */
};

static int no_memory(struct error *e)
{
    return error_memory(e, NULL, "for sessions");
}

static int start(struct split_session *s, uint64_t offset, struct error *e)
{
    struct span *spans = s->tags.items;

    if (!ARRAY_ROOM(s->starts, s->start_capacity, s->start_count + 1))
        return no_memory(e);
    s->starts[s->start_count++] = (struct start){ s->file, offset };
    for (size_t i = 0; i < s->tags.count; i++)
        spans[i].known = spans[i].here = 0;
    s->values = 0;
    return OK;
}

static int split_session_visit(void *context, uint64_t offset, const uint8_t *data, size_t n, const struct event *event,
                               struct error *e)
{
    struct split_session *s = context;
    struct event_values values;
    const struct event_value *v;

    (void)data;
    (void)n;
    if (event->what == EVENT_SESSION_LOG && event->session == EVENT_SESSION_START && s->values)
        return start(s, offset, e);
    event_values_init(&values, event);
    while (event->what == EVENT_SUMMARY && (v = event_values_next(&values))) {
        double wall_time = isfinite(event->wall_time) ? event->wall_time : NAN; /* passed over by fmin and fmax */
        struct span *span = tag_index_item(&s->tags, v->tag, v->tag_length);

        if (!span)
            return no_memory(e);
        s->values = 1;
        span->low = span->here && span->low < event->step ? span->low : event->step;
        span->high_here = span->here && span->high_here > event->step ? span->high_here : event->step;
        span->first = span->here ? fmin(span->first, wall_time) : wall_time;
        span->last_here = span->here ? fmax(span->last_here, wall_time) : wall_time;
        span->here = 1;
    }
    return OK;
}

/* The file is read: does it begin a session, and what does the session at hand have now? */
static void end_file(struct split_session *s)
{
    struct span *spans = s->tags.items;
    int begins = 0;

    for (size_t i = 0; i < s->tags.count; i++) {
        const struct span *span = &spans[i];

        begins |= span->here && span->known && span->low <= span->high && !(span->first < span->last);
    }
    s->begins[s->file] = (char)begins;
    for (size_t i = 0; i < s->tags.count; i++) {
        struct span *span = &spans[i];

        if (begins)
            span->known = 0;
        if (span->here) {
            span->high = span->known && span->high > span->high_here ? span->high : span->high_here;
            span->last = span->known ? fmax(span->last, span->last_here) : span->last_here;
            span->known = 1;
        }
        span->here = 0;
    }
}

int split_session_new(struct split_session **out, struct rewrite *w, const struct log_run *run, struct error *e)
{
    struct split_session *s = *out = calloc(1, sizeof *s);
    int rc = OK;

    if (!s || !(s->begins = calloc(run->file_count + 1, 1)))
        return no_memory(e);
    s->tags.item_size = sizeof(struct span);
    w->looking_ahead = 1;
    for (; rc == OK && s->file < run->file_count; s->file++)
        if ((rc = rewrite_read(w, run->name, run->files[s->file], split_session_visit, s, e)) == OK)
            end_file(s);
    w->looking_ahead = 0;
    return rc;
}

void split_session_free(struct split_session *s)
{
    if (!s)
        return;
    tag_index_release(&s->tags);
    free(s->begins);
    free(s->starts);
    free(s);
}

int split_session_file(struct split_session *s, size_t file)
{
    s->file = file;
    return s->begins[file];
}

int split_session_next(struct split_session *s, uint64_t offset)
{
    if (s->next == s->start_count || s->starts[s->next].file != s->file || s->starts[s->next].offset != offset)
        return 0;
    s->next++;
    return 1;
}
