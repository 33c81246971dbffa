#include "trainer/compare/cell_run.h"

#include "base/file.h"
#include "eventlog/eventlog.h"
#include "trainer/launch/child.h"
#include "trainer/timing/processor_use.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LOG_MOST = 64 << 20,
    OPTIONS_MORE = 16,
    EVALUATOR_WORDS = 24 + CELL_READING_MAX,
    STEADY_FROM = 100,
    STEADY_TO = 200
};

/* ---- the command line -------------------------------------------------------------------------------------------- */

int cell_ranks(const struct cell_job *j)
{
    return j->cell->workers + j->servers;
}

int cell_place(struct cell_place *out, const struct cell_setup *s, const struct cell_job *j, struct error *e)
{
    const struct {
        char *to;
        const char *name;
    } parts[] = {
        { out->checkpoints, "ckpt" }, { out->train, "train" },          { out->eval, "eval" },
        { out->log, "log.txt" },      { out->summary, "summary.json" }, { out->evaluator_log, "evaluator.txt" },
    };
    const int n = snprintf(out->directory, sizeof out->directory, "%s/round-%d/%s", s->directory, j->round,
                           j->cell->name);

    if (n < 0 || (size_t)n >= sizeof out->directory)
        return error_set(e, ERR_ARG, "--output: the path is too long");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        snprintf(parts[i].to, sizeof out->checkpoints, "%s/%s", out->directory, parts[i].name);
    return OK;
}

/* numbers of a line, as text */
struct line_numbers {
    char threads[16], max_steps[32], save_steps[32];
};

static const char *environment(const char *name)
{
    return getenv(name);
}

/* Adds an option and its value. */
static size_t pair(const char **words, size_t at, const char *name, const char *value)
{
    words[at] = name;
    words[at + 1] = value;
    return at + 2;
}

/* The trainer's own options; returns how many words. */
static size_t add_options(const char **words, const struct cell_setup *s, const struct cell_job *j,
                          const struct cell_words *own, const struct cell_place *place, struct line_numbers *numbers)
{
    size_t n = 0;

    for (size_t i = 0; i < s->training_count; i++)
        words[n++] = s->training[i];
    for (size_t i = 0; i < own->count; i++)
        words[n++] = own->words[i];
    if (j->threads) {
        snprintf(numbers->threads, sizeof numbers->threads, "%d", j->cell->workers);
        n = pair(words, n, "--threads", numbers->threads);
    }
    if (j->max_steps) {
        snprintf(numbers->max_steps, sizeof numbers->max_steps, "%lld", (long long)j->max_steps);
        n = pair(words, n, "--max-steps", numbers->max_steps);
    }
    if (j->save_steps) {
        snprintf(numbers->save_steps, sizeof numbers->save_steps, "%lld", (long long)j->save_steps);
        n = pair(words, n, "--save-checkpoint-steps", numbers->save_steps);
    }
    if (j->each_host)
        n = pair(words, n, "--servers-per-host", "1");
    n = pair(words, n, "--checkpoint-dir", place->checkpoints);
    n = pair(words, n, "--log-dir", place->train);
    n = pair(words, n, "--resume", "never");
    words[n++] = "--json";
    return n;
}

/* Copies the words, with their texts, into one block. */
static int own_words(const char ***out, const char *const *words, size_t count, struct error *e)
{
    size_t bytes = 0;
    char *text;

    for (size_t i = 0; i < count; i++)
        bytes += strlen(words[i]) + 1;
    if (!(*out = malloc((count + 1) * sizeof **out + bytes)))
        return error_memory(e, NULL, "for the line of a training");
    text = (char *)(void *)(*out + count + 1);
    for (size_t i = 0; i < count; i++) {
        (*out)[i] = strcpy(text, words[i]);
        text += strlen(text) + 1;
    }
    (*out)[count] = NULL;
    return OK;
}

/* mpirun's line on the hosts; the program alone where one process does all. */
static int start_line(const char ***out, const struct cell_setup *s, const char *const *words, size_t count,
                      const struct cell_job *j, struct error *e)
{
    struct resource_host here = { .name = "localhost", .devices = j->cell->workers };
    struct resource_info hosts = { .hosts = &here, .count = 1, .capacity = 1 };
    char directory[4096];
    const struct mpirun_job job = {
        .mpirun = s->mpirun,
        .hosts = &hosts,
        .servers = j->servers,
        .program = words[0],
        .directory = directory,
        .options = words + 1,
        .option_count = count - 1,
        .environment = environment,
    };
    const char **line;
    size_t n = 0;
    int rc;

    if (j->threads || cell_ranks(j) == 1)
        return own_words(out, words, count, e);
    if (!getcwd(directory, sizeof directory))
        return error_system(e, "cannot find the current directory");
    if (s->hosts && (rc = resource_info_first(&hosts, s->hosts, j->cell->workers, e)) < 0)
        return rc;
    rc = mpirun_line(&line, &job, e);
    if (s->hosts)
        resource_info_release(&hosts);
    if (rc < 0)
        return rc;
    while (line[n])
        n++;
    rc = own_words(out, line, n, e);
    free(line);
    return rc;
}

int cell_line(const char ***out, const struct cell_setup *s, const struct cell_job *j, const struct cell_place *place,
              struct error *e)
{
    const char **words = calloc(1 + s->training_count + CELL_WORDS + OPTIONS_MORE, sizeof *words);
    struct line_numbers numbers;
    struct cell_words own;
    int rc = words ? cell_words(j->cell, &own, e) : error_memory(e, NULL, "for the line of a training");

    if (rc == OK) {
        words[0] = s->program;
        rc = start_line(out, s, words, 1 + add_options(words + 1, s, j, &own, place, &numbers), j, e);
    }
    free(words);
    return rc;
}

static void evaluator_words(const char **words, const struct cell_setup *s, const struct cell_place *place,
                            char examples[32])
{
    size_t n = 0;

    words[n++] = s->evaluator;
    n = pair(words, n, "--checkpoint-dir", place->checkpoints);
    n = pair(words, n, "--eval-dir", place->eval);
    n = pair(words, n, "--model", s->model);
    n = pair(words, n, "--data", s->data);
    if (s->data_directory)
        n = pair(words, n, "--data-dir", s->data_directory);
    for (size_t i = 0; i < s->reading_count; i++)
        words[n++] = s->reading[i];
    n = pair(words, n, "--wall-time", "checkpoint");
    if (s->num_examples) {
        snprintf(examples, 32, "%lld", (long long)s->num_examples);
        n = pair(words, n, "--num-examples", examples);
    }
    if (s->evaluate == EVALUATE_AFTER)
        words[n++] = "--once";
    words[n] = NULL;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static int remove_item(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st;
    (void)type;
    (void)where;
    return remove(path);
}

/* Makes the directory of the run, without what an earlier, interrupted run left in it. */
static int make_place(const struct cell_place *place, struct error *e)
{
    if (access(place->directory, F_OK) == 0 &&
        nftw(place->directory, remove_item, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) != 0)
        return error_system(e, "remove %s", place->directory);
    return file_make_directories(place->directory, e);
}

static void read_reason(const char *path, struct outcome *out)
{
    struct buffer text = BUFFER_EMPTY;

    if (file_read(path, LOG_MOST, &text, NULL) == OK)
        outcome_reason(buffer_text(&text), out->reason, sizeof out->reason);
    else
        snprintf(out->reason, sizeof out->reason, "it could not be started");
    buffer_release(&text);
}

/* Speeds from the points of the curve; without one the mean of the summary stays. */
static void read_curve(const char *directory, struct outcome *out)
{
    static const char *const tags[] = { "loss" };
    const struct eventlog_reader_options options = { .tags = tags, .tag_count = 1, .numbers_only = 1 };
    struct eventlog_points *points = NULL;
    const struct eventlog_point *of;
    struct curve_point *curve;
    size_t count = 0;

    if (eventlog_points_read(&points, directory, EVENTLOG_VIEW_SESSION, &options, NULL) != EVENTLOG_OK)
        return;
    of = eventlog_points_of(points, 0, &count);
    if (count > 0 && (curve = calloc(count, sizeof *curve))) {
        for (size_t i = 0; i < count; i++)
            curve[i] = (struct curve_point){ of[i].step, of[i].wall_time };
        if (curve_speed(curve, count) > 0)
            out->steps_per_second = curve_speed(curve, count);
        out->steady = curve_speed_between(curve, count, STEADY_FROM, STEADY_TO);
        free(curve);
    }
    eventlog_points_free(points);
}

static int read_text(const char *path, int (*add)(struct outcome *, const char *, size_t, struct error *),
                     struct outcome *out, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    int rc = file_read(path, LOG_MOST, &text, e);

    if (rc == OK)
        rc = add(out, buffer_text(&text), text.length, e);
    buffer_release(&text);
    return rc;
}

/* Reads what training and evaluator left. What is not there makes the run a failed one. */
static void read_all(const struct cell_setup *s, const struct cell_place *place, struct outcome *out)
{
    char ledger[2400];
    struct error e = { 0 };
    int rc = read_text(place->summary, outcome_add_summary, out, &e);

    if (rc == OK) {
        read_curve(place->train, out);
        snprintf(ledger, sizeof ledger, "%s/evaluations.jsonl", place->eval);
        if (s->evaluate != EVALUATE_NOT)
            rc = read_text(ledger, outcome_add_ledger, out, &e);
    }
    if (rc < 0) {
        out->status = 1;
        snprintf(out->reason, sizeof out->reason, "%.390s", e.message);
    }
}

/* Runs the training, and the evaluator beside it if it is to be. */
static int run_training(const struct cell_setup *s, const struct cell_job *j, const struct cell_place *place,
                        const char *const *evaluator, void (*look)(void *context), void *context,
                        struct child children[2], double *others, struct error *e)
{
    struct processor_use before, after;
    const char **line = NULL;
    int rc = cell_line(&line, s, j, place, e);

    if (rc < 0)
        return rc;
    children[0] = (struct child){ .words = line, .output = place->summary, .errors = place->log };
    children[1] = (struct child){ .words = evaluator, .output = "/dev/null", .errors = place->evaluator_log };
    processor_use_now(&before);
    rc = children_run(children, s->evaluate == EVALUATE_BESIDE ? 2 : 1, look, context, e);
    processor_use_now(&after);
    *others = processor_use_others(&before, &after);
    if (rc == OK && s->evaluate == EVALUATE_AFTER && children[0].end.status == 0 && !children[0].end.asked)
        rc = children_run(children + 1, 1, look, context, e);
    free(line);
    return rc;
}

int cell_run(const struct cell_setup *s, const struct cell_job *j, void (*look)(void *context), void *context,
             struct outcome *out, int *asked, struct error *e)
{
    const char *evaluator[EVALUATOR_WORDS];
    struct child children[2];
    struct cell_place place;
    char examples[32];
    int rc;

    memset(out, 0, sizeof *out);
    snprintf(out->cell, sizeof out->cell, "%s", j->cell->name);
    snprintf(out->strategy, sizeof out->strategy, "%s", j->cell->strategy);
    out->workers = j->cell->workers;
    out->round = j->round;
    out->ranks = cell_ranks(j) + (j->worker_threads > 1 ? (j->worker_threads - 1) * j->cell->workers : 0);
    out->cores = j->hosts * sysconf(_SC_NPROCESSORS_ONLN); /* other hosts are taken to be like this one */
    out->dropped = -1;
    if ((rc = cell_place(&place, s, j, e)) < 0 || (rc = make_place(&place, e)) < 0)
        return rc;
    evaluator_words(evaluator, s, &place, examples);
    if ((rc = run_training(s, j, &place, evaluator, look, context, children, &out->others, e)) < 0)
        return rc;
    *asked = children[0].end.asked ? children[0].end.asked : children[1].end.asked;
    out->status = children[0].end.status ? children[0].end.status : children[1].end.status;
    if (children[0].end.status)
        read_reason(place.log, out);
    else if (children[1].end.status)
        snprintf(out->reason, sizeof out->reason, "the evaluator ended with status %d; see %.300s",
                 children[1].end.status, place.evaluator_log);
    else
        read_all(s, &place, out);
    return OK;
}
