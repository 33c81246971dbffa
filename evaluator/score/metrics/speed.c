/*
 * speed: examples_per_second while scoring; seconds_per_evaluation, from loading to counts; lag_seconds, from writing
 * of the checkpoint to counts; lag_steps, how far ahead the trainer is by then, if training.json says.
 */
#include "evaluator/score/metrics/metric.h"

#include "base/clock.h"
#include "checkpoint/directory/training_state.h"
#include "evaluator/score/classification.h"
#include "evaluator/score/runner.h"

#include <math.h>

static int speed_add(const struct metric_evaluation *v, const int64_t *cells, struct evaluation_metrics *out,
                     struct error *e)
{
    const double now = clock_monotonic();
    const struct runner_job *job = v->job;
    struct training_state training;
    int rc;

    (void)cells;
    if ((rc = evaluation_metrics_add(out, "examples_per_second",
                                     (double)v->counts->examples / fmax(now - v->scored, 1e-9), e)) != OK ||
        (rc = evaluation_metrics_add(out, "seconds_per_evaluation", now - v->begin, e)) != OK)
        return rc;
    if (job->written > 0 &&
        (rc = evaluation_metrics_add(out, "lag_seconds", fmax(clock_wall() - job->written, 0), e)) != OK)
        return rc;
    if (training_state_read(job->directory, &training, NULL) == 1 && training.global_step >= job->checkpoint->step)
        rc = evaluation_metrics_add(out, "lag_steps", (double)(training.global_step - job->checkpoint->step), e);
    return rc;
}

const struct metric metric_speed = { .add = speed_add };
