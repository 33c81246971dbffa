/* chart_option.h - the charts of TensorBoard's Custom Scalars page from options '[CATEGORY/]TITLE=TAGS'. */
#ifndef EVENTLOG_TOOL_CHART_OPTION_H
#define EVENTLOG_TOOL_CHART_OPTION_H

#include "base/program/options.h"
#include "eventlog/eventlog.h"

enum { CHART_OPTIONS_MOST = OPTION_LIST_MOST };

struct chart_layout {
    struct eventlog_category categories[CHART_OPTIONS_MOST]; /* count of them */
    size_t count;
    /* private: what they point to */
    struct eventlog_chart charts[CHART_OPTIONS_MOST];
    const char *tags[CHART_OPTIONS_MOST];
    char *words[CHART_OPTIONS_MOST];
    size_t word_count;
};

/* Categories, charts and tags are in the order in which they were first named; naming a chart again adds tags to it.
 * OK, ERR_ARG or ERR_NOMEM; release it also after an error. The struct points into itself: do not copy it. */
int chart_layout_parse(struct chart_layout *layout, const struct option_list *list, struct error *e);
void chart_layout_release(struct chart_layout *layout);

#endif
