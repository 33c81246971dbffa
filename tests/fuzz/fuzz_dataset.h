/* fuzz_dataset.h - a data set opened and read to its end: errors have sentences, and samples labels of its classes. */
#ifndef TESTS_FUZZ_FUZZ_DATASET_H
#define TESTS_FUZZ_FUZZ_DATASET_H

#include "dataset/dataset.h"

#include <stdlib.h>

/* Aborts if the sample, which is number `used`, is not as the format has it. */
typedef void fuzz_dataset_check(const struct dataset *d, const void *sample, size_t used);

/* name, directory, split, shard, how: as for dataset_open_as(). check: NULL for none. */
static inline void fuzz_dataset_read(const char *name, const char *directory, enum dataset_split split,
                                     const struct shard *shard, const struct dataset_reading *how,
                                     fuzz_dataset_check *check)
{
    struct error e = { 0 };
    const void *sample;
    struct dataset *d;
    size_t used;
    void *room;

    if (dataset_open_as(&d, name, directory, split, shard, how, &e) < 0) {
        if (!e.message[0])
            abort(); /* an error without a sentence */
        return;
    }
    if (!(room = malloc(dataset_bytes(d))))
        abort();
    for (size_t i = 0; i < d->count; i++) {
        e.message[0] = '\0';
        if (dataset_read(d, i, room, &sample, &used, &e) < 0) {
            if (!e.message[0])
                abort();
            continue;
        }
        if (used >= d->count || field_integer(&d->labels, used) < 0 || field_integer(&d->labels, used) >= d->classes)
            abort();
        if (check)
            check(d, sample, used);
    }
    free(room);
    dataset_free(d);
}

#endif
