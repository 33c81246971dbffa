/* checkpoint_values PREFIX: prints "name <tab> masked CRC" of every tensor but our notes on how it was trained, so that
 * two checkpoints of the same bits print the same lines. Every tensor is read, so its CRC is also checked. */
#include "checkpoint/tensor_bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    static const char *const notes[] = { "evalboard/world_size", "evalboard/workers", "evalboard/batch_size",
                                         "evalboard/run_option", "evalboard/shard",   "evalboard/data" };
    struct error e = { 0 };
    struct tensor_bundle *b;
    int rc;

    if (argc != 2)
        return 2;
    if ((rc = tensor_bundle_open(&b, argv[1], &e)) < 0) {
        fprintf(stderr, "%s\n", e.message);
        return 1;
    }
    for (size_t i = 0; i < tensor_bundle_count(b) && rc == OK; i++) {
        const struct tensor_entry *t = tensor_bundle_entry(b, i);
        void *bytes = malloc((size_t)t->size + 1);
        int note = 0;

        for (size_t k = 0; k < sizeof notes / sizeof *notes; k++)
            note |= !strcmp(t->name, notes[k]);
        rc = bytes ? tensor_bundle_read(b, t, bytes, (size_t)t->size, &e) : ERR_NOMEM;
        if (!note && rc == OK)
            printf("%s\t%08x\n", t->name, t->crc);
        free(bytes);
    }
    if (rc < 0)
        fprintf(stderr, "%s\n", e.message);
    tensor_bundle_close(b);
    return rc < 0;
}
