/* export_columns.h - the columns of a table that has one for each tag of several runs. */
#ifndef EVENTLOG_TOOL_EXPORT_COLUMNS_H
#define EVENTLOG_TOOL_EXPORT_COLUMNS_H

#include "eventlog/tag_index.h"
#include "eventlog/tool/export.h"

struct export_columns {
    struct tag_index tags;                /* those with points; value: the place of the column */
    const struct tag_index_entry **order; /* tags.count columns, by name or by first appearance as --columns says */
};

/* ERR_NOMEM. Release c also then. */
int export_columns_find(struct export_columns *c, const struct export *x, const struct export_run *runs, size_t count,
                        struct error *e);
void export_columns_release(struct export_columns *c);

/* The place of the column that a series with points belongs to. */
size_t export_columns_place(const struct export_columns *c, const struct scalar_series *s);

#endif
