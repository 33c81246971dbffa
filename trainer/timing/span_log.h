/*
 * span_log.h - the last spans of time of a rank, for a trace: a ring in which the newest replaces the oldest. A span is
 * one phase, or one whole step around its phases. Times are nanoseconds of its monotonic clock. Pure; one thread.
 */
#ifndef TRAINER_TIMING_SPAN_LOG_H
#define TRAINER_TIMING_SPAN_LOG_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum span_kind { SPAN_PHASE, SPAN_STEP };

/* Ranks send it to each other as it is. */
struct span {
    int64_t begin, end, step;
    int16_t phase, kind; /* enum phase, of SPAN_PHASE; enum span_kind */
    int32_t bucket;      /* -1: none */
};

struct span_log {
    struct span *spans; /* (room), a ring */
    size_t room;
    uint64_t added; /* so far; the last `room` of them are there */
};

/* For the last `room` > 0 spans. ERR_NOMEM. On OK yours, span_log_release() it. */
int span_log_init(struct span_log *l, size_t room, struct error *e);
void span_log_release(struct span_log *l); /* may be zeroed */

/* Keeps a span; they come in the order of their ends. A phase shorter than a microsecond is left out, and what it
 * interrupts stays one span. */
void span_log_add(struct span_log *l, const struct span *s);
size_t span_log_count(const struct span_log *l);
/* Number i, the oldest first; i < span_log_count(). Borrowed until the next is added. */
const struct span *span_log_at(const struct span_log *l, size_t i);

#endif
