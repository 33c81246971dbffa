/* inspect.h - what `eventlog inspect` gathers of a run, and the layouts it is printed in. */
#ifndef EVENTLOG_TOOL_INSPECT_H
#define EVENTLOG_TOOL_INSPECT_H

#include "eventlog/event_reader.h"
#include "eventlog/scalar_series.h"
#include "eventlog/tool/output.h"

enum inspect_kind { /* in alphabetical order, as TensorBoard prints them */
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

struct inspect_steps { /* of one kind in reading order, all tags together */
    int64_t *items;
    size_t count, capacity;
};

struct inspect_file {
    const char *path; /* borrowed */
    struct event_reader_state state;
    struct event_damage *damage;
    size_t damage_count;
};

struct inspect_run {
    const char *name, *directory;  /* borrowed */
    struct inspect_file *files;
    size_t file_count;
    struct scalar_run all, shown;  /* the same series in the same order; shown: what TensorBoard would hold */
    struct inspect_steps kinds[INSPECT_KINDS];
    unsigned *tag_kinds;           /* per series: 1 << kind for each kind its values had */
    size_t tag_kind_count;
};

struct inspect_statistics { /* of the steps of a series in reading order */
    int64_t first, last, least, most;
    size_t distinct, out_of_order;
};

/* Of count > 0 steps, `stride` bytes apart. ERR_NOMEM. */
int inspect_statistics(const int64_t *steps, size_t count, size_t stride, struct inspect_statistics *s,
                       struct error *e);

/* "simple_value", "tensor DT_FLOAT", "image", ... of the first value; out holds 40 bytes. */
void inspect_stored(const struct scalar_series *s, char *out, size_t size);

int inspect_print_json(struct output *out, const struct inspect_run *run, int first, struct error *e);
int inspect_print_tensorboard(struct output *out, const struct inspect_run *run, struct error *e);
int inspect_print_text(struct output *out, const struct inspect_run *run, struct error *e);

#endif
