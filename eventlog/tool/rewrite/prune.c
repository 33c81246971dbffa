/* eventlog prune: deletes runs of a log directory by age, size and number of points. */
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/program/table.h"
#include "base/program/terminal.h"
#include "base/program/time_text.h"
#include "base/text.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/gather.h"
#include "eventlog/tool/rewrite/removable.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BY_AGE = 1, BY_POINTS = 2, BY_BYTES = 4 };

struct candidate {
    const struct removable_run *run;
    int64_t points;     /* of its longest series; -1: not read, or not to be judged by */
    unsigned why;       /* BY_*: it goes */
    int kept;           /* by --keep or --run */
    struct error stays; /* code set: a rule selects it, but it stays, for this reason */
    int deleted;
};

struct prune {
    struct scan scan;
    struct selection keep;
    struct removable list;
    struct candidate *runs; /* list.count of them, the oldest first */
    const char *older_text, *bytes_text, *grace_text;
    double older, newest; /* --older-than as a time; what was written after newest stays in any case */
    uint64_t most;
    int64_t fewer;
    int delete, json, unknown;
    uint64_t left_over;        /* bytes over --max-bytes that nothing more can be selected for */
    size_t count, files, left; /* runs and files that go; runs that are selected, but have to stay */
    uint64_t bytes, all_bytes;
};

/* ---- what goes --------------------------------------------------------------------------------------------------- */

static int by_age(const void *a, const void *b)
{
    const struct removable_run *x = ((const struct candidate *)a)->run, *y = ((const struct candidate *)b)->run;

    return x->changed < y->changed ? -1 : x->changed > y->changed ? 1 : text_natural_order(x->name, y->name);
}

/* Selects a run unless something keeps it, which is checked once. 1 or 0. */
static int select_run(struct prune *p, struct candidate *c, unsigned why)
{
    if (c->stays.code)
        return 0;
    if (!c->why && removable_check(c->run, &p->unknown, &c->stays) != OK) {
        p->left++;
        log_line(&p->scan.log, "%s", c->stays.message);
        return 0;
    }
    if (!c->why) {
        p->count++;
        p->files += c->run->count;
        p->bytes += c->run->bytes;
    }
    c->why |= why;
    return 1;
}

static int eligible(const struct prune *p, const struct candidate *c)
{
    return !c->kept && c->run->changed < p->newest;
}

/* The number of values of the longest series; -1 for a run of only hyperparameters or layouts, which describe other
 * runs. */
static int64_t most_points(const struct scalar_run *scalars)
{
    int64_t most = scalars->count ? -1 : 0;

    for (size_t i = 0; i < scalars->count; i++) {
        const struct scalar_series *s = &scalars->series[i];
        int64_t points = (int64_t)(s->seen + s->skipped);

        if (strcmp(s->plugin, "hparams") != 0 && strcmp(s->plugin, "custom_scalars") != 0 && points > most)
            most = points;
    }
    return most;
}

/* Counts the points of a run, except a damaged one, of which an unknown number is lost. */
static int count_points(struct prune *p, struct candidate *c, struct error *e)
{
    const struct removable_run *run = c->run;
    struct log_run files = { .name = run->name,
                             .directory = run->directory,
                             .files = calloc(run->count, sizeof(char *)) };
    uint64_t damaged = p->scan.damaged;
    int failed = p->scan.failed, rc = files.files ? OK : error_memory(e, run->name, "for it");
    struct scalar_run scalars;
    char path[PATH_MAX];

    for (size_t i = 0; rc == OK && i < run->count; i++)
        if ((rc = file_join(path, sizeof path, run->directory, run->files[i].name, e)) == OK &&
            !(files.files[files.file_count++] = strdup(path)))
            rc = error_memory(e, run->name, "for it");
    if (rc == OK)
        log_run_sort(&files);
    scalar_run_init(&scalars, EVENTLOG_VIEW_ALL, 0, 0);
    p->scan.failed = 0;
    if (rc == OK)
        rc = gather_run(&p->scan, &files, &scalars, NULL, NULL, e);
    c->points = rc == OK && !p->scan.failed ? most_points(&scalars) : -1;
    if (p->scan.damaged > damaged) {
        c->points = -1;
        log_line(&p->scan.log, "run %s: is damaged, so --fewer-than does not select it", run->name);
    }
    p->scan.failed |= failed;
    scalar_run_release(&scalars);
    for (size_t i = 0; i < files.file_count; i++)
        free(files.files[i]);
    free(files.files);
    return rc;
}

/* Selects runs by age and points; then the oldest of the rest until the others fit. */
static int select_all(struct prune *p, struct error *e)
{
    uint64_t stay;
    int rc = OK;

    for (size_t i = 0; i < p->list.count; i++)
        if (p->fewer > 0 && eligible(p, &p->runs[i]))
            p->scan.bytes += p->runs[i].run->bytes;
    for (size_t i = 0; rc == OK && i < p->list.count; i++) {
        struct candidate *c = &p->runs[i];

        p->all_bytes += c->run->bytes;
        if (!eligible(p, c))
            continue;
        if (p->fewer > 0)
            rc = count_points(p, c, e);
        if (p->older_text && c->run->changed < p->older)
            select_run(p, c, BY_AGE);
        if (c->points >= 0 && c->points < p->fewer)
            select_run(p, c, BY_POINTS);
    }
    log_progress_end(&p->scan.log);
    if (!p->bytes_text || rc != OK)
        return rc;
    stay = p->all_bytes - p->bytes;
    for (size_t i = 0; stay > p->most && i < p->list.count; i++)
        if (eligible(p, &p->runs[i]) && !p->runs[i].why && select_run(p, &p->runs[i], BY_BYTES))
            stay -= p->runs[i].run->bytes;
    p->left_over = stay > p->most ? stay - p->most : 0;
    return OK;
}

/* ---- what is done ------------------------------------------------------------------------------------------------ */

/* Leaves runs that have changed since they were listed, reports what cannot be deleted, and continues with the
 * others. */
static void delete_all(struct prune *p)
{
    p->count = p->files = 0;
    p->bytes = 0;
    for (size_t i = 0; i < p->list.count; i++) {
        struct candidate *c = &p->runs[i];
        int rc = c->why ? removable_delete(c->run, &c->stays) : OK;

        if (!c->why)
            continue;
        if (rc == OK) {
            c->deleted = 1;
            p->count++;
            p->files += c->run->count;
            p->bytes += c->run->bytes;
            continue;
        }
        log_line(&p->scan.log, "%s", c->stays.message);
        p->left++;
        p->scan.failed |= rc != ERR_ARG;
    }
}

/* ---- what is told ------------------------------------------------------------------------------------------------ */

static const struct {
    unsigned why;
    const char *word;
} whys[] = {
    { BY_AGE, "age" },
    { BY_POINTS, "points" },
    { BY_BYTES, "size" },
};

static void print_json(const struct prune *p, struct buffer *b)
{
    const char *comma = "";

    buffer_format(b, "{\"type\":\"prune\",\"version\":1,\"deleted\":%s,\"runs\":[", p->delete ? "true" : "false");
    for (size_t i = 0; i < p->list.count; i++) {
        const struct candidate *c = &p->runs[i];
        const char *separator = "";

        if (!c->why && !c->stays.code)
            continue;
        buffer_format(b, "%s\n{\"run\":", comma);
        json_text(b, c->run->name);
        buffer_append_text(b, ",\"directory\":");
        json_text(b, c->run->directory);
        buffer_append_text(b, ",\"last_written\":");
        json_double(b, c->run->changed);
        if (c->points >= 0)
            buffer_format(b, ",\"points\":%lld", (long long)c->points);
        else
            buffer_append_text(b, ",\"points\":null");
        buffer_format(b, ",\"files\":%zu,\"bytes\":%llu,\"why\":[", c->run->count, (unsigned long long)c->run->bytes);
        for (size_t k = 0; k < sizeof whys / sizeof *whys; k++)
            if (c->why & whys[k].why) {
                buffer_format(b, "%s\"%s\"", separator, whys[k].word);
                separator = ",";
            }
        buffer_format(b, "],\"state\":\"%s\",\"reason\":",
                      c->stays.code ? "left"
                      : c->deleted  ? "deleted"
                                    : "selected");
        json_text(b, c->stays.code ? c->stays.message : NULL);
        buffer_append_byte(b, '}');
        comma = ",";
    }
    buffer_format(b,
                  "%s],\"total\":{\"runs\":%zu,\"files\":%zu,\"bytes\":%llu,\"left\":%zu,\"kept_runs\":%zu,"
                  "\"kept_bytes\":%llu,\"over_bytes\":%llu}}\n",
                  *comma ? "\n" : "", p->count, p->files, (unsigned long long)p->bytes, p->left,
                  p->list.count - p->count, (unsigned long long)(p->all_bytes - p->bytes),
                  (unsigned long long)p->left_over);
}

static void print_table(const struct prune *p, struct buffer *b)
{
    static const struct table_column columns[] = {
        { .title = "run", .cut = 16 },   { .title = "last written" }, { .title = "files", .right = 1, .leave_out = 2 },
        { .title = "size", .right = 1 }, { .title = "why" },          { .title = "points", .right = 1, .leave_out = 1 },
    };
    char time[TIME_TEXT_MAX], size[HUMAN_TEXT_MAX];
    struct table t;

    table_init(&t, columns, sizeof columns / sizeof *columns - (p->fewer <= 0));
    for (size_t i = 0; i < p->list.count; i++) {
        const struct candidate *c = &p->runs[i];
        struct buffer why = BUFFER_EMPTY;

        if (!c->why || c->stays.code)
            continue;
        for (size_t k = 0; k < sizeof whys / sizeof *whys; k++)
            if (c->why & whys[k].why)
                buffer_format(&why, "%s%s", why.length ? ", " : "", whys[k].word);
        table_text(&t, c->run->name, strlen(c->run->name));
        table_cell(&t, "%s", time_text(TIME_SHORT, c->run->changed, time));
        table_cell(&t, "%zu", c->run->count);
        table_cell(&t, "%s", human_bytes(c->run->bytes, size));
        table_text(&t, buffer_text(&why), why.length);
        if (p->fewer > 0 && c->points >= 0)
            table_cell(&t, "%lld", (long long)c->points);
        else if (p->fewer > 0)
            table_cell(&t, "-");
        buffer_release(&why);
    }
    if (p->count)
        table_print(&t, 0, terminal_columns(STDOUT_FILENO), !terminal_utf8(), b);
    table_release(&t);
}

static void print_text(const struct prune *p, struct buffer *b)
{
    size_t stay = p->list.count - p->count;
    char gone[HUMAN_TEXT_MAX], left[HUMAN_TEXT_MAX], runs[HUMAN_TEXT_MAX], files[HUMAN_TEXT_MAX];
    char staying[HUMAN_TEXT_MAX];

    print_table(p, b);
    human_count(stay, "run", staying);
    human_bytes(p->bytes, gone);
    human_bytes(p->all_bytes - p->bytes, left);
    if (!p->count)
        buffer_format(b, "nothing to delete: %s, %s\n", staying, left);
    else
        buffer_format(b, "%s, %s, %s %sdeleted%s; %s, %s, stay%s\n", human_count(p->count, "run", runs),
                      human_count(p->files, "file", files), gone, p->delete ? "" : "to be ",
                      p->delete ? "" : " with --delete", staying, left, stay == 1 ? "s" : "");
}

/* Reports what could not be done or determined. */
static void prune_tell(struct prune *p)
{
    struct log *log = &p->scan.log;
    char over[HUMAN_TEXT_MAX];

    if (p->left_over)
        log_line(log,
                 "--max-bytes: still %s too large; the remaining runs are kept, being written, or newer than --grace",
                 human_bytes(p->left_over, over));
    if (p->list.links)
        log_line(log, "symbolic links that are not followed: %zu", p->list.links);
    if (p->list.others)
        log_line(log, "files with 'tfevents' in their names that are not event files, and stay: %zu", p->list.others);
    if (p->unknown && p->count)
        log_line(log, "cannot tell whether some of these runs are being written, on a network file system or by "
                      "another user; decided by the times of their files");
}

/* ---- the command line ------------------------------------------------------------------------------------------ */

static int settle(struct prune *p, struct error *e)
{
    double grace, now = clock_wall();

    if (!p->older_text && !p->bytes_text && p->fewer <= 0)
        return error_set(e, ERR_ARG, "no rule given; add --older-than, --fewer-than or --max-bytes");
    if (p->older_text && !time_parse(p->older_text, now, &p->older))
        return error_set(e, ERR_ARG, "--older-than %.40s: not a time; write 30d, 12h or 2026-11-01", p->older_text);
    if (p->bytes_text && !human_parse_bytes(p->bytes_text, &p->most))
        return error_set(e, ERR_ARG, "--max-bytes %.40s: not a size; write a number of bytes, or 100M, 10G, 1.5T",
                         p->bytes_text);
    if (!time_parse_duration(p->grace_text, &grace))
        return error_set(e, ERR_ARG, "--grace %.40s: not a length of time; write 12h or 3d", p->grace_text);
    p->newest = now - grace;
    return OK;
}

static int by_inode(const void *a, const void *b)
{
    const struct stat *x = &((const struct candidate *)a)->run->before;
    const struct stat *y = &((const struct candidate *)b)->run->before;

    if (x->st_dev != y->st_dev)
        return x->st_dev < y->st_dev ? -1 : 1;
    return (x->st_ino > y->st_ino) - (x->st_ino < y->st_ino);
}

/* Puts the runs in order of age. ERR_ARG: two of them are the same, as with `logs logs/a`; it would count twice. */
static int order(struct prune *p, struct error *e)
{
    qsort(p->runs, p->list.count, sizeof *p->runs, by_inode);
    for (size_t i = 1; i < p->list.count; i++)
        if (!by_inode(&p->runs[i - 1], &p->runs[i]))
            return error_set(e, ERR_ARG, "%s and %s are the same run; name each log directory once",
                             p->runs[i - 1].run->directory, p->runs[i].run->directory);
    qsort(p->runs, p->list.count, sizeof *p->runs, by_age);
    return OK;
}

static int prune_list(struct prune *p, char **paths, int count, struct error *e)
{
    int rc = OK;

    for (int i = 0; rc == OK && i < count; i++)
        rc = removable_list(&p->list, paths[i], count > 1, &p->scan.log, e);
    if (rc == OK && !(p->runs = calloc(p->list.count + 1, sizeof *p->runs)))
        rc = error_memory(e, NULL, "for %zu runs", p->list.count);
    for (size_t i = 0; rc == OK && i < p->list.count; i++) {
        const struct removable_run *run = &p->list.runs[i];
        int wanted = scan_run_wanted(&p->scan, run->name);

        p->runs[i] = (struct candidate){ .run = run, .points = -1 };
        p->runs[i].kept = !wanted || (p->keep.patterns.count && selection_wants(&p->keep, run->name));
    }
    return rc == OK ? order(p, e) : rc;
}

static int run(struct prune *p, char **paths, int count, struct error *e)
{
    struct buffer b = BUFFER_EMPTY;
    size_t unmatched;
    int rc;

    if ((rc = settle(p, e)) != OK || (rc = prune_list(p, paths, count, e)) != OK)
        return rc;
    p->scan.failed |= p->list.failed;
    unmatched = p->list.count ? selection_tell(&p->keep, "--keep", "run", &p->scan.log) : 0;
    if (unmatched && p->delete)
        return error_set(e, ERR_ARG, "--keep matches no run, so nothing is deleted");
    if ((rc = select_all(p, e)) != OK)
        return rc;
    if (p->delete)
        delete_all(p);
    p->json ? print_json(p, &b) : print_text(p, &b);
    prune_tell(p);
    if (!buffer_ok(&b))
        rc = error_memory(e, NULL, "for the list of runs");
    else if (fputs(buffer_text(&b), stdout) == EOF || fflush(stdout) != 0)
        rc = error_system(e, "standard output: cannot write");
    buffer_release(&b);
    p->scan.unmatched += unmatched;
    return rc;
}

int command_prune(int argc, char **argv)
{
    struct prune p = { .grace_text = "1d", .scan = { .quiet_damage = 1 } };
    struct option table[] = {
        { OPTION_HEADING, .help = "Select runs" },
        { OPTION_TEXT, 0, "older-than", &p.older_text, "AGE",
          .help = "Select runs last written more than AGE ago (30d, 12h) or before a date (2026-01-31)" },
        { OPTION_INT, 0, "fewer-than", &p.fewer, "N",
          .help = "Select runs whose longest series has fewer than N values, such as aborted starts; damaged runs, and "
                  "runs with only hyperparameters or layouts, are not selected",
          .minimum = 1, .maximum = 1e15 },
        { OPTION_TEXT, 0, "max-bytes", &p.bytes_text, "SIZE",
          .help = "Also select the oldest of the other runs, until the event files of the rest take at most SIZE "
                  "(500M, 10G)" },
        { OPTION_HEADING, .help = "Keep runs" },
        { OPTION_LIST, 0, "keep", &p.keep.patterns, "GLOB", .help = "Keep runs whose name matches; may be repeated" },
        { OPTION_LIST, 0, "run", &p.scan.runs.patterns, "GLOB",
          .help = "Consider only runs whose name matches; may be repeated" },
        { OPTION_TEXT, 0, "grace", &p.grace_text, "AGE",
          .help = "Keep runs written within the last AGE, even if a rule selects them (default 1d)" },
        { OPTION_HEADING, .help = "Delete" },
        { OPTION_FLAG, 0, "delete", &p.delete,
          .help = "Delete the selected runs; without this option they are only listed" },
        { OPTION_FLAG, 0, "json", &p.json, .help = "Print one JSON object" },
    };
    const struct options options = {
        .program = "eventlog prune",
        .usage = "[OPTION...] LOGDIR...",
        .summary = "Delete old, short or surplus runs of a log directory; without --delete, only list them. A run is "
                   "selected if any rule selects it, and its event files are deleted together, with its directory if "
                   "nothing else is in it. The age of a run is that of its newest event file. Runs that a process on "
                   "this machine has open for writing, and runs that change meanwhile, are left alone; writers on "
                   "other machines are noticed only by the times of their files. Symbolic links are not followed, and "
                   "only event files are deleted. To thin out runs instead, see 'eventlog downsample'. Exit status: 0 "
                   "done, or nothing to delete; 1 some runs were left, or a filter matched nothing; 2 usage or I/O.",
        .examples = "  eventlog prune --older-than 30d --fewer-than 10 logs             only list\n"
                    "  eventlog prune --older-than 30d --keep 'best/*' --delete logs\n"
                    "  eventlog prune --max-bytes 10G --delete logs\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 1,
        .wanted = "no LOGDIR given;",
    };
    struct error e = { 0 };
    int count = 0, status, rc = scan_begin(&p.scan, &options, argc, argv, &count, &e);

    if (rc == OK)
        rc = run(&p, argv + 1, count, &e);
    p.scan.damaged = 0; /* what is damaged stays */
    status = rc == OK ? scan_status(&p.scan, 1) : scan_leave(&p.scan, rc, &e);
    if (status == EXIT_DONE && (p.left || p.left_over))
        status = EXIT_NO;
    removable_release(&p.list);
    selection_release(&p.keep);
    free(p.runs);
    scan_close(&p.scan);
    return status;
}
