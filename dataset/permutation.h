/*
 * permutation.h - the order of the records in an epoch: a permutation of 0..count-1 drawn from (seed, worker, epoch).
 */
#ifndef DATASET_PERMUTATION_H
#define DATASET_PERMUTATION_H

#include <stddef.h>
#include <stdint.h>

/* Fills order (count) with each of 0..count-1 once. All permutations are equally likely over seeds (Fisher-Yates).
 * worker: 0 if all workers share one order. worker and count < 2^32. */
void permutation_fill(uint32_t *order, size_t count, uint64_t seed, uint32_t worker, int64_t epoch);

#endif
