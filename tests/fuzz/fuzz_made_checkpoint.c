/* A checkpoint that is made of the input (made_checkpoint.h): if it is sound it is read bit for bit, if it is damaged it
 * is refused. The input's bytes are decisions, so that a mutation of them is one of what the checkpoint is made of. */
#include "tests/fuzz/fuzz_directory.h"
#include "tests/fuzz/made_checkpoint.h"

#include <stdio.h>
#include <stdlib.h>

enum { DAMAGE_BYTES = 4 }; /* the first decisions: what damage */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
/* Of libFuzzer, which replay.c does without. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size) __attribute__((weak));

/* Half of the mutations take other damage too: of a thousand bytes the first ones would rarely be hit. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    struct decisions d = decisions_from_seed(seed);

    size = LLVMFuzzerMutate(data, size, max_size);
    if (size >= DAMAGE_BYTES && decide(&d, 2))
        decide_bytes(&d, data, DAMAGE_BYTES);
    return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct made_checkpoint made;
    struct error e = { 0 };
    char prefix[96];

    made_checkpoint_init(&made, decisions_from_bytes(data, size));
    snprintf(prefix, sizeof prefix, "%s/of-%d", fuzz_directory(), made.shards);
    made_checkpoint_write(&made, prefix);
    if (made_checkpoint_judge(&made, prefix, &e) != OK) {
        fprintf(stderr, "%s\n", e.message);
        abort();
    }
    made_checkpoint_release(&made);
    return 0;
}
