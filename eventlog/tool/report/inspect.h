/* inspect.h - what `eventlog inspect` collects about a run, and the layouts in which it is printed. */
#ifndef EVENTLOG_TOOL_REPORT_INSPECT_H
#define EVENTLOG_TOOL_REPORT_INSPECT_H

#include "eventlog/read/event_reader.h"
#include "eventlog/read/scalar_series.h"
#include "eventlog/read/step_list.h"
#include "eventlog/tool/report/report.h"

/* in alphabetical order, as TensorBoard prints them */
enum inspect_kind {
    INSPECT_AUDIO,
    INSPECT_GRAPH,
    INSPECT_HISTOGRAMS,
    INSPECT_IMAGES,
    INSPECT_SCALARS,
    INSPECT_CHECKPOINT,
    INSPECT_START,
    INSPECT_STOP,
    INSPECT_TENSOR,
    INSPECT_KINDS,
};

/* The points of a series, by scalar_series.number: their steps in reading order, and those that TensorBoard's default
 * loader would hold, marked 1 where it shows them. */
struct inspect_series {
    struct step_list steps, kept;
    unsigned kinds; /* 1 << kind for each kind its values had */
};

struct inspect_file {
    const char *path; /* borrowed */
    struct event_reader_state state;
    struct event_damage *damage;
    size_t damage_count, damage_capacity;
};

struct inspect_run {
    const char *name, *directory; /* borrowed */
    struct inspect_file *files;
    size_t file_count;
    struct scalar_run all;         /* without points */
    struct inspect_series *series; /* of all.series, by number; series_count of them, possibly more than all.count */
    size_t series_count;
    struct step_list kinds[INSPECT_KINDS]; /* all tags together */
};

/* of all runs */
struct inspect_totals {
    uint64_t files, records, bytes, series, points, damage;
};

int inspect_print_json(struct output *out, const struct inspect_run *run, int first, struct error *e);
int inspect_print_tensorboard(struct output *out, const struct inspect_run *run, struct error *e);

/* The series as a report. ranked: rows of all runs together, for --sort and --top; otherwise a section for each run, in
 * text with its files above. */
struct report_layout inspect_layout(int ranked);
int inspect_report(struct report *r, const struct inspect_run *run, int ranked, struct error *e);

#endif
