#include "trainer/tool/compare_plan.h"

#include "trainer/train_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS_MORE = 6 }; /* words: the program, --threads and --checkpoint-dir with their values, NULL */

/* The words of a cell's training as far as they can be checked. They point into their owners; the parser moves the
 * pointers alone. */
static int words_of(const struct compare_wanted *w, const struct cell *c, int threads, struct cell_words *own,
                    char number[16], char **words, struct error *e)
{
    /* Each cell has a directory of checkpoints, which options that ask for one are checked with. */
    static char program[] = "trainer", option[] = "--threads", saving[] = "--checkpoint-dir", directory[] = "CELL";
    int n = 0, rc = cell_words(c, own, e);

    if (rc < 0)
        return rc;
    words[n++] = program;
    for (size_t i = 0; i < w->training_count; i++)
        words[n++] = w->training[i];
    for (size_t i = 0; i < own->count; i++)
        words[n++] = own->text + (own->words[i] - own->text);
    if (threads) {
        snprintf(number, 16, "%d", c->workers);
        words[n++] = option;
        words[n++] = number;
    }
    words[n++] = saving;
    words[n++] = directory;
    words[n] = NULL;
    return n;
}

/* 1: the workers of that strategy are threads. */
static int has_threads(const struct cell *c)
{
    const size_t n = strcspn(c->strategy, ":");

    for (size_t i = 0; strategy_kinds[i]; i++)
        if (strlen(strategy_kinds[i]->name) == n && !strncmp(strategy_kinds[i]->name, c->strategy, n))
            return strategy_kinds[i]->threads;
    return 0;
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
    char **words = calloc(w->training_count + CELL_WORDS + OPTIONS_MORE, sizeof *words), number[16];
    struct train_options o;
    struct cell_words own;
    int rc = words ? words_of(w, c, job.threads, &own, number, words, e) : error_memory(e, NULL, "for a cell");

    if (rc > 0)
        rc = train_options_parse(&o, NULL, 0, rc, words, e);
    free(words);
    if (rc < 0)
        return error_prefix(e, "%s", c->name);
    train_options_release(&o); /* what is used below are numbers, and words of the command line */
    if (w->hosts && job.threads && c->workers > w->hosts->hosts[0].devices)
        return 0;
    if ((rc = place_cell(&job, w, &o.strategy, e)) < 0)
        return rc;
    if (o.strategy.kind->workers(&o.strategy, job.threads ? 1 : c->workers + job.servers, NULL) != c->workers)
        return 0;
    job.worker_threads = o.sizes.threads;
    job.max_steps = w->samples ? steps_for(&o, c->workers, w->samples) : 0;
    if (!o.save_steps && !(o.save_seconds > 0) && w->evaluations)
        job.save_steps = ((w->samples ? job.max_steps : o.max_steps) + w->evaluations - 1) / w->evaluations;
    p->model = o.model_given;
    p->data = o.data;
    p->data_directory = o.data_directory;
    p->words = o.words;
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

void compare_plan_release(struct compare_plan *p)
{
    free(p->cells);
    free(p->jobs);
    buffer_release(&p->left_out);
    memset(p, 0, sizeof *p);
}
