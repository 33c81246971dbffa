/*
 * trace.h - the spans of all ranks as one trace, for https://ui.perfetto.dev and chrome://tracing. Pure.
 *
 * Format: JSON, "Trace Event Format" (Google, 2016), of which this uses complete events ("ph": "X", ts and dur in
 * microseconds) and metadata ("ph": "M"). A process for each rank with one thread; a slice "step N" contains the slices
 * of its phases, which have the step and, where there is one, the bucket as arguments.
 */
#ifndef TRAINER_TIMING_TRACE_H
#define TRAINER_TIMING_TRACE_H

#include "base/buffer.h"
#include "trainer/timing/span_log.h"

#include <stddef.h>
#include <stdint.h>

/* How to turn a rank's times into rank 0's: its clock minus rank 0's at two times of its own, and in proportion between
 * and beyond them, as clocks drift. Nanoseconds. */
struct trace_clock {
    int64_t first_at, first_offset, last_at, last_offset;
    int64_t error; /* by which the result can be wrong */
};

/* The time of rank 0; never falls while t rises. */
int64_t trace_time(const struct trace_clock *c, int64_t t);

struct trace_rank {
    int rank, server;
    const char *host; /* NULL: not known */
    struct trace_clock clock;
    const struct span *spans; /* (count) by their begin, a step before the phases in it */
    size_t count;
};

void trace_begin(struct buffer *out);
/* zero: the time of rank 0 at which the trace begins. Call trace_begin() before the first rank, trace_end() after the
 * last. */
void trace_add(struct buffer *out, const struct trace_rank *r, int64_t zero);
void trace_end(struct buffer *out);

#endif
