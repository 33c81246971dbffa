/* eventlog merge: several event files as one, in order of steps. */
#include "base/file.h"
#include "base/json.h"
#include "base/program/subcommand.h"
#include "eventlog/format/event_encode.h"
#include "eventlog/format/wire.h"
#include "eventlog/rewrite/log_merge.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/rewrite/record_source.h"
#include "eventlog/tool/rewrite/rewrite_command.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct merge {
    struct rewrite rewrite;
    int keep_runs, prefix, join;
    const char *overlap_word;
    enum log_merge_overlap overlap;
    struct log_merge_totals totals;
    uint64_t runs;
    /* of the output at hand */
    struct log_merge *plan;
    struct log_rewrite *records;
    uint64_t planned;   /* bytes of its files */
    const char **paths; /* of the files by their number in the plan */
    size_t path_count;
    struct buffer version;              /* the first record of the new file, without framing */
    double start;                       /* its wall time; NaN: none yet */
    double earliest;                    /* finite wall time above 0 of all events; NaN: none */
    const char *run;                    /* being read */
    struct buffer tag;                  /* with the prefix */
    const struct log_merge_item *items; /* that are being written: those of one record */
    size_t item_count, item_next;
};

/* ---- first pass: what is there ----------------------------------------------------------------------------------- */

/* The tag in the new log: RUN/TAG, except for tags that TensorBoard needs unchanged. */
static const char *new_tag(struct merge *m, const char *run, const char *tag, size_t *n)
{
    static const char *const fixed[] = { "_hparams_/", "custom_scalars__config__" };

    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (*n >= strlen(fixed[i]) && !memcmp(tag, fixed[i], strlen(fixed[i])))
            return tag;
    if (!m->prefix || !strcmp(run, "."))
        return tag;
    buffer_clear(&m->tag);
    buffer_append_text(&m->tag, run);
    buffer_append_byte(&m->tag, '/');
    buffer_append(&m->tag, tag, *n);
    *n = m->tag.length;
    return buffer_ok(&m->tag) ? m->tag.data : NULL;
}

/* Adds to the error about a tag in two runs what to do about it. */
static int advise(int rc, struct error *e)
{
    if (rc == ERR_ARG) {
        size_t n = strlen(e->message);

        snprintf(e->message + n, sizeof e->message - n,
                 "; --prefix puts the names of runs before their tags, --keep-runs keeps runs apart, --join takes them "
                 "as parts of one run");
    }
    return rc;
}

static int plan_values(struct merge *m, uint64_t offset, const struct event *event, struct error *e)
{
    struct event_values values;
    const struct event_value *v;
    uint32_t number = 0;
    int rc = OK;

    event_values_init(&values, event);
    while (rc == OK && (v = event_values_next(&values))) {
        size_t n = v->tag_length;
        const char *tag = new_tag(m, m->run, v->tag, &n);

        if (!tag)
            return error_memory(e, m->run, "for a tag");
        rc = advise(log_merge_value(m->plan, offset, number++, tag, n, event->step, event->wall_time, e), e);
        if (rc == OK)
            rc = log_rewrite_remember(m->records, tag, n, v, e);
    }
    return rc;
}

static int plan_run_metadata(struct merge *m, uint64_t offset, const uint8_t *data, size_t n, const struct event *event,
                             struct error *e)
{
    const uint8_t *end = data + n;
    struct wire_field f, inner;
    const char *tag = "";
    size_t length = 0;

    while (data < end && wire_take(&data, end, &f) == 1)
        for (const uint8_t *q = f.bytes, *stop = q + f.length; f.number == 8 && q < stop;) {
            if (wire_take(&q, stop, &inner) != 1)
                break;
            if (inner.number == 1) {
                tag = (const char *)inner.bytes;
                length = inner.length;
            }
        }
    return advise(log_merge_run_metadata(m->plan, offset, tag, length, event->step, event->wall_time, e), e);
}

static int plan_version(struct merge *m, const uint8_t *data, size_t n, const struct event *event, struct error *e)
{
    if (m->start <= event->wall_time)
        return OK;
    buffer_clear(&m->version);
    buffer_append(&m->version, data, n);
    m->start = event->wall_time;
    return buffer_ok(&m->version) ? OK : error_memory(e, m->run, "for it");
}

static int plan_record(void *context, uint64_t offset, const uint8_t *data, size_t n, const struct event *event,
                       struct error *e)
{
    struct merge *m = context;

    if (isfinite(event->wall_time) && event->wall_time > 0)
        m->earliest = fmin(m->earliest, event->wall_time);
    switch (event->what) {
    case EVENT_FILE_VERSION: return plan_version(m, data, n, event, e);
    case EVENT_SUMMARY:
        return event->values ? plan_values(m, offset, event, e)
                             : log_merge_event(m->plan, offset, LOG_MERGE_OTHER, event->step, e);
    case EVENT_RUN_METADATA: return plan_run_metadata(m, offset, data, n, event, e);
    case EVENT_GRAPH: return log_merge_event(m->plan, offset, LOG_MERGE_GRAPH, event->step, e);
    case EVENT_META_GRAPH: return log_merge_event(m->plan, offset, LOG_MERGE_META_GRAPH, event->step, e);
    case EVENT_SESSION_LOG:
        return log_merge_event(m->plan, offset,
                               event->session == EVENT_SESSION_START ? LOG_MERGE_SESSION_START : LOG_MERGE_SESSION,
                               event->step, e);
    default: return log_merge_event(m->plan, offset, LOG_MERGE_OTHER, event->step, e);
    }
}

/* ---- second pass: the new file ----------------------------------------------------------------------------------- */

static int merge_choose(void *context, const struct event *event, const struct event_value *v, size_t number,
                        struct log_rewrite_choice *choice, struct error *e)
{
    struct merge *m = context;
    size_t n = v ? v->tag_length : 0;
    const char *tag;

    (void)event;
    if (!v)
        return OK;
    choice->keep = m->item_next < m->item_count && m->items[m->item_next].value == number;
    m->item_next += choice->keep != 0;
    if (!(tag = new_tag(m, m->run, v->tag, &n)))
        return error_memory(e, m->run, "for a tag");
    if (tag != v->tag) {
        choice->tag = tag;
        choice->tag_length = n;
    }
    return OK;
}

static int write_start(struct merge *m, struct rewrite_file *out, struct error *e)
{
    if (isnan(m->start))
        return event_encode_start(&out->pending, isnan(m->earliest) ? 0 : m->earliest, "evalboard", e);
    event_encode_record(&out->pending, m->version.data, m->version.length);
    return OK;
}

/* The items in order; those of one record go together. */
static int write_items(struct merge *m, struct record_source *source, const char *const *runs, struct rewrite_file *out,
                       struct error *e)
{
    size_t count, next;
    const struct log_merge_item *items = log_merge_items(m->plan, &count);
    struct scan *s = &m->rewrite.scan;
    int rc = OK;

    for (size_t i = 0; rc == OK && i < count; i = next) {
        struct record record;
        struct event event;

        for (next = i + 1; next < count && items[next].file == items[i].file && items[next].offset == items[i].offset;)
            next++;
        m->items = items + i;
        m->item_count = items[i].value == LOG_MERGE_EVENT ? 0 : next - i;
        m->item_next = 0;
        m->run = runs[items[i].file];
        if ((rc = record_source_at(source, items[i].file, items[i].offset, &record, e)) != OK)
            break;
        if (!rewrite_sound(record.data, record.length, &event))
            rc = error_set(e, ERR_CORRUPT, "%s: changed while it was read", m->paths[items[i].file]);
        if (rc == OK)
            rc = log_rewrite_record(m->records, record.data, record.length, &event, merge_choose, m, &out->pending, e);
        if (rc == OK)
            rc = rewrite_flush(&m->rewrite, out, 0, e);
        if (scan_progress_due(s))
            scan_progress(s, m->run, (uint64_t)((double)m->planned * (double)next / (double)count));
    }
    s->bytes_done += m->planned;
    return rc;
}

static int merge_write_file(struct merge *m, const char *run, const char *const *runs, struct error *e)
{
    double seconds = isnan(m->start) ? m->earliest : m->start;
    struct record_source *source = NULL;
    struct rewrite_file *out;
    struct log_rewrite_totals totals;
    char name[100];
    int rc;

    snprintf(name, sizeof name, "events.out.tfevents.%010lld.merged.0",
             seconds > 0 && seconds < 1e12 ? (long long)seconds : 0);
    if ((rc = rewrite_create(&m->rewrite, run, name, &out, e)) != OK)
        return rc;
    if ((rc = record_source_open(&source, &m->rewrite.scan.input, m->paths, m->path_count, e)) == OK &&
        (rc = write_start(m, out, e)) == OK && (rc = write_items(m, source, runs, out, e)) == OK)
        rc = rewrite_flush(&m->rewrite, out, 1, e);
    totals = log_rewrite_totals(m->records);
    m->rewrite.records += totals.records + 1;
    m->rewrite.values += totals.values;
    record_source_close(source);
    return rc;
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

static int plan_run(struct merge *m, const struct log_run *run, size_t number, const char **runs, struct error *e)
{
    uint64_t before = m->rewrite.scan.bytes_done;
    int rc = OK;

    for (size_t k = 0; rc == OK && k < run->file_count; k++) {
        m->run = runs[m->path_count] = run->name;
        m->paths[m->path_count++] = run->files[k];
        if ((rc = log_merge_file(m->plan, number, run->name, e)) == OK)
            rc = rewrite_read(&m->rewrite, m->run, run->files[k], plan_record, m, e);
    }
    m->planned += m->rewrite.scan.bytes_done - before;
    return rc;
}

/* Merges `count` runs from `first` on into one new run. */
static int merge_runs(struct merge *m, const struct log_run *first, size_t count, const char *to, struct error *e)
{
    struct log_merge_totals totals;
    const char **runs = NULL;
    size_t files = 0;
    int rc;

    for (size_t i = 0; i < count; i++)
        files += first[i].file_count;
    m->path_count = 0;
    m->planned = 0;
    m->start = m->earliest = NAN;
    m->paths = calloc(files + 1, sizeof *m->paths);
    runs = calloc(files + 1, sizeof *runs);
    rc = m->paths && runs ? OK : error_memory(e, NULL, "for %zu files", files);
    if (rc == OK && (rc = log_merge_new(&m->plan, m->overlap, e)) == OK)
        rc = log_rewrite_new(&m->records, e);
    for (size_t i = 0; rc == OK && i < count; i++)
        if (scan_run_wanted(&m->rewrite.scan, first[i].name))
            rc = plan_run(m, &first[i], m->join ? 0 : i, runs, e);
    if (rc == OK)
        rc = log_merge_finish(m->plan, e);
    if (rc == OK && m->path_count) {
        m->runs++;
        totals = log_merge_totals(m->plan);
        m->totals.restarted += totals.restarted;
        m->totals.doubled += totals.doubled;
        m->totals.repeated += totals.repeated;
        m->totals.restarts += totals.restarts;
        m->totals.interleaved += totals.interleaved;
        rc = merge_write_file(m, to, runs, e);
    }
    log_merge_free(m->plan);
    log_rewrite_free(m->records);
    m->plan = NULL;
    m->records = NULL;
    free(m->paths);
    free(runs);
    return rc;
}

/* When a run began: the wall time of its first event, infinity if it has none. */
static double began(struct log_input *in, const struct log_run *run)
{
    struct event_reader *reader;
    struct event_damage damage;
    struct event event;
    double at = INFINITY;
    int rc = 1;

    if (!run->file_count || event_reader_open(&reader, in, run->files[0], NULL) != OK)
        return at;
    while (rc > 0 && (rc = event_reader_next(reader, &event, &damage, NULL)) != EVENT_READER_EVENT)
        ;
    if (rc == EVENT_READER_EVENT && !isnan(event.wall_time))
        at = event.wall_time;
    event_reader_close(reader);
    return at;
}

struct started {
    double at;
    size_t place;
    struct log_run run;
};

static int by_time(const void *x, const void *y)
{
    const struct started *a = x, *b = y;

    return a->at != b->at ? (a->at > b->at) - (a->at < b->at) : (a->place > b->place) - (a->place < b->place);
}

/* Sorts runs by when they began; equal ones keep their order. */
static int by_start(struct log_directory *d, struct log_input *in, struct error *e)
{
    struct started *runs = malloc((d->count + 1) * sizeof *runs);

    if (!runs)
        return error_memory(e, NULL, "for %zu runs", d->count);
    for (size_t i = 0; i < d->count; i++)
        runs[i] = (struct started){ .at = began(in, &d->runs[i]), .place = i, .run = d->runs[i] };
    qsort(runs, d->count, sizeof *runs, by_time);
    for (size_t i = 0; i < d->count; i++)
        d->runs[i] = runs[i].run;
    free(runs);
    return OK;
}

static int merge_all(void *context, struct error *e)
{
    struct merge *m = context;
    struct log_directory *d = &m->rewrite.scan.directory;
    int rc = OK;

    if (m->join)
        rc = by_start(d, &m->rewrite.scan.input, e);
    if (rc == OK && !m->keep_runs)
        rc = merge_runs(m, d->runs, d->count, ".", e);
    for (const struct log_run *run = NULL; rc == OK && m->keep_runs && (run = scan_next_run(&m->rewrite.scan, run));)
        rc = merge_runs(m, run, 1, run->name, e);
    return rc;
}

static int merge_tell(void *context)
{
    struct merge *m = context;
    const struct log_merge_totals *t = &m->totals;
    struct log *log = &m->rewrite.scan.log;
    char more[200] = "";

    if (!m->runs)
        return 0;
    m->rewrite.dropped = t->restarted + t->doubled + t->repeated;
    if (m->rewrite.json)
        snprintf(more, sizeof more,
                 ",\"restarts\":%llu,\"restarted\":%llu,\"doubled\":%llu,\"repeated\":%llu,"
                 "\"interleaved\":%llu",
                 (unsigned long long)t->restarts, (unsigned long long)t->restarted, (unsigned long long)t->doubled,
                 (unsigned long long)t->repeated, (unsigned long long)t->interleaved);
    if (t->restarted)
        log_line(log, "left out %llu values before a restart (%s)", (unsigned long long)t->restarted,
                 m->overlap == LOG_MERGE_FIRST ? "--overlap=first keeps the earlier ones"
                                               : "--overlap=last, the default, keeps the later ones");
    if (t->doubled)
        log_line(log, "left out %llu values: their series has another value at the same step",
                 (unsigned long long)t->doubled);
    if (t->repeated)
        log_line(log, "left out %llu graphs, hyperparameters or layouts: a run has only one",
                 (unsigned long long)t->repeated);
    if (t->interleaved)
        log_line(log,
                 "%llu times two files have the same series at overlapping times, as from two writers at once: sorted "
                 "by step",
                 (unsigned long long)t->interleaved);
    rewrite_print(&m->rewrite, "merge", more);
    return 1;
}

static int merge_check(void *context, struct error *e)
{
    struct merge *m = context;

    m->overlap = !strcmp(m->overlap_word, "first")   ? LOG_MERGE_FIRST
                 : !strcmp(m->overlap_word, "keep")  ? LOG_MERGE_KEEP
                 : !strcmp(m->overlap_word, "error") ? LOG_MERGE_ERROR
                                                     : LOG_MERGE_LAST;
    return m->keep_runs + m->prefix + m->join > 1
               ? error_set(e, ERR_ARG, "--keep-runs, --prefix and --join contradict each other; give one of them")
               : OK;
}

int command_merge(int argc, char **argv)
{
    struct merge m = { .rewrite.scan.passes = 2, .overlap_word = "last" };
    struct option table[] = {
        { OPTION_FLAG, 0, "keep-runs", &m.keep_runs,
          .help = "Write a new run for each run, below DIR (default: one run, in DIR itself)" },
        { OPTION_FLAG, 0, "prefix", &m.prefix,
          .help = "Rename tags to RUN/TAG, for runs with the same tags; tags of hyperparameters and layouts stay "
                  "unchanged" },
        { OPTION_FLAG, 0, "join", &m.join,
          .help = "Take the runs as parts of a single run that was resumed in new directories, in the order in which "
                  "they began" },
        { OPTION_CHOICE, 0, "overlap", &m.overlap_word,
          .help = "Choose what to do where steps go back from one file of a run to the next, as after a restart: keep "
                  "the later points and leave out the earlier ones from that step on; keep the earlier ones; keep "
                  "both, sorted by step; or stop with an error (default last)",
          .choices = "last|first|keep|error" },
        REWRITE_OPTIONS(m.rewrite),
    };
    const struct options options = {
        .program = "eventlog merge",
        .usage = "[OPTION...] PATH... -o DIR",
        .summary =
            "Merge event files into one, sorted by step, so that TensorBoard's default loader drops no points (when a "
            "step comes again, that loader forgets the points of the series from that step on). Two files whose times "
            "overlap are taken as those of two writers at once, not of a restart: of two points at the same step, the "
            "one in the later file stays. A session start (TensorFlow 1) is a restart of all series. Values are copied "
            "bit for bit; the metadata of each tag stays with its first value, and graph, layout and hyperparameters "
            "are kept once. The same input gives the same bytes. The number of values left out is printed on standard "
            "error. Needs 32 bytes of memory for each value. Exit status: 0 done; 1 nothing to merge, or damage; 2 "
            "usage, I/O, or the same tag in two runs.",
        .examples = "  eventlog merge logs/train -o merged/train            a run that was restarted\n"
                    "  eventlog merge --keep-runs logs -o merged            every run of a directory\n"
                    "  eventlog merge --join job-1 job-2 -o merged          one run in two directories\n"
                    "  eventlog merge --prefix logs/a logs/b -o both        two runs side by side in one\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 1,
        .wanted = "no PATH given;",
    };
    const struct rewrite_command command = {
        &options, &m, .group_files = 1, .check = merge_check, .all = merge_all, .tell = merge_tell,
    };
    int status = rewrite_command_run(&m.rewrite, &command, argc, argv);

    buffer_release(&m.version);
    buffer_release(&m.tag);
    return status;
}
