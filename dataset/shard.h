/*
 * shard.h - which part of the data a worker takes: of the files or of the records, every n-th (modulo) or a run of
 * neighbours (contiguous). It needs C11 and nothing else of this project, so other programs may copy it. All of it is
 * arithmetic: no state, no memory, any number of threads.
 *
 *   struct shard s = { SHARD_FILES, workers, worker, SHARD_MODULO };
 *
 *   if (shard_is_short(&s, files))                     // some worker would have nothing, and others wait for it in
 *       return wrong(...);                             // their first sum: end at the start
 *   for (uint64_t k = 0; k < shard_size(&s, files); k++)
 *       read(names[shard_item(&s, k, files)]);         // names sorted, so that all workers have the same list
 *
 * Every item is taken by exactly one worker, whatever the rule is, and sizes differ by one at most. Applied to a list
 * of file names it gives each worker files of its own; applied to the places of a shuffled order it gives each records
 * of its own: shuffle with a seed that all workers have, or shards overlap. (The shard API of Parallax: shard.shard()
 * is the modulo rule, its examples cut file lists by the contiguous one.)
 */
#ifndef DATASET_SHARD_H
#define DATASET_SHARD_H

#include <stdint.h>

/*
 * What is shared among workers.
 *   SHARD_RECORDS: all workers hold all records and use the same seeded order; each takes its part of it, so that the
 *                  workers' batches of a step together are the batch that one worker would have taken.
 *   SHARD_FILES:   each takes whole files of the sorted list. A worker without a file is an error that names it.
 *   SHARD_NONE:    nothing: all workers hold all records, and each takes all of them in an order of its own.
 */
enum shard_kind { SHARD_RECORDS, SHARD_FILES, SHARD_NONE };

/* Of n items and `count` workers, worker `index` takes
 *   SHARD_MODULO:     the items i with i mod count = index;
 *   SHARD_CONTIGUOUS: with q = n div count and r = n mod count, q + (index < r) items from index q + min(index, r)
 *                     on. */
enum shard_rule { SHARD_MODULO, SHARD_CONTIGUOUS };

struct shard {
    enum shard_kind kind;
    int count, index;     /* workers, > 0; which one, 0 <= index < count. {SHARD_RECORDS, 1, 0} is everything */
    enum shard_rule rule; /* SHARD_MODULO unless it is set */
};

/* How many of n items are the worker's; of SHARD_NONE all. */
static inline uint64_t shard_size(const struct shard *s, uint64_t n)
{
    const uint64_t count = (uint64_t)s->count, index = (uint64_t)s->index;

    return s->kind == SHARD_NONE ? n : n / count + (index < n % count);
}

/* The k-th of them, 0 <= k < shard_size(): its place among the n. Ascending in k. */
static inline uint64_t shard_item(const struct shard *s, uint64_t k, uint64_t n)
{
    const uint64_t count = (uint64_t)s->count, index = (uint64_t)s->index, rest = n % count;

    if (s->kind == SHARD_NONE)
        return k;
    return s->rule == SHARD_MODULO ? k * count + index : n / count * index + (index < rest ? index : rest) + k;
}

/* 1: item i of n is the worker's. */
static inline int shard_has(const struct shard *s, uint64_t i, uint64_t n)
{
    const uint64_t first = s->rule == SHARD_CONTIGUOUS && s->kind != SHARD_NONE ? shard_item(s, 0, n) : 0;

    if (s->kind == SHARD_NONE)
        return i < n;
    return s->rule == SHARD_MODULO ? i < n && i % (uint64_t)s->count == (uint64_t)s->index
                                   : i >= first && i - first < shard_size(s, n);
}

/* 1: of n items some worker has none. */
static inline int shard_is_short(const struct shard *s, uint64_t n)
{
    return s->kind != SHARD_NONE && n < (uint64_t)s->count;
}

/* 1: the worker reads file `file` of the sorted list of `files`: its own with SHARD_FILES, else all. */
static inline int shard_has_file(const struct shard *s, uint64_t file, uint64_t files)
{
    return s->kind != SHARD_FILES || shard_has(s, file, files);
}

#endif
