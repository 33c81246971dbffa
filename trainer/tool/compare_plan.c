#include "trainer/tool/compare_plan.h"

#include "trainer/training_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS_MORE = 6 }; /* words: the program, --threads and --checkpoint-dir with their values, NULL */

/* 1: the workers of that strategy are threads. */
static int has_threads(const struct cell *c)
{
    const size_t n = strcspn(c->strategy, ":");

    for (size_t i = 0; strategy_kinds[i]; i++)
        if (strlen(strategy_kinds[i]->name) == n && !strncmp(strategy_kinds[i]->name, c->strategy, n))
            return strategy_kinds[i]->threads;
    return 0;
}

/* What the words of a cell's training say, as far as they can be checked, and the texts that it borrows. */
struct cell_options {
    struct train_options o;
    struct cell_words own;
    char threads[16];
};

/* The words point into their owners; the parser moves the pointers alone. On OK train_options_release() its o. */
static int parse_cell(struct cell_options *out, const struct compare_wanted *w, const struct cell *c, struct error *e)
{
    /* Each cell has a directory of checkpoints, which options that ask for one are checked with. */
    static char program[] = "trainer", option[] = "--threads", saving[] = "--checkpoint-dir", directory[] = "CELL";
    char **words = calloc(w->training_count + CELL_WORDS + OPTIONS_MORE, sizeof *words);
    int n = 0, rc = words ? cell_words(c, &out->own, e) : error_memory(e, NULL, "for a cell");

    if (rc == OK) {
        words[n++] = program;
        for (size_t i = 0; i < w->training_count; i++)
            words[n++] = w->training[i];
        for (size_t i = 0; i < out->own.count; i++)
            words[n++] = out->own.text + (out->own.words[i] - out->own.text);
        if (has_threads(c)) {
            snprintf(out->threads, sizeof out->threads, "%d", c->workers);
            words[n++] = option;
            words[n++] = out->threads;
        }
        words[n++] = saving;
        words[n++] = directory;
        rc = train_options_parse(&out->o, NULL, 0, n, words, e);
    }
    free(words);
    return rc < 0 ? error_prefix(e, "%s", c->name) : OK;
}

static int64_t steps_for(const struct train_options *o, int workers, int64_t samples)
{
    const int64_t step = o->sizes.global_batch     ? o->sizes.global_batch
                         : o->strategy.synchronous ? (int64_t)o->sizes.batch_size * workers
                                                   : o->sizes.batch_size;

    return (samples + step - 1) / step;
}

/* On how many hosts it is; and its servers: unless options say otherwise, with a list of hosts one on each. */
static int place_cell(struct cell_job *job, const struct compare_wanted *w, struct strategy_options *o, struct error *e)
{
    const struct strategy_servers *said = o->kind->servers ? o->kind->servers(o) : NULL;
    struct resource_info hosts = { .count = 1 };
    int rc = OK;

    if (w->hosts && !job->threads && (rc = resource_info_first(&hosts, w->hosts, job->cell->workers, e)) < 0)
        return error_prefix(e, "%s", job->cell->name);
    job->hosts = (int)hosts.count;
    job->each_host = w->hosts && said && !said->given && !said->per_host;
    job->servers = strategy_count_servers(o, job->hosts);
    resource_info_release(&hosts);
    return rc;
}

/* Plans a cell. 1: it is possible; 0: not with this number of workers. */
static int plan_cell(struct compare_plan *p, const struct compare_wanted *w, const struct cell *c, struct error *e)
{
    struct cell_job job = { .cell = c, .threads = has_threads(c) };
    struct cell_options all;
    struct train_options *const o = &all.o;
    int rc = parse_cell(&all, w, c, e);

    if (rc < 0)
        return rc;
    train_options_release(o); /* what is used below are numbers, and words of the command line */
    if (w->hosts && job.threads && c->workers > w->hosts->hosts[0].devices)
        return 0;
    if ((rc = place_cell(&job, w, &o->strategy, e)) < 0)
        return rc;
    if (o->strategy.kind->workers(&o->strategy, job.threads ? 1 : c->workers + job.servers, NULL) != c->workers)
        return 0;
    job.worker_threads = o->sizes.threads;
    job.max_steps = w->samples ? steps_for(o, c->workers, w->samples) : 0;
    if (!o->save_steps && !(o->save_seconds > 0) && w->evaluations)
        job.save_steps = ((w->samples ? job.max_steps : o->max_steps) + w->evaluations - 1) / w->evaluations;
    p->model = o->model_given;
    p->data = o->data;
    p->data_directory = o->data_directory;
    p->words = o->words;
    p->jobs[p->count++] = job;
    return 1;
}

int compare_plan_make(struct compare_plan *out, const struct compare_wanted *w, struct error *e)
{
    const char *names[STRATEGY_KINDS + 1] = { NULL };
    size_t cells;
    int rc;

    memset(out, 0, sizeof *out);
    for (size_t i = 0; strategy_kinds[i]; i++)
        names[i] = strategy_kinds[i]->name;
    if ((rc = cells_parse(&out->cells, &cells, w->strategies, w->ranks, names, e)) < 0)
        return rc;
    if (!(out->jobs = calloc(cells, sizeof *out->jobs)))
        return error_memory(e, NULL, "for %zu cells", cells);
    for (size_t i = 0; i < cells; i++) {
        const struct cell *c = &out->cells[i];

        if ((rc = plan_cell(out, w, c, e)) < 0)
            return rc;
        if (rc == 0)
            buffer_format(&out->left_out, "%s%s with %d worker%s", out->left_out.length ? ", " : "", c->strategy,
                          c->workers, c->workers == 1 ? "" : "s");
    }
    if (out->count == 0)
        return error_set(e, ERR_ARG, "nothing is possible of: %s", buffer_text(&out->left_out));
    return OK;
}

/* Opens what worker `worker` of a cell reads, unless *d is that already, as each worker reads everything. */
static int check_worker(struct dataset **d, struct train_options *o, int workers, int worker, struct error *e)
{
    struct batch_plan batches;
    int rc = training_data_batches(&batches, o, workers, worker, e);

    if (rc == OK && *d && o->shard == SHARD_FILES) {
        dataset_free(*d);
        *d = NULL;
    }
    if (rc == OK && !*d)
        rc = training_data_open(d, o, workers, worker, e);
    return rc == OK ? training_data_fills(*d, o, &batches, workers, e) : rc;
}

/* Of its workers the last one has the least. */
static int check_cell(struct dataset **d, struct train_options *o, const struct cell_job *j, struct error *e)
{
    const int workers = j->cell->workers;
    int rc = check_worker(d, o, workers, 0, e);

    if (rc == OK && workers > 1 && !j->threads && o->shard == SHARD_FILES) {
        const uint64_t first = (*d)->count;

        if ((rc = check_worker(d, o, workers, workers - 1, e)) == OK)
            rc = training_data_even(*d, o, workers - 1, first, e);
    }
    return rc;
}

int compare_plan_check_data(const struct compare_plan *p, const struct compare_wanted *w, struct error *e)
{
    struct dataset *d = NULL;
    int rc = OK;

    for (size_t i = 0; i < p->count && rc == OK; i++) {
        struct cell_options all;

        if ((rc = parse_cell(&all, w, p->jobs[i].cell, e)) < 0)
            break;
        if ((rc = check_cell(&d, &all.o, &p->jobs[i], e)) < 0)
            error_prefix(e, "%s", p->jobs[i].cell->name);
        else if (i == 0 && w->evaluations && (rc = training_data_check_test(&all.o, w->num_examples, e)) < 0)
            error_prefix(e, "the evaluator");
        train_options_release(&all.o);
    }
    dataset_free(d);
    return rc < 0 ? (e->code = ERR_ARG) : OK;
}

void compare_plan_release(struct compare_plan *p)
{
    free(p->cells);
    free(p->jobs);
    buffer_release(&p->left_out);
    memset(p, 0, sizeof *p);
}
