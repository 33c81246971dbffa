/*
 * log_series.h - a series as eventlog.h presents it, made from a scalar_series.
 */
#ifndef EVENTLOG_READ_LOG_SERIES_H
#define EVENTLOG_READ_LOG_SERIES_H

#include "eventlog/eventlog.h"
#include "eventlog/read/scalar_series.h"

struct log_series {
    struct eventlog_series shown; /* tag and plugin are borrowed from the scalar_series, run from the caller */
    int wanted;
    char *texts; /* the other texts of shown point into this */
};

/* NULL if memory runs out. Free with log_series_free(); NULL is fine. */
struct log_series *log_series_new(const char *run, const struct scalar_series *s, int wanted);
void log_series_free(struct log_series *s);

/* What kind a value is for display; is_point: as scalar_run_value() returned. */
enum eventlog_kind log_series_kind(const struct event_value *v, const char *plugin, int is_point);

#endif
