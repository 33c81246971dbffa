/* inspect_tree.h - the layout of `eventlog inspect --tree`: one line per directory of a log, with totals of its
 * runs. */
#ifndef EVENTLOG_TOOL_REPORT_INSPECT_TREE_H
#define EVENTLOG_TOOL_REPORT_INSPECT_TREE_H

#include "eventlog/tool/report/inspect.h"

/* a run */
struct inspect_leaf {
    const char *name; /* borrowed */
    size_t files, series, damage;
    uint64_t bytes, points, values; /* values: those that are not points */
    int64_t least, most;            /* steps of the points */
    int partial;                    /* a file stops inside a record */
};

struct inspect_tree {
    struct inspect_leaf *leaves;
    size_t count, capacity;
};

#define INSPECT_TREE_EMPTY \
    { \
        NULL, 0, 0 \
    }

/* Copies the figures of a run, which may be freed afterwards. OK or ERR_NOMEM. */
int inspect_tree_add(struct inspect_tree *t, const struct inspect_run *run, struct error *e);
int inspect_tree_print(struct output *out, struct inspect_tree *t, struct error *e);
void inspect_tree_release(struct inspect_tree *t);

#endif
