#include "trainer/saving.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/human.h"
#include "checkpoint/directory/checkpoint_directory.h"
#include "trainer/training_lock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#define WAITED_SECONDS 1.0
enum { ROUNDS_MAX = 3, SPACE_CHECKPOINTS = 3 };

/* Without it, this process writes the checkpoints itself. */
static void do_without(struct saving *s, const char *why)
{
    log_line(s->log, "trainer: %s; training waits for each checkpoint, and an interruption may lose the last steps",
             why);
    s->helper = 0;
}

int saving_open(struct saving *s, const struct training_position *position, int64_t saved, struct error *e)
{
    struct error why = { 0 };
    int rc;

    s->saved = saved;
    s->tried = position->global_step;
    s->tried_at = clock_monotonic();
    if (!s->options.directory)
        return OK;
    if ((rc = training_tensors_of(&s->tensors, s->optimizer, s->losses, position, e)) < 0)
        return rc;
    s->helper = s->saver != NULL;
    if (s->helper && saver_know(s->saver,
                                &(struct saver_task){ s->options.directory, s->options.keep, s->options.quiet, *s->lock,
                                                      s->tensors, saved },
                                &why) < 0)
        do_without(s, why.message);
    return OK;
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
        if (s->helper)
            saver_lock(s->saver, *s->lock);
    }
    return rc;
}

static void saving_sign(const struct saving *s, struct error *e)
{
    world_sign(s->world, world_rank(s->world), e);
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

/* ---- one round: the checkpoint is written once, by the saver or, without it, here -------------------------------- */

static void write_itself(struct saving *s)
{
    struct training_values values;

    if (s->from == SAVER_COPY)
        saver_values(s->saver, s->from, s->tried, &values);
    else
        training_values_of(&values, s->optimizer, s->losses, s->tried);
    s->failure = (struct error){ 0 };
    s->rc = training_checkpoint_write(s->io, s->options.directory, s->options.keep, &s->tensors, &values, &s->failure);
    s->ended_at = clock_monotonic();
}

static void lose_helper(struct saving *s)
{
    const int status = saver_dismiss(s->saver, 1);
    char why[120] = "the process that saves checkpoints is gone";

    if (WIFSIGNALED(status))
        snprintf(why, sizeof why, "the process that saves checkpoints was killed by signal %d", WTERMSIG(status));
    do_without(s, why);
}

/* 1: the saver has the round; 0: it is done. */
static int begin_round(struct saving *s)
{
    s->replaced = 0;
    s->rounds++;
    if (s->helper && saver_ask(s->saver, s->from, s->tried))
        return 1;
    if (s->helper)
        lose_helper(s);
    write_itself(s);
    return 0;
}

/* 1: the round that the saver has is done. */
static int round_done(struct saving *s, double seconds)
{
    struct saver_answer answer;
    const int rc = saver_answered(s->saver, &answer, seconds);

    if (rc > 0) {
        s->rc = answer.rc;
        s->failure = answer.failure;
        s->ended_at = answer.ended_at;
    } else if (rc < 0) {
        lose_helper(s);
        write_itself(s);
    }
    return rc != 0;
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
    return SAVING_ENDED;
}

static int write_here(struct saving *s, struct error *e)
{
    do
        if (begin_round(s))
            while (!round_done(s, WAITED_SECONDS))
                ;
    while (round_again(s));
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
    s->rounds = 0;
    return OK;
}

int saving_save(struct saving *s, const struct training_position *position, struct error *e)
{
    int rc = announce(s, position->global_step, e);

    if (rc < 0)
        return rc;
    s->from = SAVER_STATE;
    rc = write_here(s, e);
    return rc == SAVING_ENDED ? OK : rc;
}

int saving_start(struct saving *s, const struct training_position *position, struct error *e)
{
    struct error why = { 0 };
    int rc = announce(s, position->global_step, e);

    if (rc < 0)
        return rc;
    s->from = SAVER_STATE;
    if (s->helper && saver_copy(s->saver, s->losses, &why) == OK)
        s->from = SAVER_COPY;
    else if (s->helper && !s->memory_told && !s->options.quiet) {
        log_line(s->log, "%s; training waits for each checkpoint", why.message);
        s->memory_told = 1;
    }
    if (s->from == SAVER_STATE)
        return write_here(s, e);
    s->busy = begin_round(s);
    if (s->busy)
        return OK;
    return round_again(s) ? write_here(s, e) : conclude(s, e);
}

int saving_busy(const struct saving *s)
{
    return s->busy;
}

int saving_look(struct saving *s, struct error *e)
{
    if (!s->busy || !round_done(s, 0))
        return OK;
    s->busy = 0;
    if (!round_again(s))
        return conclude(s, e);
    s->busy = begin_round(s);
    if (s->busy)
        return OK;
    return round_again(s) ? write_here(s, e) : conclude(s, e);
}

void saving_wait(struct saving *s, double seconds)
{
    if (s->busy)
        saver_wait(s->saver, seconds);
}

void saving_whole(struct saving *s, int64_t step)
{
    if (s->helper)
        saver_whole(s->saver, s->losses, step);
}

void saving_torn(struct saving *s)
{
    if (s->helper)
        saver_torn(s->saver);
}

void saving_will(struct saving *s, const struct training_state *will)
{
    if (s->helper)
        saver_will(s->saver, will);
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

void saving_close(struct saving *s, int settled)
{
    while (s->busy && !round_done(s, WAITED_SECONDS))
        ;
    s->busy = 0;
    if (s->helper)
        saver_dismiss(s->saver, settled);
    s->helper = 0;
    free(s->tensors.items);
    s->tensors.items = NULL;
}
