/* export_columns.h - the columns of a table that has one for each tag of several runs. */
#ifndef EVENTLOG_TOOL_EXPORT_EXPORT_COLUMNS_H
#define EVENTLOG_TOOL_EXPORT_EXPORT_COLUMNS_H

#include "eventlog/format/tag_index.h"
#include "eventlog/tool/export/export.h"

struct export_columns {
    struct tag_index tags;                /* those with points; value: the place of the column */
    const struct tag_index_entry **order; /* tags.count columns, by name or by first appearance as --columns says */
};

/* ERR_NOMEM. Release c also then. */
int export_columns_find(struct export_columns *c, const struct export *x, const struct export_run *runs, size_t count,
                        struct error *e);
void export_columns_release(struct export_columns *c);

/* The value that stands for the points [first, next) of one step, as --dup says, and where it came from: SCALAR_FROM_*,
 * 0 for a mean. ERR_ARG: there are several, and none is to be chosen. */
int export_columns_value(const struct export *x, const char *run, const struct scalar_series *s, size_t first,
                         size_t next, double *value, unsigned *from, struct error *e);

/* The place of the column that a series with points belongs to. */
size_t export_columns_place(struct export_columns *c, const struct scalar_series *s);

#endif
