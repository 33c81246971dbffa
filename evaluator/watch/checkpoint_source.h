/*
 * checkpoint_source.h - which names in a directory are checkpoints, of which kind, and when one is ready to be opened.
 *
 * Without a pattern: TensorFlow V2 checkpoints (NAME.index, and what the state file names), safetensors files with a
 * number at the end of their name ("model-700.safetensors"; not the parts of a larger one, "-00001-of-00002"), and V1
 * checkpoints ("model.ckpt-700" being a file), which are refused.
 * With one: every name that fits it, of files and directories. NAME.index is a TensorFlow V2 checkpoint if NAME or
 * NAME.index fits; NAME.safetensors a safetensors file; V1 as above; all else is of no known format.
 *
 * What is of a known format is ready when it is whole; all else by rules (ready_rule.h).
 */
#ifndef EVALUATOR_WATCH_CHECKPOINT_SOURCE_H
#define EVALUATOR_WATCH_CHECKPOINT_SOURCE_H

#include "base/error.h"
#include "evaluator/files/opened_checkpoint.h"
#include "evaluator/watch/pattern.h"
#include "evaluator/watch/ready_rule.h"
#include "evaluator/watch/sightings.h"
#include "evaluator/watch/step_rule.h"

#include <stddef.h>
#include <stdint.h>

struct checkpoint_source {
    int has_pattern;
    struct pattern pattern;
    struct ready_rule ready;
    struct step_rule steps;
};

struct checkpoint_source_options { /* as on the command line; borrowed; zero: the defaults */
    const char *pattern;
    const char *const *ready;
    size_t ready_count;
    const char *step_from;
    int64_t step_scale, step_offset;
};

/* ERR_ARG with a sentence. What ready_rule.h and step_rule.h borrow stays borrowed. */
int checkpoint_source_init(struct checkpoint_source *s, const struct checkpoint_source_options *options,
                           struct error *e);

struct checkpoint_rows { /* one listing; zero is empty */
    struct sighting_seen *items; /* ascending by step, then name; the names are owned here */
    size_t count, capacity;
};

/* Lists the directory, which fd is open on. Looking through many directories takes time: of those that `known` (NULL:
 * nothing is) has as opened, only every turn-th part is looked through again, and `turn` counts the listings. wall:
 * now, from which ages are counted. ERR_IO: it cannot be listed (e->system is ENOENT when it went); ERR_NOMEM. */
int checkpoint_source_list(const struct checkpoint_source *s, const char *directory, int fd,
                           const struct sightings *known, size_t turn, double wall, struct checkpoint_rows *out,
                           struct error *e);
void checkpoint_rows_release(struct checkpoint_rows *rows);

/* 1 if a file of that name, which need not be there any more, is what a checkpoint is known by: its name and step. V1
 * checkpoints are not told by names. */
int checkpoint_source_name(const struct checkpoint_source *s, const char *file, char *name, size_t size, int64_t *step);

/* For how long one must be unchanged before it is opened, seconds. What is written in place shows nothing else. */
double checkpoint_source_quiet(const struct checkpoint_source *s, const struct sighting *item);

/* Where the thing is that shows that it is still there: PATH.index of a bundle, else PATH. */
int checkpoint_witness(enum checkpoint_kind kind, const char *path, char *out, size_t size, struct error *e);

/* What was looked for, for people: "files named NAME-STEP.index". */
void checkpoint_source_describe(const struct checkpoint_source *s, char *out, size_t size);

#endif
