#include "evaluator/record/evaluation_estimate.h"

#include <math.h>

double evaluation_estimate(const struct evaluation_facts *f)
{
    /* Evaluations per second while there is work: as measured lately, otherwise one at a time. */
    const double quickest = f->waiting >= 2 && f->rate > 0 ? f->rate : fmax(f->rate, f->each > 0 ? 1 / f->each : 0);
    double steps = 0, training = 0, checkpoints = f->waiting;

    if (!f->training_over) {
        if (f->last_step < 0)
            return -1;
        steps = fmax(0, (double)f->last_step - (double)(f->newest_step > 0 ? f->newest_step : 0));
    }
    if (steps > 0) {
        if (f->steps_per_second <= 0)
            return -1;
        training = fmax(0, steps / f->steps_per_second - fmax(0, f->newest_age));
        checkpoints += f->steps_between > 0 ? ceil(steps / f->steps_between) : 1;
    }
    if (checkpoints <= 0)
        return 0;
    if (quickest <= 0)
        return -1;
    return fmax(training + (steps > 0 ? 1 / quickest : 0), checkpoints / quickest);
}
