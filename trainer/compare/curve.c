#include "trainer/compare/curve.h"

static double speed(double steps, double seconds)
{
    return steps > 0 && seconds > 0 ? steps / seconds : 0;
}

double curve_speed(const struct curve_point *points, size_t count)
{
    const size_t first = count > 2 ? 1 : 0;

    if (count < 2)
        return 0;
    return speed((double)(points[count - 1].step - points[first].step), points[count - 1].time - points[first].time);
}

/* When the step was done; 0: it is not within the points. */
static int time_of(const struct curve_point *points, size_t count, int64_t step, double *time)
{
    for (size_t i = 0; i < count; i++) {
        const struct curve_point *p = &points[i];

        if (p->step == step) {
            *time = p->time;
            return 1;
        }
        if (i > 0 && p[-1].step < step && step < p->step) {
            *time = p[-1].time + (p->time - p[-1].time) * (double)(step - p[-1].step) / (double)(p->step - p[-1].step);
            return 1;
        }
    }
    return 0;
}

double curve_speed_between(const struct curve_point *points, size_t count, int64_t from, int64_t to)
{
    double begin, end;

    if (!time_of(points, count, from, &begin) || !time_of(points, count, to, &end))
        return 0;
    return speed((double)(to - from), end - begin);
}

const struct evaluation *curve_evaluation(const struct evaluation *e, size_t count, int64_t step, double seconds)
{
    const struct evaluation *found = NULL;

    for (size_t i = 0; i < count; i++)
        if (e[i].step <= step && e[i].seconds <= seconds)
            found = &e[i];
    return found;
}
