/*
 * log_filter.h - which parts of a log are wanted, as the options of a reader say.
 */
#ifndef EVENTLOG_READ_LOG_FILTER_H
#define EVENTLOG_READ_LOG_FILTER_H

#include "base/error.h"
#include "eventlog/eventlog.h"

struct log_filter {
    char **runs, **tags; /* patterns */
    size_t run_count, tag_count;
    int64_t first_step, last_step;
    int numbers_only, records_only;
};

/* Copies o; NULL: everything is wanted. Finish with log_filter_release(), also after an error. */
int log_filter_init(struct log_filter *f, const struct eventlog_reader_options *o, struct error *e);
void log_filter_release(struct log_filter *f);

int log_filter_run(const struct log_filter *f, const char *run);
int log_filter_tag(const struct log_filter *f, const char *tag);

static inline int log_filter_step(const struct log_filter *f, int64_t step)
{
    return step >= f->first_step && step <= f->last_step;
}

/* 1 if every value of a wanted run is wanted, and so are events without values. */
int log_filter_all_values(const struct log_filter *f);

#endif
