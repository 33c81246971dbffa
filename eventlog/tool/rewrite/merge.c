/* eventlog merge: several event files as one, in order of steps. */
#include "base/program/subcommand.h"
#include "eventlog/rewrite/log_group.h"
#include "eventlog/rewrite/log_merging.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/rewrite/rewrite_command.h"

#include <stdio.h>
#include <string.h>

struct merge {
    struct rewrite rewrite;
    int keep_runs, prefix, join;
    const char *overlap_word;
    enum eventlog_overlap overlap;
    struct eventlog_merged totals;
    uint64_t runs;
    uint64_t found;              /* sound records in the files of the output at hand */
    struct log_merging *merging; /* of the output at hand */
    struct rewrite_file *out;
    uint64_t planned; /* bytes of its files */
};

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

static int merge_record(void *context, uint64_t offset, const uint8_t *data, size_t n, const struct event *event,
                        struct error *e)
{
    struct merge *m = context;

    m->found++;
    return advise(log_merging_record(m->merging, offset, data, n, event, e), e);
}

static int merge_put(void *context, const char *run, double share, struct error *e)
{
    struct merge *m = context;
    struct scan *s = &m->rewrite.scan;
    int rc = rewrite_flush(&m->rewrite, m->out, 0, e);

    if (scan_progress_due(s))
        scan_progress(s, run, (uint64_t)((double)m->planned * share));
    return rc;
}

static int write_file(struct merge *m, const char *run, struct error *e)
{
    struct eventlog_merged totals;
    char name[LOG_MERGING_NAME_MAX];
    int rc;

    log_merging_name(m->merging, name);
    if ((rc = rewrite_create(&m->rewrite, run, name, &m->out, e)) != OK)
        return rc;
    rc = log_merging_write(m->merging, &m->rewrite.scan.input, &m->out->pending, merge_put, m, e);
    m->rewrite.scan.bytes_done += m->planned;
    if (rc == OK)
        rc = rewrite_flush(&m->rewrite, m->out, 1, e);
    totals = log_merging_totals(m->merging);
    m->rewrite.records += totals.records;
    m->rewrite.values += totals.values;
    return rc;
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

static int merge_read_run(struct merge *m, const struct log_run *run, size_t number, struct error *e)
{
    uint64_t before = m->rewrite.scan.bytes_done;
    int rc = OK;

    for (size_t k = 0; rc == OK && k < run->file_count; k++)
        if ((rc = log_merging_file(m->merging, number, run->name, run->files[k], e)) == OK)
            rc = rewrite_read(&m->rewrite, run->name, run->files[k], merge_record, m, e);
    m->planned += m->rewrite.scan.bytes_done - before;
    return rc;
}

/* Merges `count` runs from `first` on into one new run. */
static int merge_runs(struct merge *m, const struct log_run *first, size_t count, const char *to, struct error *e)
{
    struct eventlog_merged totals;
    int rc = log_merging_new(&m->merging, m->overlap, m->prefix, e);

    m->planned = m->found = 0;
    for (size_t i = 0; rc == OK && i < count; i++)
        if (scan_run_wanted(&m->rewrite.scan, first[i].name))
            rc = merge_read_run(m, &first[i], m->join ? 0 : i, e);
    if (rc == OK)
        rc = log_merging_finish(m->merging, e);
    if (rc == OK && log_merging_files(m->merging) && !m->found) {
        log_line(&m->rewrite.scan.log, "%s: its event files have no records; left out",
                 m->keep_runs ? first->name : to);
        m->rewrite.scan.empty = 1; /* unless others are merged, this is why there was nothing */
    } else if (rc == OK && log_merging_files(m->merging)) {
        m->runs++;
        totals = log_merging_totals(m->merging);
        m->totals.restarted += totals.restarted;
        m->totals.doubled += totals.doubled;
        m->totals.repeated += totals.repeated;
        m->totals.restarts += totals.restarts;
        m->totals.interleaved += totals.interleaved;
        rc = write_file(m, to, e);
    }
    log_merging_free(m->merging);
    m->merging = NULL;
    return rc;
}

static int merge_all(void *context, struct error *e)
{
    struct merge *m = context;
    struct log_directory *d = &m->rewrite.scan.directory;
    int rc = OK;

    if (m->join)
        rc = log_group_by_start(d, &m->rewrite.scan.input, e);
    if (rc == OK && !m->keep_runs)
        rc = merge_runs(m, d->runs, d->count, ".", e);
    for (const struct log_run *run = NULL; rc == OK && m->keep_runs && (run = scan_next_run(&m->rewrite.scan, run));)
        rc = merge_runs(m, run, 1, run->name, e);
    return rc;
}

static int merge_tell(void *context)
{
    struct merge *m = context;
    const struct eventlog_merged *t = &m->totals;
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
                 m->overlap == EVENTLOG_OVERLAP_FIRST ? "--overlap=first keeps the earlier ones"
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

    m->overlap = !strcmp(m->overlap_word, "first")   ? EVENTLOG_OVERLAP_FIRST
                 : !strcmp(m->overlap_word, "keep")  ? EVENTLOG_OVERLAP_KEEP
                 : !strcmp(m->overlap_word, "error") ? EVENTLOG_OVERLAP_ERROR
                                                     : EVENTLOG_OVERLAP_LAST;
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
            "are kept once. A run whose files have no records is left out. The same input gives the same bytes. The "
            "number of values left out is printed on standard "
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
    return rewrite_command_run(&m.rewrite, &command, argc, argv);
}
