/*
 * partition_search.h - finds into how many parts tables are best cut, from the time of a step with each number tried:
 * Parallax's search (strategies, 6.9). The number doubles while that is faster, then halves from half of the least one
 * tried while that is. From three points on, the time of a step with p parts is taken to be c + b / p + a (p - 1),
 * fitted by least squares, and the number with the least such time, from the least to the largest tried, is the result;
 * with fewer points, or where these do not determine a, b and c, the fastest one tried is. Pure.
 *
 * Parallax starts the training anew for each number. Here it is tried before the first step, with the rows of the first
 * batch: workers fetch them and send sums, and servers add these, but change nothing (table_worker_try()).
 */
#ifndef TRAINER_SERVER_PARTITION_SEARCH_H
#define TRAINER_SERVER_PARTITION_SEARCH_H

#include <stddef.h>

/* Each number is tried for so many steps, after some that are not timed. */
enum { PARTITION_SEARCH_BEFORE = 5, PARTITION_SEARCH_STEPS = 20, PARTITION_SEARCH_POINTS = 40 };

struct partition_point {
    int partitions;
    double seconds; /* of a step */
};

struct partition_search {
    int most;       /* the largest number that makes sense */
    int partitions; /* the number to try now, or the result */
    int halving, decided;
    struct partition_point points[PARTITION_SEARCH_POINTS]; /* in the order in which they were tried */
    size_t count;
};

/* Begins with `first` parts. first and most: 1 to 2^30. */
void partition_search_init(struct partition_search *s, int first, int most);
/* A step with s->partitions took so many seconds: sets the next number to try, or decides. Not once it is decided. */
void partition_search_next(struct partition_search *s, double seconds);

#endif
