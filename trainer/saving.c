#include "trainer/saving.h"

#include "base/clock.h"
#include "base/file.h"
#include "checkpoint/directory/checkpoint_directory.h"
#include "trainer/training_lock.h"

#include <inttypes.h>
#include <math.h>

enum { SAVES_MAX = 3 };

void saving_begin(struct saving *s, int64_t step, int64_t saved)
{
    s->saved = saved;
    s->tried = step;
    s->tried_at = clock_monotonic();
}

int saving_due(const struct saving *s, int64_t step)
{
    if (s->options.steps > 0)
        return step >= s->tried + s->options.steps;
    return s->options.seconds > 0 && clock_monotonic() - s->tried_at >= s->options.seconds;
}

int saving_keep_directory(struct saving *s, struct error *e)
{
    int rc = training_lock_keep(s->options.directory, s->lock, e);

    if (rc == 1) {
        log_line(s->log, "trainer: %s: deleted, moved or replaced; made again, without the earlier checkpoints",
                 s->options.directory);
        s->saved = -1;
    }
    return rc;
}

static void saving_sign(const struct saving *s, struct error *e)
{
    world_sign(s->world, world_rank(s->world), e);
}

/* mpirun kills ranks that are still saving after it ended them. How long it waits is set when it is started. */
static void tell_of_grace(struct saving *s, double seconds)
{
    const double grace = world_grace(s->world);

    if (s->grace_told || s->options.quiet || grace == 0 || seconds < grace / 2)
        return;
    s->grace_told = 1;
    log_line(s->log,
             "saving took %.1f s, and an interrupted mpirun kills its ranks %g s after SIGTERM; to save in time then, "
             "start it with --mca " WORLD_GRACE_PARAMETER " %.0f",
             seconds, grace, ceil(4 * seconds));
}

/* Saves into the directory that has the name once it is done. */
static int save_here(struct saving *s, const struct training_position *position, struct error *e)
{
    const char *directory = s->options.directory;
    int rc = OK, again = 1;

    for (int i = 0; i < SAVES_MAX && again == 1; i++) {
        rc = training_checkpoint_save(NULL, directory, s->options.keep, s->optimizer, s->losses, position, e);
        again = saving_keep_directory(s, NULL);
    }
    return again == 1 ? error_set(e, ERR_IO, "%s: replaced again and again during saving", directory) : rc;
}

int saving_save(struct saving *s, const struct training_position *position, struct error *e)
{
    struct error failure = { 0 };
    const double begun = clock_monotonic();
    char path[4096];
    int rc = file_join(path, sizeof path, s->options.directory, "model.ckpt", e);

    if (rc < 0)
        return rc;
    if (!s->options.quiet)
        log_line(s->log, "Saving checkpoints for %" PRId64 " into %s.", position->global_step, path);
    rc = save_here(s, position, &failure);
    if (rc == CHECKPOINT_OLD_REMAINS) {
        saving_sign(s, &failure);
        log_line(s->log, "trainer: saved, but %s", failure.message);
        rc = OK;
    } else if (rc < 0) {
        error_copy(e, &failure);
    }
    s->tried = position->global_step;
    s->tried_at = clock_monotonic();
    if (rc == OK) {
        s->saved = position->global_step;
        tell_of_grace(s, s->tried_at - begun);
    }
    return rc;
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
