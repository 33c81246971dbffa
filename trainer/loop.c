#include "trainer/loop.h"

#include "base/clock.h"
#include "base/program/time_text.h"
#include "checkpoint/directory/training_state.h"
#include "trainer/collective/exchange.h"
#include "trainer/launch/mpirun_line.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STOP_LOOK_SECONDS 0.5
#define GIVE_UP_SECONDS 0.3 /* part of the time that mpirun leaves between SIGTERM and SIGKILL */
#define BATCH_LOOK_SECONDS 0.02
#define TICK_SECONDS 0.1
#define STATE_SECONDS 10

/* signal: the tally's flag of it; 0: the launcher's death. */
static void say_why_stopped(struct training_state *s, uint32_t signal)
{
    const int interrupted = (signal & TALLY_INT) != 0;

    if (signal)
        snprintf(s->signal, sizeof s->signal, "%s", interrupted ? "SIGINT" : "SIGTERM");
    snprintf(s->reason, sizeof s->reason, "%s",
             !signal       ? LAUNCHER_GONE
             : interrupted ? "interrupted by SIGINT"
                           : "terminated by SIGTERM");
}

static void make_will(struct loop *l);

static int write_state(struct loop *l, const char *state, struct error *e)
{
    struct training_state *s = &l->state;
    int rc;

    if (!l->lead || !l->options->checkpoint_directory)
        return OK;
    if ((rc = saving_keep_directory(&l->saving, e)) < 0)
        return rc;
    snprintf(s->state, sizeof s->state, "%s", state);
    s->global_step = l->position.global_step;
    s->updated = clock_wall();
    s->steps_per_second = rate_per_second(&l->progress.rate);
    s->images_per_second = s->steps_per_second * (double)l->progress.samples_step;
    l->stated_at = clock_monotonic();
    make_will(l);
    return training_state_write(l->options->checkpoint_directory, s, e);
}

/* training.json belongs to this process: also if it was written, but its directory could not be synced. */
static int is_stated(const struct loop *l)
{
    struct training_state there;

    return l->lead && l->options->checkpoint_directory &&
           training_state_read(l->options->checkpoint_directory, &there, NULL) == 1 &&
           there.process.pid == l->state.process.pid && there.process.start == l->state.process.start;
}

/* Whose error it is. */
static void sign(const struct loop *l, struct error *e)
{
    world_sign(l->strategy->world, world_rank(l->strategy->world), e);
}

/* What training.json is to say if this rank ends before its time: "stopped", if the training has ended in order but for
 * its last checkpoint, or else "failed". */
static void make_will(struct loop *l)
{
    struct training_state will = l->state;
    const uint32_t signal = l->signal ? l->signal : tally_signal(l->signals->stop);

    snprintf(will.state, sizeof will.state, "%s", l->leaves ? "stopped" : "failed");
    if (l->leaves)
        say_why_stopped(&will, world_orphaned(l->strategy->world) && !l->signal ? 0 : signal);
    else if (!will.reason[0])
        snprintf(will.reason, sizeof will.reason, "%s",
                 world_size(l->strategy->world) == 1 ? "the trainer died"
                 : l->signals->stop                  ? "rank 0 was ended while it waited for others"
                                                     : "rank 0 died");
    saving_will(&l->saving, &will);
}

/* 1: no rank is known to have died; mpirun ends all when one has. known: and none is on another host, where that cannot
 * be known at once. */
static int all_live(const struct world *w, int known)
{
    const struct process *places = world_places(w);

    for (int r = 0; r < world_size(w) && places; r++) {
        const enum process_state state = process_judge(&places[r]);

        if (state == PROCESS_GONE || (known && state == PROCESS_ELSEWHERE))
            return 0;
    }
    return 1;
}

/* 1: this rank should end, and need not finish its step. */
static int asked_to_leave(struct loop *l)
{
    const int orphaned = world_orphaned(l->strategy->world), asked = l->signals->stop || orphaned;

    if (asked && !l->leaves && !l->asked && l->began && l->lead) {
        l->asked = 1;
        l->leaves = orphaned || all_live(l->strategy->world, 1);
        make_will(l);
    }
    return asked;
}

/* What follows from a checkpoint that is saved (rc > 0) or is not (rc < 0). */
static void settle(struct loop *l, int rc, struct error *failure)
{
    if (rc > 0 && l->began)
        rc = write_state(l, "running", failure);
    if (rc < 0)
        saving_fail(&l->saving, l->saving.tried, 1, failure);
}

/* Learns what became of the checkpoint that is being written beside the training. */
static void look_at_save(struct loop *l)
{
    struct error failure = { 0 };

    settle(l, saving_look(&l->saving, &failure), &failure);
}

/* Called often, also within a step: does the work that is due. */
static void tick(struct loop *l)
{
    const double now = clock_monotonic();
    enum phase before;

    if (!l->lead || !l->began || now - l->ticked_at < TICK_SECONDS || asked_to_leave(l))
        return;
    l->ticked_at = now;
    before = phase_clock_enter(l->strategy->options.clock, PHASE_OTHER);
    look_at_save(l);
    progress_show(&l->progress);
    if (now - l->stated_at >= STATE_SECONDS)
        write_state(l, "running", NULL);
    phase_clock_enter(l->strategy->options.clock, before);
}

static int leave(void *context)
{
    tick(context);
    return asked_to_leave(context);
}

/* mpirun ends this rank while it waits for others within a step, which takes no time unless one of them is missing. */
static void say_missing(void *context, struct error *sentence)
{
    struct loop *l = context;

    sign(l, sentence);
    log_line(l->log, "trainer: %s", sentence->message);
}

/* Called while this rank waits for others. mpirun ends all ranks when one of them has died; the others are then waiting
 * for that one, and will be killed before they can report it properly. */
static void idle(void *context)
{
    struct loop *l = context;
    const double now = clock_monotonic();

    tick(l);
    if (!l->signals->stop || !l->signals->continued || l->given_up)
        return;
    if (l->left_at == 0)
        l->left_at = now;
    l->given_up = now - l->left_at >= GIVE_UP_SECONDS;
    if (l->given_up && !l->stopped)
        world_hurry(l->strategy->world, say_missing, l);
    if (l->given_up && l->lead)
        make_will(l);
}

/* Returns for how many seconds. Between steps it ends early when this rank is to leave. */
static double wait_for_save(struct loop *l, int last)
{
    const double begun = clock_monotonic();

    while (saving_busy(&l->saving) && (last || !asked_to_leave(l))) {
        saving_wait(&l->saving, TICK_SECONDS);
        look_at_save(l);
        tick(l);
    }
    return clock_monotonic() - begun;
}

/* 1: updates are made without this worker, so it learns of later steps only. */
static int others_go_on(const struct loop *l)
{
    return !l->options->strategy.synchronous || l->options->strategy.chosen;
}

/* Makes the state of rank 0 whole, for a checkpoint or, with `last`, since pushes of others come after ours. */
static int collect_state(struct loop *l, int last, struct error *e)
{
    const int rc = l->strategy->operations->collect(l->strategy, last, &l->position.global_step, e);

    if (rc == OK)
        saving_whole(&l->saving, l->position.global_step);
    return rc;
}

/* Saves a checkpoint: between steps beside the training, once the one before it is saved; after the last step here.
 * Then the state is collected first, since that needs the other ranks, which may be killed meanwhile. Only a rank that
 * does not answer is an error; a full disk is logged and counted, and training continues. */
static int save_now(struct loop *l, int last, struct error *e)
{
    struct error failure = { 0 };
    int more_to_come = last && others_go_on(l); /* pushes of others, made after ours */
    int checkpoints = l->options->checkpoint_directory != NULL, kept, rc;
    double waited;

    if (!l->lead)
        return OK;
    phase_clock_enter(l->strategy->options.clock, PHASE_SAVING);
    if (last && (more_to_come || checkpoints) && (rc = collect_state(l, last, e)) < 0)
        return rc;
    waited = wait_for_save(l, last);
    if (!last)
        saving_waited(&l->saving, waited);
    if (!last && asked_to_leave(l)) /* saves the same state at the end */
        return OK;
    kept = checkpoints ? saving_keep_directory(&l->saving, &failure) : OK;
    if (!checkpoints || l->saving.saved == l->position.global_step)
        return OK;
    if (!last && (rc = collect_state(l, last, e)) < 0)
        return rc;
    if (l->saving.saved == l->position.global_step)
        return OK;
    progress_flush(&l->progress, 1);
    if (kept < 0)
        saving_fail(&l->saving, l->position.global_step, 0, &failure);
    else
        settle(l, (last ? saving_save : saving_start)(&l->saving, &l->position, &failure), &failure);
    if (!last && !l->strategy->holds_state)
        saving_torn(&l->saving);
    return OK;
}

/* A stop file left by an earlier run ends this one as well, since nobody else deletes it. */
static void tell_of_old_stop(struct loop *l)
{
    const char *directory = l->options->checkpoint_directory;
    char when[TIME_TEXT_MAX];
    struct stop_file stop;

    if (!l->lead || !directory || !l->strategy->more || stop_file_read(directory, &stop, NULL) != 1)
        return;
    l->old_stop_told = 1;
    log_line(l->log,
             "trainer: %s/stop.json was left by an earlier run%s%s and ends this one after a step: %s; delete it to "
             "continue",
             directory, stop.written > 0 ? " on " : "",
             stop.written > 0 ? time_text(TIME_SHORT, stop.written, when) : "", stop.reason);
}

/* How the data are read, for the evaluator; what would be cut off is left out. */
static void describe_data(struct training_state *s, const struct train_options *o)
{
    const char *words[2 * DATASET_READING_ROWS + 1];
    struct buffer text = BUFFER_EMPTY;
    char directory[PATH_MAX];

    words[dataset_reading_line(&o->words, words)] = NULL;
    mpirun_line_quoted(&text, words);
    if (buffer_ok(&text) && text.length < sizeof s->data_options)
        snprintf(s->data_options, sizeof s->data_options, "%s", buffer_text(&text));
    buffer_release(&text);
    if (o->data_directory && realpath(o->data_directory, directory) && strlen(directory) < sizeof s->data_dir)
        strcpy(s->data_dir, directory);
}

int loop_open(struct loop *l, const struct train_options *options, struct strategy *strategy,
              struct micro_shards *shards, struct batch_source *source, struct loss_averages *losses,
              struct loop_signals *signals, int *lock, struct saver *saver, struct log *log,
              const struct training_position *position, int64_t saved, struct error *e)
{
    int rc;

    memset(l, 0, sizeof *l);
    l->options = options;
    l->strategy = strategy;
    l->shards = shards;
    l->source = source;
    l->losses = losses;
    l->signals = signals;
    l->log = log;
    l->position = *position;
    l->saving = (struct saving){
        .options = { options->checkpoint_directory, options->keep, options->save_steps, options->save_seconds,
                     options->quiet },
        .optimizer = strategy->optimizer,
        .losses = losses,
        .world = strategy->world,
        .log = log,
        .lock = lock,
        .saver = saver,
    };
    l->lead = strategy->worker == 0;
    l->flat.classes = options->model->classes;
    process_self(&l->state.process);
    snprintf(l->state.run_option, sizeof l->state.run_option, "%s", options->strategy.kind->name);
    snprintf(l->state.model, sizeof l->state.model, "%s", options->model->name);
    snprintf(l->state.data, sizeof l->state.data, "%s", options->data);
    describe_data(&l->state, options);
    snprintf(l->state.optimizer, sizeof l->state.optimizer, "%s", optimizer_kind_names[options->optimizer.kind]);
    l->state.batch_size = position->batch_size;
    l->state.learning_rate = schedule_full_rate(&options->optimizer.schedule, options->optimizer.learning_rate);
    l->state.max_steps = options->max_steps;
    l->state.world_size = position->world_size;
    l->state.started = clock_wall();
    if ((rc = progress_open(&l->progress, log, l->lead ? options->log_directory : NULL, position->global_step, e)) < 0)
        return rc;
    l->progress.quiet = options->quiet || !l->lead;
    l->progress.prompt = saver != NULL;
    l->progress.watched = world_watched(strategy->world);
    l->progress.max_steps = options->max_steps;
    l->progress.log_every = options->log_every;
    l->progress.explains_time = options->time;
    l->progress.samples_step = options->strategy.synchronous ? position->global_batch : position->batch_size;
    l->progress.streams = batch_source_dataset(source)->stream != NULL;
    l->progress.unit = dataset_speed_unit(batch_source_dataset(source), &l->progress.unit_each);
    if (l->lead && (rc = saving_open(&l->saving, position, saved, e)) < 0)
        return rc;
    rc = write_state(l, "running", e);
    l->began = rc == OK || is_stated(l);
    if (rc == OK && l->lead && options->checkpoint_directory && l->saving.saved != position->global_step)
        rc = saving_save(&l->saving, &l->position, e);
    if (rc == OK)
        tell_of_old_stop(l);
    network_set_leave(strategy->network, leave, l);
    world_set_idle(strategy->world, idle, l);
    progress_start(&l->progress, position->global_step);
    if (rc == OK && options->time)
        rc = time_watch_open(&l->time, &l->progress, strategy, position->global_step, options->log_every, e);
    return rc;
}

static void ready(void *context, size_t low)
{
    struct strategy *s = context;

    s->operations->ready(s, low);
}

/* Only rank 0 looks, so the file system need not be shared by all ranks. */
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
    if (!l->old_stop_told)
        log_line(l->log, "trainer: %s/stop.json asks the training to end: %s", l->options->checkpoint_directory,
                 stop.reason);
    return l->asked_to_stop = 1;
}

/* "rank 2 on host b", or the program if there is no other rank. */
static void speaker(const struct loop *l, char *name, size_t size)
{
    const struct world *w = l->strategy->world;

    if (world_size(w) > 1)
        world_name(w, world_rank(w), name, size);
    else
        snprintf(name, size, "trainer");
}

/* Each rank names what it met; another one may meet the same. */
static void name_bad_samples(struct loop *l)
{
    char name[WORLD_NAME_MAX];
    struct error why;

    while (l->source && batch_source_next_bad(l->source, &why)) {
        speaker(l, name, sizeof name);
        log_line(l->log, "%s: left out %s", name, why.message);
    }
}

static int train_step(struct loop *l, struct tally *tally, struct error *e)
{
    struct strategy *s = l->strategy;
    const struct gradient_sink sink = { .dense = ready, .context = s };
    struct score score = { 0 };
    const struct batch *batch = NULL;
    int whole = 0, rc;

    /* A batch that is there costs no waiting, even if other programs get the core just now. */
    phase_clock_step(s->options.clock, s->global_step, PHASE_OTHER);
    if (!batch_source_wait(l->source, 0)) {
        phase_clock_enter(s->options.clock, PHASE_INPUT);
        while (!batch_source_wait(l->source, BATCH_LOOK_SECONDS) && !leave(l))
            ;
        phase_clock_enter(s->options.clock, PHASE_OTHER);
    }
    if (!asked_to_leave(l) && (rc = batch_source_next(l->source, &batch, e)) < 0)
        return rc;
    if (batch)
        progress_first_batch(&l->progress, s->options.clock);
    name_bad_samples(l);
    phase_clock_enter(s->options.clock, PHASE_REDUCING);
    if ((rc = s->operations->step_begin(s, batch ? batch->step : s->global_step, e)) < 0)
        return rc;
    if (batch && s->operations->fetch && (rc = s->operations->fetch(s, batch, e)) < 0)
        return rc;
    if (batch && s->operations->train)
        whole = s->operations->train(s, l->shards, batch, l->position.seed, &score);
    else if (batch)
        whole = micro_shards_train(l->shards, batch, l->position.seed, &sink, &score);
    phase_clock_enter(s->options.clock, PHASE_OTHER);
    *tally = (struct tally){ .score = score, .flags = tally_signal(l->signals->stop) };
    if (!whole)
        tally->flags |= TALLY_LEFT;
    else
        tally->flags |= isfinite(score.loss) ? TALLY_FINE : TALLY_BAD;
    l->loss = score.loss;
    if (stop_file_there(l))
        tally->flags |= TALLY_STOP;
    if (l->signals->save) {
        l->signals->save = 0;
        tally->flags |= TALLY_SAVE;
    }
    if (s->operations->foresee && s->global_step + 1 < l->options->max_steps &&
        (batch = batch_source_peek(l->source)) != NULL)
        s->operations->foresee(s, batch);
    return s->operations->step_end(s, tally, e);
}

static void log_point(struct loop *l, const struct tally *tally, double decay, int64_t before)
{
    struct strategy_report report;

    l->strategy->operations->report(l->strategy, &report);
    progress_point(&l->progress, tally, decay, optimizer_rate(l->strategy->optimizer, before), &report);
}

/* The loss of some rank is not a number. If others' are, the rank is named: by itself, since only it knows. */
static void say_bad(struct loop *l, const struct tally *tally)
{
    const int some = (tally->flags & TALLY_FINE) && world_size(l->strategy->world) > 1;
    struct error own = { 0 };

    if (some && !isfinite(l->loss)) {
        error_set(&own, ERR_CORRUPT,
                  "the loss of its batch is %g at step %" PRId64 ", while other ranks' losses are finite", l->loss,
                  tally->global_step);
        sign(l, &own);
        log_line(l->log, "trainer: %s", own.message);
    }
    if (l->lead)
        log_line(l->log,
                 "trainer: the loss is not finite at step %" PRId64
                 "%s; stopped, the last checkpoint is kept; try a lower --learning-rate%s",
                 tally->global_step, some ? " on some of the ranks" : "",
                 some ? ", and look at the data and the host of the rank that names itself" : "");
}

/* Says once if the training does not learn. */
static void look_at_loss(struct loop *l, const struct tally *tally)
{
    const struct train_options *o = l->options;
    const int momentum = !o->strategy.synchronous && o->optimizer.kind == OPTIMIZER_MOMENTUM;
    char text[320];

    if (l->lead && !o->quiet && flat_loss_add(&l->flat, tally->global_step, score_loss(&tally->score)))
        log_line(
            l->log, "trainer: %s",
            flat_loss_text(&l->flat, tally->global_step, momentum && o->optimizer.momentum > 0, text, sizeof text));
}

/* Makes rank 0's weights whole. */
static int fetch_all(struct loop *l, struct error *e)
{
    struct strategy *s = l->strategy;

    return l->lead && s->operations->fetch_all ? s->operations->fetch_all(s, e) : OK;
}

/* Synchronous: all workers have the same weights after a step; those of the next comparison prove it. */
static int log_hash(struct loop *l, int more, struct error *e)
{
    const int64_t every = l->options->hash_every, step = l->position.global_step;
    int rc;

    if (!l->lead || !every || (step % every && more))
        return OK;
    if (!more && others_go_on(l)) /* its own are old: see loop_run() */
        return OK;
    if ((rc = fetch_all(l, e)) == OK)
        progress_hash(&l->progress, step, exchange_replica_hash(l->strategy->network));
    return rc;
}

static int steps(struct loop *l, struct error *e)
{
    const struct train_options *o = l->options;
    struct strategy *s = l->strategy;
    int rc;

    for (int more = s->more; more;) {
        int64_t before = s->global_step;
        /* The step of a push is only known afterwards, if others make updates without it. */
        int wanted = l->lead && (others_go_on(l) || progress_due(&l->progress, before + 1, o->max_steps));
        double decay = l->losses->count ? loss_averages_before(l->losses, s->network)
                       : wanted         ? network_decay_loss(s->network)
                                        : 0;
        struct tally tally;
        int due;

        if ((rc = train_step(l, &tally, e)) < 0)
            return rc;
        phase_clock_enter(s->options.clock, PHASE_OTHER);
        l->position.global_step = tally.global_step;
        more = tally.more;
        if (tally.flags & (TALLY_LEFT | TALLY_TERM | TALLY_INT)) {
            l->stopped = 1;
            /* Where others go on without a rank that died, mpirun's SIGTERM looks like anybody's. */
            l->leaves = all_live(l->strategy->world, 0);
            l->signal = tally.flags & (TALLY_TERM | TALLY_INT);
            make_will(l);
        }
        if (tally.flags & TALLY_LEFT)
            return OK;
        if (others_go_on(l) && !(tally.score.weight > 0)) /* no update: go on with the same weights, or end */
            continue;
        l->state.stepped = clock_wall();
        progress_step(&l->progress, tally.global_step);
        if (tally.flags & TALLY_BAD) {
            l->bad = 1;
            saving_torn(&l->saving);
            say_bad(l, &tally);
            return OK;
        }
        loss_averages_after(l->losses, score_loss(&tally.score));
        due = wanted && (progress_due(&l->progress, tally.global_step, o->max_steps) || !more);
        if (due)
            log_point(l, &tally, decay, before);
        if (s->holds_state) /* now that its point is written: a checkpoint has no gaps before it */
            saving_whole(&l->saving, tally.global_step);
        look_at_loss(l, &tally);
        if (due)
            progress_say(&l->progress);
        if ((rc = log_hash(l, more, e)) < 0 || (rc = time_watch_step(&l->time, tally.global_step, e)) < 0)
            return rc;
        if (more && (saving_due(&l->saving, tally.global_step) || (tally.flags & TALLY_SAVE)) &&
            (rc = save_now(l, 0, e)) < 0)
            return rc;
        phase_clock_enter(s->options.clock, PHASE_OTHER);
    }
    return OK;
}

int loop_run(struct loop *l, struct error *e)
{
    int rc = steps(l, e);

    if (rc == OK && !l->bad)
        rc = save_now(l, 1, e);
    if (rc == OK && !l->bad)
        rc = fetch_all(l, e); /* for the summary's hash, too */
    if (rc == OK && l->lead && !l->bad && l->options->hash_every && others_go_on(l))
        progress_hash(&l->progress, l->position.global_step, exchange_replica_hash(l->strategy->network));
    if (rc == OK)
        rc = l->strategy->operations->finish(l->strategy, e);
    return rc;
}

/* Fills the last state of training.json; only rank 0 knows it. */
static const char *last_state(const struct loop *l, int failed)
{
    const int64_t step = l->position.global_step;
    const int saved = !l->options->checkpoint_directory || l->saving.saved == step;

    if (failed || l->bad)
        return "failed";
    if (step >= l->options->max_steps || l->asked_to_stop)
        return l->saving.failed || !saved ? "failed" : "finished";
    return l->stopped && l->leaves && saved ? "stopped" : "failed";
}

int loop_count_bytes(struct traffic *out, const struct strategy *s, struct error *e)
{
    return traffic_gather(out, s->world, s->workers, "save and close its files", e);
}

int loop_gather_times(struct rank_times *out, const struct strategy *s, struct error *e)
{
    return times_gather(out, s->world, s->options.clock, strategy_worker_ranks(s), strategy_waits_for_all(s),
                        "save and close its files", e);
}

/* A worker whose gradients are mostly of no use says so itself. */
static void count_bad_samples(struct loop *l)
{
    char name[WORLD_NAME_MAX];
    const size_t bad = l->source ? batch_source_bad(l->source) : 0;

    if (!bad)
        return;
    name_bad_samples(l);
    speaker(l, name, sizeof name);
    log_line(l->log, "%s: left out %zu broken sample%s in all", name, bad, bad == 1 ? "" : "s");
}

static void say_what_was_dropped(const struct loop *l)
{
    char name[WORLD_NAME_MAX];
    struct strategy_report r;

    l->strategy->operations->report(l->strategy, &r);
    if (l->options->quiet || 2 * r.gradients.own_dropped <= r.gradients.own)
        return;
    world_name(l->strategy->world, world_rank(l->strategy->world), name, sizeof name);
    log_line(l->log, "%s: %" PRId64 " of its %" PRId64 " gradients came too late and were dropped", name,
             r.gradients.own_dropped, r.gradients.own);
}

int loop_close(struct loop *l, int failed, struct error *e)
{
    char newest[4096 + 32] = "";
    struct error trouble = { 0 };
    struct traffic traffic = { 0 };
    struct rank_times times = { 0 };
    int lost = l->lead && l->options->checkpoint_directory && saving_keep_directory(&l->saving, &trouble) < 0;
    struct summary s = { .state = last_state(l, failed),
                         .run_option = l->options->strategy.kind->name,
                         .reason = l->state.reason,
                         .checkpoint = newest,
                         .global_step = l->position.global_step,
                         .max_steps = l->options->max_steps,
                         .world_size = (int)l->position.world_size,
                         .workers = l->strategy->workers,
                         .traffic = &traffic,
                         .times = &times };
    const int stopped = !strcmp(s.state, "stopped"), interrupted = (l->signal & TALLY_INT) != 0;

    world_set_idle(l->strategy->world, NULL, NULL);
    progress_flush(&l->progress, 1);
    if (stopped)
        say_why_stopped(&l->state, l->signal);
    if (lost || (lost = write_state(l, s.state, &trouble) < 0)) {
        sign(l, &trouble);
        log_line(l->log, "trainer: %s", trouble.message);
    }
    l->began = 0;
    wait_for_save(l, 1); /* after an error: "failed" is there even if this rank is killed meanwhile */
    saving_close(&l->saving, !failed);
    time_watch_close(&l->time, !failed, "save and close its files", e);
    if (!failed && loop_count_bytes(&traffic, l->strategy, e) == OK)
        loop_gather_times(&times, l->strategy, e);
    if (l->lead && !failed) {
        if (l->saving.saved >= 0 && l->options->checkpoint_directory)
            snprintf(newest, sizeof newest, "%s/model.ckpt-%" PRId64, l->options->checkpoint_directory,
                     l->saving.saved);
        l->strategy->operations->report(l->strategy, &s.report);
        s.hash = exchange_replica_hash(l->strategy->network);
        progress_summary(&l->progress, &s, l->options->json);
    }
    if (!failed)
        say_what_was_dropped(l);
    count_bad_samples(l);
    traffic_release(&traffic);
    times_release(&times);
    lost |= progress_close(&l->progress) < 0;
    if (!l->lead) /* an asynchronous worker does not learn of the last steps */
        return failed || l->bad ? LOOP_FAILED : LOOP_DONE;
    if (stopped)
        return LOOP_SIGNAL + (interrupted ? SIGINT : SIGTERM);
    return lost || strcmp(s.state, "finished") ? LOOP_FAILED : LOOP_DONE;
}
