/* main.c - the trainer: turns a command line into a training, and errors into exit statuses. */
#include "base/buffer.h"
#include "base/clock.h"
#include "base/human.h"
#include "base/program/log.h"
#include "base/program/subcommand.h"
#include "checkpoint/directory/checkpoint_directory.h"
#include "trainer/advice.h"
#include "trainer/batch_plan.h"
#include "trainer/collective/exchange.h"
#include "trainer/collective/places.h"
#include "trainer/collective/stand_in.h"
#include "trainer/collective/team.h"
#include "trainer/launch/child.h"
#include "trainer/launch/launch.h"
#include "trainer/launch/mpirun_line.h"
#include "trainer/loop.h"
#include "trainer/resuming.h"
#include "trainer/tool/command.h"
#include "trainer/trace_exchange.h"
#include "trainer/train_options.h"
#include "trainer/training_data.h"
#include "trainer/training_lock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- job --------------------------------------------------------------------------------------------------------- */

/*
 * Starts the job that a command line asks for, instead of taking part in it: with --resource-info on several
 * hosts, with --restarts again after a failure. It knows how many workers and servers the strategy takes, and which
 * checkpoints there are; trainer/launch/ knows how ranks are started, and what is a failure.
 */

#define RANK_GONE_SECONDS 60.0 /* a rank whose mpirun was killed saves before it ends */

/* 1: call job_start() instead of world_open(). ERR_ARG: a job is asked for, but this process is a rank of one. */
static int job_wanted(const struct train_options *o, struct error *e)
{
    if (!o->launch.resource_info && o->launch.restarts == 0)
        return 0;
    return launch_may(o->launch.resource_info ? "resource-info" : "restarts", e) < 0 ? ERR_ARG : 1;
}

/* Makes the words that start the ranks. resume: 1: from the newest checkpoint, whatever the user said first. */
static int compose(const struct train_options *o, struct launch *l, int resume, struct error *e)
{
    struct strategy_options strategy = o->strategy;
    const struct strategy_servers *said = strategy.kind->servers ? strategy.kind->servers(&strategy) : NULL;
    const int by_default = said && !said->given && !said->per_host;
    const char *added[5] = { NULL };
    const int servers = strategy_count_servers(&strategy, (int)l->hosts.count);
    size_t n = 0;
    int rc = OK;

    if (l->hosts.count)
        rc = strategy.kind->workers(&strategy, resource_info_workers(&l->hosts) + servers, e);
    if (l->hosts.count && by_default) {
        added[n++] = "--servers-per-host";
        added[n++] = "1";
    }
    if (resume) {
        added[n++] = "--resume";
        added[n++] = "auto";
    }
    return rc < 0 ? rc : launch_compose(l, servers, added, e);
}

enum { NEWEST_SIZE = 256 };

static void newest_of(const struct train_options *o, char *name)
{
    if (checkpoint_directory_newest(o->checkpoint_directory, name, NEWEST_SIZE, NULL) != 1)
        name[0] = '\0';
}

/* Waits until rank 0 of the ended job is gone, if it is on this host, and its saver, too: it may still be saving. */
static void wait_for_rank_0(const struct train_options *o, struct log *log)
{
    const struct timespec pause = { 0, 50000000 };
    const double begun = clock_monotonic();
    struct training_state state;
    int fd = -1, told = 0;

    while (training_state_read(o->checkpoint_directory, &state, NULL) == 1 && !strcmp(state.state, "running") &&
           process_judge(&state.process) == PROCESS_LIVES && clock_monotonic() - begun < RANK_GONE_SECONDS)
        nanosleep(&pause, NULL);
    while (training_lock_take(o->checkpoint_directory, 0, &fd, NULL) == TRAINING_LOCK_SAVING) {
        if (!told)
            log_line(log, "%s: waiting until the last state of the training is saved", o->checkpoint_directory);
        told = 1;
        nanosleep(&pause, NULL);
    }
    if (fd >= 0)
        close(fd);
}

/* Says why the job is or is not started again, in one line. */
static void tell(struct log *log, enum restart_verdict verdict, const struct restart_facts *f, const char *newest)
{
    if (verdict == RESTART_AGAIN)
        log_line(log,
                 "trainer: the training ended with status %d; starting it again from %s (restart %" PRId64
                 " of %" PRId64 ")",
                 f->status, *newest ? newest : "the beginning", f->done + 1, f->most);
    else if (verdict == RESTART_NO_PROGRESS)
        log_line(
            log,
            "trainer: the training ended with status %d again, and made no checkpoint since its last start; it is not "
            "started again",
            f->status);
    else if (verdict == RESTART_ENOUGH)
        log_line(log, "trainer: the training ended with status %d after %" PRId64 " restart%s; it is not started again",
                 f->status, f->done, f->done == 1 ? "" : "s");
}

/* Runs the job until it need not be started again. Its exit status, or an error. */
static int supervise(const struct train_options *o, struct launch *l, struct log *log, struct error *e)
{
    struct restart_facts f = { .most = o->launch.restarts };
    struct training_state state;
    char first[NEWEST_SIZE], before[NEWEST_SIZE], newest[NEWEST_SIZE];
    enum restart_verdict verdict;
    struct child_end end;
    int rc = OK;

    newest_of(o, first);
    snprintf(newest, sizeof newest, "%s", first);
    for (;; f.done++) {
        snprintf(before, sizeof before, "%s", newest);
        if ((rc = child_run(l->words, &end, e)) < 0)
            return rc;
        wait_for_rank_0(o, log);
        newest_of(o, newest);
        f.state = training_state_read(o->checkpoint_directory, &state, NULL) == 1 ? &state : NULL;
        if (!end.status && f.state && (!strcmp(state.state, "failed") || !strcmp(state.reason, LAUNCHER_GONE)))
            end.status = EXIT_NO; /* Open MPI 5's mpirun ends with 0 when it has lost a host */
        f.status = end.status;
        f.asked = end.asked;
        f.progress = strcmp(before, newest) != 0;
        verdict = restart_rule(&f);
        tell(log, verdict, &f, newest);
        if (verdict != RESTART_AGAIN)
            return end.status;
        if ((rc = compose(o, l, strcmp(first, newest) != 0, e)) < 0)
            return rc;
    }
}

/* Starts the job, and becomes it, or with --restarts waits for it. Returns the exit status: the job's, or after
 * --dry-run or an error, which is logged. */
static int job_start(const struct train_options *o, struct log *log)
{
    struct error e = { 0 };
    struct launch l;
    int status = EXIT_DONE, rc = launch_open(&l, &o->launch, o->own_count, o->own, &e);

    if (rc == OK)
        rc = compose(o, &l, 0, &e);
    if (rc == OK && o->launch.dry_run)
        rc = launch_print(&l, &e);
    else if (rc == OK && (rc = launch_check(&l, &e)) == OK)
        rc = o->launch.restarts ? status = supervise(o, &l, log, &e) : launch_become(&l, &e);
    if (rc < 0)
        log_line(log, "trainer: %s", e.message);
    launch_release(&l);
    return rc < 0 ? EXIT_USAGE : status;
}

/* ---- main -------------------------------------------------------------------------------------------------------- */

enum { CHECK_EVERY = 100 }; /* steps between two comparisons of all replicas, without --hash-every */

/* The only globals: handlers have no other way to pass information. */
static struct loop_signals asked;
static volatile sig_atomic_t hurried;

struct run {
    struct train_options options;
    struct world *world;
    struct log log;
    struct dataset *dataset; /* workers */
    struct network *network;
    struct micro_shards *shards; /* workers */
    struct team *team;           /* the threads that share their parts; NULL: one */
    struct optimizer *optimizer;
    struct loss_averages losses; /* rank 0 */
    struct strategy *strategy;
    struct batch_source *source;
    struct training_position position;
    struct phase_clock clock;
    struct trace_exchange trace; /* with --trace */
    struct loop loop;
    int64_t resumed; /* step of the checkpoint resumed from, -1: a new run */
    int workers, worker;
    struct batch_plan batches;
    int64_t update;      /* images of an update by all workers */
    int lock;            /* rank 0: of the checkpoint directory; -1: none */
    struct saver *saver; /* rank 0: NULL: none */
    struct error without_saver;
};

/* A second signal leaves one more second to end properly, a third none. */
static void on_signal(int number)
{
    if (number == SIGUSR1)
        asked.save = 1;
    else if (number == SIGCONT)
        asked.continued = 1;
    else if (number == SIGALRM || hurried)
        _Exit(LOOP_SIGNAL + asked.stop);
    else if (!asked.stop)
        asked.stop = number;
    else {
        hurried = 1;
        alarm(1);
    }
}

static void handle_signals(void)
{
    static const int numbers[] = { SIGTERM, SIGINT, SIGUSR1, SIGALRM, SIGCONT };
    struct sigaction action;

    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* a dead mpirun reads no log lines, but a checkpoint must be saved */
    signal(SIGXFSZ, SIG_IGN); /* makes a write past the file size limit fail, like a full disk */
}

/* ---- setting up: every rank does each phase, then all agree on the result ---------------------------------------- */

static int open_data(struct run *r, struct error *e)
{
    int rc;

    if (r->worker < 0)
        return OK;
    if ((rc = training_data_open(&r->dataset, &r->options, r->workers, r->worker, e)) < 0)
        return rc;
    r->position.vocabulary = r->dataset->vocabulary;
    return training_data_fills(r->dataset, &r->options, &r->batches, r->workers, e);
}

/* Servers read no data: what a model file leaves to it, they get from rank 0. */
static int share_shape(struct run *r, struct error *e)
{
    struct model_file *f = r->options.file;
    int64_t shape[4];
    int rc;

    if (!f)
        return OK;
    shape[0] = f->model.height;
    shape[1] = f->model.width;
    shape[2] = f->model.channels;
    shape[3] = f->model.classes;
    if ((rc = world_broadcast(r->world, shape, sizeof shape, "the shape of the data", e)) < 0)
        return rc;
    model_file_complete(f, (int)shape[0], (int)shape[1], (int)shape[2], (int)shape[3]);
    return OK;
}

/* Each of --freeze's scopes has variables, and something is left to train. */
static int check_frozen(struct run *r, struct error *e)
{
    const char *scopes = r->options.freeze;
    size_t count, trained = 0;
    const struct variable *v = network_variables(r->network, &count);

    for (size_t i = 0; i < count; i++)
        trained += v[i].kind == VARIABLE_WEIGHT && !v[i].frozen ? v[i].count : 0;
    for (; scopes && *scopes; scopes += strcspn(scopes, ","), scopes += *scopes == ',') {
        char scope[256];
        size_t i = 0;

        snprintf(scope, sizeof scope, "%.*s", (int)strcspn(scopes, ","), scopes);
        while (i < count && !model_in_scope(scope, v[i].name))
            i++;
        if (i == count)
            return error_set(e, ERR_ARG, "--freeze: %s has no variables under '%s'; 'trainer describe' names them",
                             r->options.model->name, scope);
    }
    if (!trained)
        return error_set(e, ERR_ARG, "--freeze %s: nothing is left to train", r->options.freeze);
    if (r->options.freeze && world_rank(r->world) == 0 && !r->options.quiet)
        log_line(&r->log, "trains %zu of %zu weights: not those under %s", trained, network_parameter_count(r->network),
                 r->options.freeze);
    return OK;
}

/* Says, for each worker, if it does not compute as fast or in what --precision promises. */
static void say_precision(struct run *r)
{
    const int wanted = r->options.model->precision == PRECISION_BFLOAT16;
    char who[32] = "this processor";

    if (!wanted || network_bfloat16_is_fast() || r->options.quiet)
        return;
    if (world_size(r->world) > 1)
        snprintf(who, sizeof who, "rank %d's processor", world_rank(r->world));
    if (network_precision(r->network) != PRECISION_BFLOAT16)
        log_line(&r->log, "--precision bfloat16: %s has neither AMX nor AVX512-BF16; training in float32", who);
    else
        log_line(&r->log, "--precision bfloat16: %s has no AMX, and its AVX512-BF16 may be no faster than float32",
                 who);
}

static int use_threads(struct run *r, struct error *e)
{
    int rc = team_new(&r->team, r->batches.threads, e);

    return rc == OK ? micro_shards_use_threads(r->shards, r->team, r->batches.threads, e) : rc;
}

/* Each rank has started one, before it knew its number: rank 0's becomes the saver. */
static void use_saver(struct run *r)
{
    struct error *const why = &r->without_saver;

    if (r->saver && (world_rank(r->world) > 0 || saver_take(r->saver, r->optimizer, &r->losses, why) < 0)) {
        saver_free(r->saver);
        r->saver = NULL;
    }
    if (world_rank(r->world) == 0 && why->code < 0)
        log_line(&r->log, "trainer: %s; training waits for each checkpoint", why->message);
}

static int build(struct run *r, struct error *e)
{
    const struct batch_plan *p = &r->batches;
    int rc = network_new(&r->network, r->options.model, r->worker < 0 ? 0 : p->unit, e);

    if (rc == OK)
        rc = check_frozen(r, e);
    if (rc == OK && r->worker >= 0)
        say_precision(r);
    if (rc == OK && r->worker >= 0)
        network_kernels(r->network, r->position.kernels, sizeof r->position.kernels);
    if (rc == OK)
        rc = optimizer_new(&r->optimizer, r->network, &r->options.optimizer, e);
    if (rc == OK && world_rank(r->world) == 0)
        rc = loss_averages_init(&r->losses, r->network, r->options.recipe->loss_average, e);
    if (rc == OK)
        use_saver(r); /* before others share the weights */
    if (rc == OK && r->worker >= 0)
        rc = micro_shards_new(&r->shards, r->network, p->nodes, p->node_count, e);
    if (rc == OK && r->worker >= 0 && p->threads > 1)
        rc = use_threads(r, e);
    if (rc == OK && r->shards)
        micro_shards_set_clock(r->shards, &r->clock);
    if (rc == OK && r->team)
        optimizer_use_threads(r->optimizer, r->team, p->threads);
    return rc;
}

/* All ranks get rank 0's state, including servers: this makes replicas equal at the start. */
static int share_state(struct run *r, struct error *e)
{
    struct {
        int64_t step, resumed;
        uint64_t seed;
        struct optimizer_counters counters;
    } head;
    const struct train_options *o = &r->options;
    int rc;

    memset(&head, 0, sizeof head);
    head.step = r->position.global_step;
    head.resumed = r->resumed;
    head.seed = r->position.seed;
    head.counters = *optimizer_counters(r->optimizer);
    if ((rc = world_broadcast(r->world, &head, sizeof head, "the position", e)) < 0)
        return rc;
    r->position.global_step = head.step;
    r->position.seed = head.seed;
    r->resumed = head.resumed;
    *optimizer_counters(r->optimizer) = head.counters;
    for (int k = 0; k < ARRAY_KINDS && rc == OK; k++) {
        struct optimizer_array a = optimizer_array(r->optimizer, (enum optimizer_array_kind)k);

        rc = world_broadcast(r->world, a.values, a.count * sizeof *a.values, "the weights", e);
    }
    r->position.world_size = world_size(r->world);
    r->position.workers = r->workers;
    r->position.batch_size = r->batches.most;
    r->position.global_batch = r->update;
    r->position.micro_shards = o->sizes.micro_shards;
    r->position.threads = train_options_parts_of_threads(o);
    snprintf(r->position.run_option, sizeof r->position.run_option, "%s", o->strategy.label);
    snprintf(r->position.data, sizeof r->position.data, "%s", o->data);
    snprintf(r->position.shard, sizeof r->position.shard, "%s", train_options_shard(o));
    return rc;
}

/* Workers that read the same files must have the same records: their parts would overlap otherwise. */
static int compare_data(struct run *r, struct error *e)
{
    uint64_t count = r->dataset ? r->dataset->count : 0, words = r->position.vocabulary, first[2] = { count, words };
    int rc = world_broadcast(r->world, first, sizeof first, "the size of the data", e);

    if (rc == OK && r->worker >= 0)
        rc = training_data_even(r->dataset, &r->options, r->worker, first[0], e);
    if (rc == OK && r->worker >= 0 && r->options.shard != SHARD_FILES && count != first[0])
        rc = error_set(e, ERR_ARG, "rank %d has %" PRIu64 " %s of %s, but rank 0 has %" PRIu64, r->worker, count,
                       dataset_unit(r->dataset), r->options.data, first[0]);
    else if (rc == OK && r->worker >= 0 && words != first[1])
        rc = error_set(e, ERR_ARG, "rank %d has another vocabulary of %s than rank 0; give all ranks the same files",
                       r->worker, r->options.data);
    return world_agree(r->world, "compare the size of its data", rc, e);
}

/* Other kernels add products in another order. Servers multiply nothing, and have none. */
static int compare_kernels(struct run *r, struct error *e)
{
    const uint64_t own = exchange_hash(r->position.kernels, strlen(r->position.kernels), EXCHANGE_HASH_SEED);
    uint64_t first = own;
    int rc;

    if (!r->options.reproducible)
        return OK;
    if ((rc = world_broadcast(r->world, &first, sizeof first, "the names of its kernels", e)) < 0)
        return rc;
    if (r->worker >= 0 && own != first)
        rc = error_set(e, ERR_ARG,
                       "--reproducible: this rank computes with %s, and rank 0 with others; set OPENBLAS_CORETYPE and "
                       "DNNL_MAX_CPU_ISA to what all hosts have",
                       r->position.kernels);
    return world_agree(r->world, "compare its kernels", rc, e);
}

static int start(struct run *r, struct error *e)
{
    const struct train_options *o = &r->options;
    struct strategy_options how = o->strategy;
    const int shards = o->sizes.micro_shards, threads = o->strategy.kind->threads;
    struct batch_source_options batches = {
        .transform = training_data_transform(o),
        .shard = { o->shard, r->workers, r->worker, o->shard_rule },
        .batch_size = threads && shards ? (int)r->batches.together : r->batches.count,
        .workers = threads && !shards ? r->workers : 1,
        .together = shards ? r->batches.together : 0,
        .first = r->batches.first,
        .seed = r->position.seed,
        /* Asynchronous workers count their own steps, which together make up global_step. */
        .first_step = r->position.global_step / (o->strategy.synchronous ? 1 : r->workers),
    };
    int rc;

    how.batch_size = r->batches.most;
    how.unit = r->batches.unit;
    how.first_step = r->position.global_step;
    how.max_steps = o->max_steps;
    how.bucket_bytes = o->bucket_bytes;
    how.clock = &r->clock;
    how.changes = r->saver ? saver_changes : NULL;
    how.changes_context = r->saver;
    how.check_every = o->hash_every ? o->hash_every : CHECK_EVERY;
    how.micro_shards = shards;
    how.data = o->data;
    how.seed = r->position.seed;
    how.training = train_options_training(o);
    rc = strategy_start(&r->strategy, r->world, &how, r->optimizer, train_options_fingerprint(o), e);
    if (rc < 0)
        return rc;
    if (r->worker >= 0) {
        rc = strategy_attach(r->strategy, r->shards, e);
        if (rc == OK)
            rc = batch_source_new(&r->source, r->dataset, &batches, e);
    }
    return world_agree(r->world, "read its data", rc, e);
}

/* Batches whose gradients an update averages. */
static int averaged(const struct run *r)
{
    return r->options.strategy.aggregate ? r->options.strategy.aggregate : r->workers;
}

static int plan_batches(struct run *r, struct error *e)
{
    const int rc = training_data_batches(&r->batches, &r->options, r->workers, r->worker, e);

    if (rc == OK) /* backup workers' images do not count */
        r->update = r->options.strategy.chosen ? (int64_t)r->batches.most * averaged(r) : r->batches.together;
    return rc;
}

static int set_up(struct run *r, struct error *e)
{
    const struct strategy_options *how = &r->options.strategy;
    int rc = strategy_seat(&r->options.strategy, r->world, e);

    if (rc == OK)
        rc = r->workers = how->kind->workers(how, world_size(r->world), e);
    if (rc > 0) {
        r->worker = world_rank(r->world) < r->workers ? world_rank(r->world) : -1;
        if (r->options.scale_learning_rate)
            r->options.optimizer.schedule.workers = averaged(r);
        rc = plan_batches(r, e);
        if (rc == OK)
            rc = open_data(r, e);
    }
    if (r->options.file && ((rc = world_agree(r->world, "open its data", rc, e)) < 0 || (rc = share_shape(r, e)) < 0))
        return rc;
    if (rc == OK)
        rc = build(r, e);
    if (rc == OK && world_rank(r->world) == 0)
        rc = resuming_start(&(struct resuming){ .options = &r->options,
                                                .world = r->world,
                                                .log = &r->log,
                                                .network = r->network,
                                                .optimizer = r->optimizer,
                                                .losses = &r->losses,
                                                .global_batch = r->update,
                                                .workers = r->workers,
                                                .position = &r->position,
                                                .lock = &r->lock },
                            &r->resumed, e);
    if ((rc = world_agree(r->world, "open its data and checkpoint", rc, e)) < 0)
        return rc;
    if ((rc = compare_data(r, e)) < 0 || (rc = compare_kernels(r, e)) < 0 || (rc = share_state(r, e)) < 0)
        return rc;
    return OK;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* One rank failed: the others are in the middle of something and wait for it, so all are ended. */
static _Noreturn void abandon(struct run *r, struct error *e)
{
    if (e->code == ERR_CORRUPT && world_rank(r->world) > 0) { /* replicas differ: all ranks know, rank 0 reports it */
        struct patience p;

        patience_init(&p, r->world, places_precedence(0, 1));
        while (patience_pause(&p))
            ;
    }
    world_sign(r->world, world_rank(r->world), e);
    log_line(&r->log, "trainer: %s", e->message);
    if (world_rank(r->world) == 0 && r->loop.began) {
        if (e->code == ERR_CORRUPT)
            saving_torn(&r->loop.saving);
        loop_close(&r->loop, 1, NULL);
    }
    world_abort(r->world, EXIT_NO);
}

/* ERR_IO: it could not be written; the training is done all the same. */
static int write_trace(struct run *r, struct error *e)
{
    int rc;

    if (!r->options.trace)
        return OK;
    rc = trace_exchange_write(&r->trace, strategy_worker_ranks(r->strategy), "send its part of the trace", e);
    if (rc < 0 && rc != ERR_IO)
        abandon(r, e);
    if (rc < 0)
        log_line(&r->log, "trainer: --trace %s: %s", r->options.trace, e->message);
    return rc;
}

/* Returns rank 0's exit status. */
static int work(struct run *r, struct error *e)
{
    struct traffic traffic;
    struct rank_times times = { 0 };
    int status = EXIT_DONE, rc;

    phase_clock_start(&r->clock, r->worker < 0 ? PHASE_WAITING : PHASE_OTHER,
                      r->options.trace ? &r->trace.spans : NULL);
    if (r->strategy->worker < 0) {
        if ((rc = r->strategy->operations->serve(r->strategy, &asked.stop, e)) < 0)
            abandon(r, e);
        if (rc > 0) {
            world_sign(r->world, world_rank(r->world), e);
            log_line(&r->log, "trainer: %s", e->message);
            status = LOOP_FAILED;
        }
        phase_clock_stop(&r->clock);
        if (loop_count_bytes(&traffic, r->strategy, e) == OK)
            loop_gather_times(&times, r->strategy, e);
        traffic_release(&traffic);
        times_release(&times);
    } else {
        if (loop_run(&r->loop, e) < 0)
            abandon(r, e);
        phase_clock_stop(&r->clock);
        status = loop_close(&r->loop, 0, e);
    }
    if (!world_lost(r->world) && write_trace(r, e) < 0)
        status = LOOP_FAILED;
    /* Rank 0 may be saving: waits here, asleep, instead of busily in MPI's end. And no rank leaves early: when mpirun
     * ends the ranks, it kills all others as soon as one has left. */
    rc = world_agree(r->world, "save and close its files", status == LOOP_FAILED ? ERR_IO : OK, e);
    if (rc == OK)
        rc = world_broadcast(r->world, &status, sizeof status, "its exit status", e);
    if (world_lost(r->world))
        abandon(r, e);
    return rc < 0 ? EXIT_NO : status;
}

/* Logs what begins now, in one line. */
static void say_what_begins(struct run *r)
{
    const struct train_options *o = &r->options;
    const int ranks = world_size(r->world), chosen = o->strategy.chosen ? averaged(r) : r->workers;
    const int together = o->strategy.synchronous ? chosen : 1;
    const int64_t step = o->strategy.synchronous ? r->update : r->batches.most;
    const double images = (double)r->dataset->count * (o->shard == SHARD_FILES ? r->workers : 1);
    char how[64] = "", batch[120] = "", epoch[HUMAN_TEXT_MAX], rate[200];

    if (o->quiet)
        return;
    o->strategy.kind->describe(&o->strategy, ranks, how, sizeof how);
    batch_plan_text(&r->batches, o->sizes.micro_shards, r->workers, together, batch, sizeof batch);
    schedule_describe(&o->optimizer.schedule, o->optimizer.learning_rate, rate, sizeof rate);
    log_line(&r->log,
             "%s (%zu weights%s) on %s (%.0f %s): %s%s%s; %sbatch %" PRId64 "%s, %s steps an epoch, to step %" PRId64
             "; %s, learning rate %s",
             o->model->name, network_parameter_count(r->network),
             network_precision(r->network) == PRECISION_BFLOAT16 ? ", bfloat16" : "", o->data, images,
             dataset_unit(r->dataset), o->strategy.label, how[0] ? ", " : "", how, together > 1 ? "global " : "", step,
             batch, human_number(images / (double)step, epoch), o->max_steps, optimizer_kind_names[o->optimizer.kind],
             rate);
    if (!o->checkpoint_directory)
        log_line(&r->log, "nothing will be saved; --checkpoint-dir saves what is trained");
}

static void say_what_is_instead(struct run *r)
{
    const struct strategy_options *o = &r->options.strategy;

    if (o->instead && !r->options.quiet)
        log_line(&r->log, "%s has no tables, so --run-option %s is the same as %s, and all ranks are workers",
                 r->options.model->name, o->instead, o->kind->name);
}

static void warn_of_stale_momentum(struct run *r)
{
    const struct optimizer_options *o = &r->options.optimizer;
    char text[400];

    if (!r->options.quiet && !r->options.strategy.synchronous &&
        stale_momentum_text(r->workers, o->kind == OPTIMIZER_MOMENTUM ? o->momentum : 0, text, sizeof text))
        log_line(&r->log, "trainer: %s", text);
}

/* Logs which files this rank reads: each worker its own, or rank 0 for all if they are alike. */
static void say_what_is_read(struct run *r)
{
    const struct shard shard = { r->options.shard, r->workers, r->worker, r->options.shard_rule };
    char who[WORLD_NAME_MAX], text[512];

    if (r->options.quiet || r->workers == 1 || (r->worker > 0 && shard.kind != SHARD_FILES))
        return;
    world_name(r->world, world_rank(r->world), who, sizeof who);
    log_line(&r->log, "%s", share_text(&shard, r->dataset, who, text, sizeof text));
}

/* Logs how many copies of variables, and of their slots, the replicas of this process were made of. */
static void say_what_was_copied(struct run *r)
{
    struct strategy_report report;

    r->strategy->operations->report(r->strategy, &report);
    if (report.copies && !r->options.quiet)
        log_line(&r->log, "copied %" PRId64 " variables and slots of the first thread to the others", report.copies);
}

/* Logs who runs where, if more than one host takes part. */
static void say_where(struct run *r)
{
    struct buffer text = BUFFER_EMPTY;

    if (r->options.quiet || world_one_host(r->world))
        return;
    places_roles(&text, world_places(r->world), world_size(r->world), r->workers);
    log_line(&r->log, "%s", buffer_text(&text));
    buffer_release(&text);
}

static void say_if_done(struct run *r)
{
    const struct train_options *o = &r->options;

    if (r->position.global_step >= o->max_steps && world_rank(r->world) == 0 && !o->quiet)
        log_line(&r->log,
                 "the checkpoint is at step %" PRId64 " and --max-steps is %" PRId64 ": nothing is left to train",
                 r->position.global_step, o->max_steps);
}

static int train(struct run *r)
{
    struct error e = { 0 };
    int rc = set_up(r, &e);

    if (rc == OK)
        rc = start(r, &e);
    if (rc == OK && r->options.trace)
        rc = trace_exchange_open(&r->trace, r->world, r->options.trace, &e);
    if (rc == OK) {
        if (r->worker == 0) {
            say_what_is_instead(r);
            say_what_begins(r);
            say_where(r);
            say_what_was_copied(r);
        }
        if (r->worker >= 0)
            say_what_is_read(r);
        if (r->worker == 0)
            warn_of_stale_momentum(r);
        if (r->worker >= 0)
            rc = loop_open(&r->loop, &r->options, r->strategy, r->shards, r->source, &r->losses, &asked, &r->lock,
                           r->saver, &r->log, &r->position, r->resumed, &e);
        rc = world_agree(r->world, "write its first checkpoint and training.json", rc, &e);
    }
    if (world_lost(r->world))
        abandon(r, &e);
    if (rc < 0) {
        if (world_rank(r->world) == 0) /* all ranks have the same error */
            log_line(&r->log, "trainer: %s", e.message);
        if (r->worker == 0 && r->loop.began)
            loop_close(&r->loop, 1, NULL);
        return EXIT_USAGE;
    }
    say_if_done(r);
    return work(r, &e);
}

static void release(struct run *r)
{
    batch_source_free(r->source);
    strategy_free(r->strategy);
    loss_averages_release(&r->losses);
    optimizer_free(r->optimizer);
    trace_exchange_close(&r->trace);
    micro_shards_free(r->shards);
    team_free(r->team);
    network_free(r->network);
    saver_free(r->saver);
    dataset_free(r->dataset);
    train_options_release(&r->options);
    if (r->lock >= 0)
        close(r->lock);
}

#define ROW(function, name, help) { name, help, command_##function },
static const struct subcommand commands[] = { TRAINER_COMMANDS(ROW) };
enum { COMMANDS = sizeof commands / sizeof *commands };

int main(int argc, char **argv)
{
    struct run r;
    struct error e = { 0 }, trouble = { 0 };
    int parsed, rc, status;

    stand_in_start(argv); /* as they are: the parser takes some of them out */
    memset(&r, 0, sizeof r);
    r.lock = -1;
    if (train_options_command(commands, COMMANDS, argc, argv, &status))
        return status;
    log_init(&r.log, NULL, 2);
    parsed = train_options_parse(&r.options, commands, COMMANDS, argc, argv, &e);
    if (parsed == OPTIONS_RUN && (rc = job_wanted(&r.options, &e)) > 0)
        return job_start(&r.options, &r.log);
    parsed = parsed == OPTIONS_RUN ? rc : parsed;
    if (parsed == OPTIONS_RUN && r.options.checkpoint_directory && saver_start(&r.saver, NULL, &r.without_saver) < 0)
        r.saver = NULL; /* rank 0 says it */
    rc = world_open(&r.world, parsed == OPTIONS_RUN ? r.options.deadline : TRAIN_DEADLINE, &trouble);
    if (rc < 0) {
        log_line(&r.log, "trainer: %s", trouble.message);
        world_abort(r.world, EXIT_NO);
    }
    handle_signals();
    rc = world_agree(r.world, "read its command line", parsed, &e);
    if (world_lost(r.world))
        abandon(&r, &e);
    if (rc < 0 && world_rank(r.world) == 0)
        log_line(&r.log, "trainer: %s", e.message);
    status = rc < 0 ? EXIT_USAGE : parsed == OPTIONS_DONE ? EXIT_DONE : train(&r);
    release(&r);
    world_agree(r.world, "end", OK, &e);
    if (world_lost(r.world))
        abandon(&r, &e);
    world_close(r.world);
    return status;
}
