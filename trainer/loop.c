#include "trainer/loop.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "checkpoint/checkpoint_directory.h"
#include "checkpoint/stop_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STOP_LOOK_SECONDS 0.5

static void prepare_farewell(struct loop *l)
{
    const int next = l->signals->farewell == 1;
    struct loop_farewell *f = &l->signals->farewells[next];
    struct training_state failed = l->state;
    struct buffer text = BUFFER_EMPTY;

    snprintf(failed.state, sizeof failed.state, "failed");
    training_state_format(&failed, &text);
    if (buffer_ok(&text) && text.length < sizeof f->text &&
        file_join(f->path, sizeof f->path, l->options->checkpoint_directory, TRAINING_STATE_FILE, NULL) == OK &&
        file_join(f->temporary, sizeof f->temporary, l->options->checkpoint_directory,
                  TRAINING_STATE_FILE ".tmp.end", NULL) == OK) {
        memcpy(f->text, text.data, f->length = text.length);
        l->signals->farewell = next + 1;
    }
    buffer_release(&text);
}

static int write_state(struct loop *l, const char *state, struct error *e)
{
    struct training_state *s = &l->state;

    if (!l->lead || !l->options->checkpoint_directory)
        return OK;
    snprintf(s->state, sizeof s->state, "%s", state);
    s->global_step = l->position.global_step;
    s->updated = clock_wall();
    if (!strcmp(state, "running"))
        prepare_farewell(l);
    else
        l->signals->farewell = 0;
    return training_state_write(l->options->checkpoint_directory, s, e);
}

/* The optimizer of rank 0 holds the state of position.global_step. */
static int save(struct loop *l, struct error *e)
{
    struct error failure = { OK, 0, "" };
    char path[4096];
    int rc = file_join(path, sizeof path, l->options->checkpoint_directory, "model.ckpt", e);

    if (rc < 0)
        return rc;
    if (!l->options->quiet)
        log_line(l->log, "Saving checkpoints for %" PRId64 " into %s.", l->position.global_step, path);
    rc = training_checkpoint_save(NULL, l->options->checkpoint_directory, l->options->keep, l->strategy->optimizer,
                                  &l->position, &failure);
    if (rc == CHECKPOINT_OLD_REMAINS) {
        log_line(l->log, "trainer: saved, but %s", failure.message);
        rc = OK;
    } else if (rc < 0 && e) {
        *e = failure;
    }
    l->tried = l->position.global_step;
    l->tried_at = clock_monotonic();
    if (rc == OK)
        l->saved = l->position.global_step;
    return rc;
}

/* A checkpoint between steps, or after the last. Only a rank that does not answer is an error here; a full disk is
 * told, counted, and training goes on. */
static int save_now(struct loop *l, int last, struct error *e)
{
    struct error failure = { OK, 0, "" };
    int more_to_come = last && l->options->asynchronous; /* pushes of others, after ours */
    int wanted = l->options->checkpoint_directory && l->saved != l->position.global_step;
    int rc;

    if (!l->lead || !(wanted || more_to_come))
        return OK;
    if ((rc = l->strategy->operations->collect(l->strategy, last, &l->position.global_step, e)) < 0)
        return rc;
    if (!l->options->checkpoint_directory || l->saved == l->position.global_step)
        return OK;
    progress_flush(&l->progress, 1);
    if (save(l, &failure) < 0 || write_state(l, "running", &failure) < 0) {
        l->failed_saves++;
        log_line(l->log, "trainer: no checkpoint of step %" PRId64 ": %s; training goes on, the checkpoints before it "
                 "are untouched", l->position.global_step, failure.message);
    }
    return OK;
}

static int due(const struct loop *l)
{
    const struct train_options *o = l->options;

    if (o->save_steps > 0)
        return l->position.global_step >= l->tried + o->save_steps;
    return o->save_seconds > 0 && clock_monotonic() - l->tried_at >= o->save_seconds;
}

int loop_open(struct loop *l, const struct train_options *options, struct strategy *strategy,
              struct batch_source *source, struct loop_signals *signals, struct log *log,
              const struct training_position *position, int64_t saved, struct error *e)
{
    int rc;

    memset(l, 0, sizeof *l);
    l->options = options;
    l->strategy = strategy;
    l->source = source;
    l->signals = signals;
    l->log = log;
    l->position = *position;
    l->saved = saved;
    l->tried = position->global_step;
    l->tried_at = clock_monotonic();
    l->lead = strategy->worker == 0;
    if (gethostname(l->state.host, sizeof l->state.host - 1) < 0)
        l->state.host[0] = 0;
    snprintf(l->state.run_option, sizeof l->state.run_option, "%s", run_option_name(options->run_option));
    snprintf(l->state.model, sizeof l->state.model, "%s", options->model->name);
    snprintf(l->state.data, sizeof l->state.data, "%s", options->data);
    snprintf(l->state.optimizer, sizeof l->state.optimizer, "%s", optimizer_kind_names[options->optimizer.kind]);
    l->state.batch_size = options->batch_size;
    l->state.learning_rate = options->optimizer.learning_rate;
    l->state.pid = getpid();
    l->state.max_steps = options->max_steps;
    l->state.world_size = position->world_size;
    l->state.started = clock_wall();
    if ((rc = progress_open(&l->progress, log, l->lead ? options->log_directory : NULL, position->global_step, e)) < 0)
        return rc;
    l->progress.quiet = options->quiet || !l->lead;
    l->progress.log_every = options->log_every;
    l->progress.images_step = (int64_t)options->batch_size * (options->asynchronous ? 1 : strategy->workers);
    rc = write_state(l, "running", e);
    if (rc == OK && l->lead && options->checkpoint_directory && l->saved != position->global_step)
        rc = save(l, e);
    progress_start(&l->progress, position->global_step);
    return rc;
}

static void ready(void *context, size_t low)
{
    struct strategy *s = context;

    s->operations->ready(s, low);
}

/* Rank 0 alone looks, so that it need not be a file system that all ranks share. */
static int stop_file_there(struct loop *l)
{
    const double now = clock_monotonic();
    struct stop_file stop;

    if (l->asked_to_stop || !l->lead || !l->options->checkpoint_directory || now - l->looked_at < STOP_LOOK_SECONDS)
        return l->asked_to_stop;
    l->looked_at = now;
    if (stop_file_read(l->options->checkpoint_directory, &stop, NULL) != 1)
        return 0;
    snprintf(l->state.reason, sizeof l->state.reason, "%s", stop.reason);
    log_line(l->log, "trainer: %s/stop.json asks for the end: %s", l->options->checkpoint_directory, stop.reason);
    return l->asked_to_stop = 1;
}

static int train_step(struct loop *l, struct tally *tally, struct error *e)
{
    struct strategy *s = l->strategy;
    struct network_result result = { 0, 0 };
    struct network_batch images;
    const struct batch *batch;
    int rc;

    if ((rc = batch_source_next(l->source, &batch, e)) < 0 ||
        (rc = s->operations->step_begin(s, batch->step, e)) < 0)
        return rc;
    images = (struct network_batch){ batch->images, batch->labels, batch->samples, batch->count };
    network_train(s->network, &images, l->position.seed, batch->step, ready, s, &result);
    *tally = (struct tally){ .cross_entropy = result.cross_entropy, .correct = result.correct,
                             .samples = batch->count };
    if (!isfinite(result.cross_entropy))
        tally->flags |= TALLY_BAD;
    if (l->signals->stop || stop_file_there(l))
        tally->flags |= TALLY_STOP;
    if (l->signals->save) {
        l->signals->save = 0;
        tally->flags |= TALLY_SAVE;
    }
    return s->operations->step_end(s, tally, e);
}

static void log_point(struct loop *l, const struct tally *tally, double decay, int64_t before)
{
    struct strategy_report report;

    l->strategy->operations->report(l->strategy, &report);
    progress_point(&l->progress, tally, decay, optimizer_rate(l->strategy->optimizer, before), &report);
}

static int steps(struct loop *l, struct error *e)
{
    const struct train_options *o = l->options;
    struct strategy *s = l->strategy;
    int rc;

    for (int more = s->more; more;) {
        int64_t before = s->global_step;
        /* Which step an asynchronous push will be is known only afterwards. */
        int wanted = l->lead && (o->asynchronous || progress_due(&l->progress, before + 1, o->max_steps));
        double decay = wanted ? network_decay_loss(s->network) : 0;
        struct tally tally;

        if ((rc = train_step(l, &tally, e)) < 0)
            return rc;
        l->position.global_step = tally.global_step;
        more = tally.more;
        if (tally.flags & TALLY_BAD) {
            l->bad = 1;
            if (l->lead)
                log_line(l->log, "trainer: the loss is not a number at step %" PRId64 "; stopped, the last checkpoint "
                         "is kept; try a lower --learning-rate", tally.global_step);
            return OK;
        }
        if (wanted && (progress_due(&l->progress, tally.global_step, o->max_steps) || !more))
            log_point(l, &tally, decay, before);
        if (more && (due(l) || (tally.flags & TALLY_SAVE)) && (rc = save_now(l, 0, e)) < 0)
            return rc;
    }
    return OK;
}

int loop_run(struct loop *l, struct error *e)
{
    int rc = steps(l, e);

    if (rc == OK && !l->bad)
        rc = save_now(l, 1, e);
    if (rc == OK)
        rc = l->strategy->operations->finish(l->strategy, e);
    return rc;
}

void loop_close(struct loop *l, int failed)
{
    int whole = !failed && !l->bad && !l->failed_saves &&
                (l->asked_to_stop || l->position.global_step >= l->options->max_steps);
    struct summary s = { whole ? "finished" : "failed", run_option_name(l->options->run_option),
                         l->position.global_step, l->options->max_steps, (int)l->position.world_size,
                         l->strategy->workers, batch_source_waited(l->source), { 0, 0, 0, 0, NULL } };
    struct error e = { OK, 0, "" };

    progress_flush(&l->progress, 1);
    if (write_state(l, s.state, &e) < 0)
        log_line(l->log, "trainer: %s", e.message);
    if (l->lead && !failed) {
        l->strategy->operations->report(l->strategy, &s.report);
        progress_summary(&l->progress, &s, l->options->json);
    }
    progress_close(&l->progress);
}
