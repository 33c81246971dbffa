#include "trainer/timing/trace.h"

#include "base/json.h"
#include "trainer/timing/phase_clock.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int64_t trace_time(const struct trace_clock *c, int64_t t)
{
    const int64_t apart = c->last_at - c->first_at, drift = c->last_offset - c->first_offset;

    /* No clock drifts by a tenth: then the offsets are wrong, and time must not run backwards. */
    if (apart <= 0 || llabs(drift) > apart / 10)
        return t - c->first_offset;
    return t - c->first_offset - llround((double)drift / (double)apart * (double)(t - c->first_at));
}

void trace_begin(struct buffer *out)
{
    buffer_append_text(out, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [");
}

void trace_end(struct buffer *out)
{
    buffer_append_text(out, "\n]}\n");
}

/* Begins an event of this rank; the first one in the trace has no comma before it. */
static void begin_event(struct buffer *out, const struct trace_rank *r, char kind)
{
    const int first = out->length > 0 && out->data[out->length - 1] == '[';

    buffer_format(out, "%s\n{\"ph\": \"%c\", \"pid\": %d, \"tid\": 0, ", first ? "" : ",", kind, r->rank);
}

static void metadata(struct buffer *out, const struct trace_rank *r, const char *name, const char *argument,
                     const char *text)
{
    begin_event(out, r, 'M');
    buffer_format(out, "\"name\": \"%s\", \"args\": {\"%s\": ", name, argument);
    json_text(out, text);
    buffer_append_text(out, "}}");
}

/* Nanoseconds as microseconds. */
static void microseconds(struct buffer *out, const char *name, int64_t ns)
{
    buffer_format(out, "\"%s\": %s%lld.%03lld, ", name, ns < 0 ? "-" : "", llabs(ns) / 1000, llabs(ns) % 1000);
}

static void slice(struct buffer *out, const struct trace_rank *r, const struct span *s, int64_t zero)
{
    const int64_t begin = trace_time(&r->clock, s->begin);

    begin_event(out, r, 'X');
    microseconds(out, "ts", begin - zero);
    microseconds(out, "dur", trace_time(&r->clock, s->end) - begin);
    if (s->kind == SPAN_STEP)
        buffer_format(out, "\"cat\": \"step\", \"name\": \"step %" PRId64 "\"", s->step);
    else
        buffer_format(out, "\"cat\": \"phase\", \"name\": \"%s\"", phase_names[s->phase]);
    buffer_format(out, ", \"args\": {\"step\": %" PRId64, s->step);
    if (s->bucket >= 0)
        buffer_format(out, ", \"bucket\": %" PRId32, s->bucket);
    buffer_append_text(out, "}}");
}

void trace_add(struct buffer *out, const struct trace_rank *r, int64_t zero)
{
    char text[160];

    snprintf(text, sizeof text, "rank %d%s%s%.100s", r->rank, r->server ? ", a server" : "", r->host ? " on host " : "",
             r->host ? r->host : "");
    metadata(out, r, "process_name", "name", text);
    snprintf(text, sizeof text, "clock within %.1f us of rank 0's", (double)r->clock.error / 1e3);
    if (r->rank > 0)
        metadata(out, r, "process_labels", "labels", text);
    begin_event(out, r, 'M');
    buffer_format(out, "\"name\": \"process_sort_index\", \"args\": {\"sort_index\": %d}}", r->rank);
    metadata(out, r, "thread_name", "name", r->server ? "updates" : "steps");
    for (size_t i = 0; i < r->count; i++)
        slice(out, r, &r->spans[i], zero);
}
