#include "evaluator/metrics.h"

#include <math.h>

void metrics_init(struct metrics *m, double decay_loss)
{
    *m = (struct metrics){ 0, 0, 0, decay_loss };
}

void metrics_add(struct metrics *m, int64_t examples, int64_t correct, double cross_entropy)
{
    m->examples += examples;
    m->correct += correct;
    m->cross_entropy += cross_entropy;
}

double metrics_precision(const struct metrics *m)
{
    return m->examples ? (double)m->correct / (double)m->examples : NAN;
}

double metrics_mean_cross_entropy(const struct metrics *m)
{
    return m->examples ? m->cross_entropy / (double)m->examples : NAN;
}

double metrics_loss(const struct metrics *m)
{
    return metrics_mean_cross_entropy(m) + m->decay_loss;
}
