/*
 * curve_group.h - draws several curves as one, for runs that differ only in their seed: which runs belong together, and
 * the mean of their curves with a band around it. Pure.
 */
#ifndef EVENTLOG_TOOL_PICTURE_CURVE_GROUP_H
#define EVENTLOG_TOOL_PICTURE_CURVE_GROUP_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/program/options.h"
#include "eventlog/tool/picture/picture.h"

/* OK, or ERR_ARG: one of the options has nothing before or after its '='. */
int curve_group_check(const struct option_list *options, struct error *e);

/* Appends the name of a run's group, by the first option that matches the run; returns the number of that option, from
 * 1, or 0: the run stays by itself.
 *   GLOB=NAME   takes the runs whose name matches
 *   GLOB        takes runs of which a part between two '/', or the end of such a part, matches; those that are called
 *               alike apart from it are a group: with 'seed*' the runs "mpi/a-seed1" and "mpi/a-seed2" are
 *               "mpi/a-seed*", and "ps/a-seed1" belongs to another */
size_t curve_group_name(const struct option_list *options, const char *run, struct buffer *out);

enum curve_band { CURVE_BAND_DEVIATION, CURVE_BAND_RANGE };

/* each has room for as many points as the curves have together */
struct curve_means {
    struct picture_point *mean, *low, *high;
    size_t count;
};

/* Computes the mean of the curves at each x at which one of them has a point, and one standard deviation (over n - 1)
 * around it, or the lowest and highest value. A curve counts from its first to its last point; between two points it is
 * the line that joins them. If one of the curves is not finite at x, mean, low and high are not finite either. Points
 * of the curves must ascend in x (curve_group_sort()), which must be finite. Fills `out`, whose count is 0. OK or
 * ERR_NOMEM. */
int curve_group_means(const struct picture_curve *curves, size_t count, enum curve_band band, struct curve_means *out,
                      struct error *e);

/* Sorts points by x, unless they are sorted already. */
void curve_group_sort(struct picture_point *points, size_t count);

#endif
