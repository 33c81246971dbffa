/*
 * log_series.h - a series as eventlog.h shows it, out of what scalar_series.h knows of it.
 */
#ifndef EVENTLOG_READ_LOG_SERIES_H
#define EVENTLOG_READ_LOG_SERIES_H

#include "eventlog/eventlog.h"
#include "eventlog/read/scalar_series.h"

struct log_series {
    struct eventlog_series shown; /* tag and plugin are borrowed from the scalar_series, run from the caller */
    int wanted;
    char *texts; /* the rest of shown points here */
};

/* NULL without memory. Free with log_series_free(), NULL is fine. */
struct log_series *log_series_new(const char *run, const struct scalar_series *s, int wanted);
void log_series_free(struct log_series *s);

/* What a value is to those who show it; is_point: scalar_run_value() said so. */
enum eventlog_kind log_series_kind(const struct event_value *v, const char *plugin, int is_point);

#endif
