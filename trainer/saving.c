#include "trainer/saving.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/human.h"
#include "checkpoint/directory/checkpoint_directory.h"
#include "trainer/training_lock.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

#define WAITED_SECONDS 1.0
enum { ROUNDS_MAX = 3, SPACE_CHECKPOINTS = 3 };

void saving_open(struct saving *s, int64_t step, int64_t saved)
{
    s->saved = saved;
    s->tried = step;
    s->tried_at = clock_monotonic();
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->ended, NULL);
}

int saving_due(const struct saving *s, int64_t step)
{
    if (s->options.steps > 0)
        return step / s->options.steps > s->tried / s->options.steps;
    return s->options.seconds > 0 && !s->busy && clock_monotonic() - s->tried_at >= s->options.seconds;
}

int saving_keep_directory(struct saving *s, struct error *e)
{
    int rc = training_lock_keep(s->options.directory, s->lock, e);

    if (rc == 1) {
        log_line(s->log, "trainer: %s: deleted, moved or replaced; made again, without the earlier checkpoints",
                 s->options.directory);
        s->saved = -1;
        s->replaced = 1;
    }
    return rc;
}

static void saving_sign(const struct saving *s, struct error *e)
{
    world_sign(s->world, world_rank(s->world), e);
}

/* mpirun kills ranks that are still saving after it ended them. How long it waits is set when it is started. A rank may
 * have to save twice: what the thread is at, and what was trained meanwhile. */
static void tell_of_grace(struct saving *s, double seconds)
{
    const double grace = world_grace(s->world);
    const double needed = s->options.steps > 0 || s->options.seconds > 0 ? 2 * seconds : seconds;

    if (s->grace_told || s->options.quiet || grace == 0 || needed < grace / 2)
        return;
    s->grace_told = 1;
    log_line(s->log,
             "saving took %.1f s, and an interrupted mpirun kills its ranks %g s after SIGTERM; to save in time then, "
             "start it with --mca " WORLD_GRACE_PARAMETER " %.0f",
             seconds, grace, ceil(4 * needed));
}

/* While the number of checkpoints still grows. What the file system cannot tell is not said. */
static void tell_of_space(struct saving *s)
{
    const size_t keep = s->options.keep;
    char space[HUMAN_TEXT_MAX], each[HUMAN_TEXT_MAX];
    uint64_t left, bytes = 0;
    struct statvfs there;

    for (int kind = 0; kind < ARRAY_KINDS; kind++)
        bytes += optimizer_array(s->optimizer, (enum optimizer_array_kind)kind).count * sizeof(float);
    if (s->space_told || s->options.quiet || (keep && s->count >= keep) || statvfs(s->options.directory, &there) < 0 ||
        there.f_blocks == 0 || (left = (uint64_t)there.f_bavail * there.f_frsize) >= SPACE_CHECKPOINTS * bytes)
        return;
    s->space_told = 1;
    log_line(s->log, "%s: %s are left on its file system, and a checkpoint takes %s; %s", s->options.directory,
             human_bytes(left, space), human_bytes(bytes, each),
             keep ? "a lower --keep needs less" : "--keep N keeps only the newest N");
}

/* ---- one round: the checkpoint is written once, by the thread or in its place ------------------------------------ */

static void begin_round(struct saving *s)
{
    s->replaced = 0;
    s->rounds++;
    s->done = 0;
}

static void write_round(struct saving *s, const struct training_checkpoint *c)
{
    struct error failure = { 0 };
    const int rc = training_checkpoint_write(s->io, s->options.directory, s->options.keep, c, &failure);

    pthread_mutex_lock(&s->mutex);
    s->rc = rc;
    s->failure = failure;
    s->ended_at = clock_monotonic();
    s->done = 1;
    pthread_cond_signal(&s->ended);
    pthread_mutex_unlock(&s->mutex);
}

static void *write_copy(void *context)
{
    struct saving *s = context;

    write_round(s, &s->copy);
    return NULL;
}

/* 1: the thread writes the copy. */
static int start_thread(struct saving *s)
{
    sigset_t all, before;
    int rc;

    begin_round(s);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&s->thread, NULL, write_copy, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    s->busy = rc == 0;
    s->rounds -= !s->busy;
    return s->busy;
}

/* After a round. 1: another one is needed, since the directory that has the name is not the one written to. Else OK,
 * with rc and failure as the round left them or saying that there were too many. */
static int round_again(struct saving *s)
{
    saving_keep_directory(s, NULL);
    if (!s->replaced)
        return 0;
    if (s->rounds < ROUNDS_MAX)
        return 1;
    s->rc = error_set(&s->failure, ERR_IO, "%s: replaced again and again during saving", s->options.directory);
    return 0;
}

/* After the last round. */
static int conclude(struct saving *s, struct error *e)
{
    s->tried_at = s->ended_at;
    if (s->rc < 0)
        return error_copy(e, &s->failure);
    if (s->rc == CHECKPOINT_OLD_REMAINS) {
        saving_sign(s, &s->failure);
        log_line(s->log, "trainer: saved, but %s", s->failure.message);
    }
    s->saved = s->tried;
    s->count++;
    tell_of_space(s);
    tell_of_grace(s, s->ended_at - s->begun_at);
    return SAVING_ENDED;
}

static int write_here(struct saving *s, const struct training_checkpoint *c, struct error *e)
{
    do {
        begin_round(s);
        write_round(s, c);
    } while (round_again(s));
    return conclude(s, e);
}

/* ---- saving ------------------------------------------------------------------------------------------------------ */

static int announce(struct saving *s, int64_t step, struct error *e)
{
    char path[4096];
    int rc = file_join(path, sizeof path, s->options.directory, "model.ckpt", e);

    if (rc < 0)
        return rc;
    if (!s->options.quiet)
        log_line(s->log, "Saving checkpoints for %" PRId64 " into %s.", step, path);
    s->tried = step;
    s->begun_at = clock_monotonic();
    s->rounds = 0;
    return OK;
}

int saving_save(struct saving *s, const struct training_position *position, struct error *e)
{
    struct training_checkpoint itself;
    int rc = announce(s, position->global_step, e);

    if (rc < 0)
        return rc;
    training_checkpoint_of(&itself, s->optimizer, s->losses, position);
    rc = write_here(s, &itself, e);
    return rc == SAVING_ENDED ? OK : rc;
}

int saving_start(struct saving *s, const struct training_position *position, struct error *e)
{
    struct training_checkpoint itself;
    struct error why = { 0 };
    int rc = announce(s, position->global_step, e);

    if (rc < 0)
        return rc;
    rc = training_checkpoint_copy(&s->copy, s->optimizer, s->losses, position, &why);
    if (rc == OK && start_thread(s))
        return OK;
    if (!s->memory_told && !s->options.quiet)
        log_line(s->log, "%s; training waits for each checkpoint",
                 rc < 0 ? why.message : "no thread can be started to save checkpoints");
    s->memory_told = 1;
    training_checkpoint_of(&itself, s->optimizer, s->losses, position);
    return write_here(s, &itself, e);
}

int saving_busy(const struct saving *s)
{
    return s->busy;
}

static int is_done(struct saving *s)
{
    int done;

    pthread_mutex_lock(&s->mutex);
    done = s->done;
    pthread_mutex_unlock(&s->mutex);
    return done;
}

int saving_look(struct saving *s, struct error *e)
{
    if (!s->busy || !is_done(s))
        return OK;
    pthread_join(s->thread, NULL);
    s->busy = 0;
    if (!round_again(s))
        return conclude(s, e);
    return start_thread(s) ? OK : write_here(s, &s->copy, e);
}

void saving_wait(struct saving *s, double seconds)
{
    const double until = clock_monotonic() + seconds;
    const struct timespec t = { (time_t)until, (long)((until - floor(until)) * 1e9) };
    int rc = 0;

    if (!s->busy)
        return;
    pthread_mutex_lock(&s->mutex);
    while (!s->done && rc == 0)
        rc = pthread_cond_clockwait(&s->ended, &s->mutex, CLOCK_MONOTONIC, &t);
    pthread_mutex_unlock(&s->mutex);
}

void saving_waited(struct saving *s, double seconds)
{
    if (s->waiting_told || s->options.quiet || seconds < WAITED_SECONDS)
        return;
    s->waiting_told = 1;
    log_line(s->log,
             "training waited %.1f s until the checkpoint of step %" PRId64
             " was written, since the next one is due; saving less often takes less time",
             seconds, s->tried);
}

void saving_fail(struct saving *s, int64_t step, int earlier_kept, struct error *why)
{
    s->failed++;
    saving_sign(s, why);
    s->tried = step;
    s->tried_at = clock_monotonic();
    log_line(s->log, "trainer: no checkpoint of step %" PRId64 ": %s; training goes on%s", step, why->message,
             earlier_kept ? ", earlier checkpoints are kept" : "");
}

void saving_close(struct saving *s)
{
    if (s->busy)
        pthread_join(s->thread, NULL);
    s->busy = 0;
    training_checkpoint_release(&s->copy);
    pthread_cond_destroy(&s->ended);
    pthread_mutex_destroy(&s->mutex);
}
