#include "trainer/advice.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define NO_BETTER 0.98 /* than guessing */
#define FALLING 0.99   /* of an earlier mean */

static double guessing(const struct flat_loss *f)
{
    return log(f->classes);
}

static int is_flat(const struct flat_loss *f)
{
    const double newest = f->means[FLAT_LOSS_WINDOWS - 1];

    return f->windows >= FLAT_LOSS_WINDOWS && newest >= NO_BETTER * guessing(f) && newest > FALLING * f->means[0];
}

int flat_loss_add(struct flat_loss *f, int64_t step, double loss)
{
    if (f->told || f->classes < 2 || !isfinite(loss))
        return 0;
    if (f->losses == 0 && f->windows == 0)
        f->first = f->begun = step - 1;
    f->sum += loss;
    f->losses++;
    if (f->losses < FLAT_LOSS_LEAST || step - f->begun < FLAT_LOSS_STEPS)
        return 0;
    memmove(f->means, f->means + 1, (FLAT_LOSS_WINDOWS - 1) * sizeof *f->means);
    f->means[FLAT_LOSS_WINDOWS - 1] = f->sum / (double)f->losses;
    f->windows++;
    f->begun = step;
    f->losses = 0;
    f->sum = 0;
    return f->told = is_flat(f);
}

const char *flat_loss_text(const struct flat_loss *f, int64_t step, int stale_momentum, char *text, size_t size)
{
    snprintf(text, size,
             "the loss is %.3f after %" PRId64
             " steps and does not fall: no better than guessing among %d classes (%.3f); stop, and try %s",
             f->means[FLAT_LOSS_WINDOWS - 1], step - f->first, f->classes, guessing(f),
             stale_momentum ? "--momentum 0, or a tenth of the learning rate" : "a lower --learning-rate, or --warmup");
    return text;
}

/* ---- share ------------------------------------------------------------------------------------------------------- */

const char *share_text(const struct shard *s, const struct dataset *d, const char *who, char *text, size_t size)
{
    if (s->kind == SHARD_FILES)
        snprintf(text, size, "%s reads %s: %zu %s", who, d->files, d->count, dataset_unit(d));
    else
        snprintf(text, size, "each of %d workers reads %s: %zu %s, %s", s->count, d->files, d->count, dataset_unit(d),
                 s->kind == SHARD_RECORDS ? "of which it takes its part of each epoch"
                                          : "all of them in an order of its own");
    return text;
}

/* ---- stale momentum ---------------------------------------------------------------------------------------------- */

#define MUCH 0.9
enum { WORKERS_LEAST = 3 };

const char *stale_momentum_text(int workers, double momentum, char *text, size_t size)
{
    if (workers < WORKERS_LEAST || momentum < MUCH)
        return NULL;
    snprintf(text, size,
             "with %d asynchronous workers gradients are about %d updates old, and momentum %g on top of that may keep "
             "the training from learning anything (in other programs, too); --momentum 0 or a tenth of the learning "
             "rate is safer",
             workers, workers - 1, momentum);
    return text;
}
