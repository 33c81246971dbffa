/* export_columns.h - the columns of a table with one column for each tag of several runs. */
#ifndef EVENTLOG_TOOL_EXPORT_EXPORT_COLUMNS_H
#define EVENTLOG_TOOL_EXPORT_EXPORT_COLUMNS_H

#include "eventlog/format/tag_index.h"
#include "eventlog/tool/export/export.h"

struct export_columns {
    struct tag_index tags;                /* those with points; value: the index of the column */
    const struct tag_index_entry **order; /* tags.count columns, by name or by first appearance as --columns says */
};

/* OK or ERR_NOMEM. Release c also after an error. */
int export_columns_find(struct export_columns *c, const struct export *x, const struct export_run *runs, size_t count,
                        struct error *e);
void export_columns_release(struct export_columns *c);

/* Chooses the value for the points [first, next) of one step, as --dup says; *from: SCALAR_FROM_*, or 0 for a mean.
 * ERR_ARG: there are several, and --dup is error. */
int export_columns_value(const struct export *x, const char *run, const struct scalar_series *s, size_t first,
                         size_t next, double *value, unsigned *from, struct error *e);

/* The index of the column for a series that has points. */
size_t export_columns_place(struct export_columns *c, const struct scalar_series *s);

#endif
