/*
 * made_checkpoint.h - makes a V2 checkpoint in memory from decisions, with an encoder of its own, and says what a reader
 * must find in it: everything, or damage. Damage lies behind right CRCs of whatever encloses it, unless it is a CRC.
 */
#ifndef TESTS_FUZZ_MADE_CHECKPOINT_H
#define TESTS_FUZZ_MADE_CHECKPOINT_H

#include "base/buffer.h"
#include "base/error.h"
#include "tests/fuzz/decisions.h"

#include <stddef.h>
#include <stdint.h>

enum { MADE_TENSORS_MAX = 40, MADE_SHARDS_MAX = 3, MADE_RANK_MAX = 8 };

enum made_verdict {
    MADE_SOUND,   /* must be read, each tensor bit for bit */
    MADE_DAMAGED, /* must be refused: when it is opened, read or checked */
    MADE_EITHER,  /* may be read or refused; damaged in a way of which nobody can say what it hits */
};

struct made_tensor {
    struct buffer name, bytes; /* bytes: as tensor_bundle_read gives them, of variants what is stored */
    int type, rank;
    int64_t shape[MADE_RANK_MAX];
};

struct made_checkpoint {
    enum made_verdict verdict;
    struct buffer damage; /* the names of all that was done, with a + between two; "" if sound */
    struct buffer index;
    int shards;
    struct buffer shard[MADE_SHARDS_MAX];
    int shard_there[MADE_SHARDS_MAX];            /* 0: there is no such file */
    struct made_tensor tensor[MADE_TENSORS_MAX]; /* ascending by name */
    size_t count;
};

void made_checkpoint_init(struct made_checkpoint *c, struct decisions d);
void made_checkpoint_release(struct made_checkpoint *c);

/* Writes PREFIX.index and the shards; removes shards that are not there. Aborts where that fails. */
void made_checkpoint_write(const struct made_checkpoint *c, const char *prefix);

/* Reads what was written, in every way there is. OK: it is as the verdict says. ERR_CORRUPT: it is not; the sentence says
 * how, and names the damage. */
int made_checkpoint_judge(const struct made_checkpoint *c, const char *prefix, struct error *e);

#endif
