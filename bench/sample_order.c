/*
 * sample_order - which samples the trainer takes, in order, so that a peer can train on the same batches: the record at
 * each of the first PLACES places, one per line. Step t of workers with G samples together takes places [t G, (t+1) G).
 * usage: sample_order RECORDS SEED PLACES
 */
#include "dataset/batch_source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    const size_t records = argc == 4 ? strtoul(argv[1], NULL, 10) : 0;
    const uint64_t seed = argc == 4 ? strtoull(argv[2], NULL, 10) : 0;
    const size_t places = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
    uint32_t *order;

    if (!records || records > UINT32_MAX) {
        fprintf(stderr, "usage: sample_order RECORDS SEED PLACES\n");
        return 2;
    }
    if (!(order = malloc(records * sizeof *order))) {
        fprintf(stderr, "sample_order: no memory for %zu records\n", records);
        return 1;
    }
    for (size_t place = 0; place < places; place++) {
        if (place % records == 0)
            permutation_fill(order, records, seed, 0, (int64_t)(place / records));
        printf("%" PRIu32 "\n", order[place % records]);
    }
    free(order);
    return 0;
}
