/*
 * checkpoint_source.h - which names are checkpoints, of which kind, and when a checkpoint may be opened.
 *
 * Without a pattern: TensorFlow V2 checkpoints (NAME.index, and those named in the state file), safetensors files with
 * a number at the end of their name ("model-700.safetensors", but not parts, "-00001-of-00002"), directories with such
 * a name and model.safetensors or its index in them, as Hugging Face's Trainer writes them, and V1 checkpoints (a file
 * "model.ckpt-700"), which are refused. With a pattern: every file and directory whose name matches. NAME.index is a
 * TensorFlow V2 checkpoint if NAME or NAME.index matches; NAME.safetensors a safetensors file; V1 as above; all others
 * are of unknown format.
 *
 * Checkpoints of a known format are ready when they are whole; others by rules (ready_rule.h).
 */
#ifndef EVALUATOR_WATCH_CHECKPOINT_SOURCE_H
#define EVALUATOR_WATCH_CHECKPOINT_SOURCE_H

#include "base/buffer.h"
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

/* as on the command line; borrowed; zero: the defaults */
struct checkpoint_source_options {
    const char *pattern;
    const char *const *ready;
    size_t ready_count;
    const char *step_from;
    int64_t step_scale, step_offset;
};

/* ERR_ARG with a sentence. Texts that ready_rule.h and step_rule.h borrow stay borrowed. */
int checkpoint_source_init(struct checkpoint_source *s, const struct checkpoint_source_options *options,
                           struct error *e);

/* The step of a number in a name; -1: names do not give it. */
int64_t checkpoint_source_step(const struct checkpoint_source *s, int64_t number);
/* Matches a name with the pattern: 1 and its step. */
int checkpoint_source_match(const struct checkpoint_source *s, const char *name, int64_t *step);
/* How many letters of a name that does not match would have to be changed so that it does, digits apart. Without a
 * pattern: 0 of a name like those of other frameworks' checkpoints, 1 of one without a number, or FAR. */
#define CHECKPOINT_SOURCE_FAR SIZE_MAX
size_t checkpoint_source_distance(const struct checkpoint_source *s, const char *name);
/* Appends the options with which such a name is found: "--pattern 'model_{step}.pt'". */
void checkpoint_source_suggest(const char *name, struct buffer *out);
/* 1 if this file name, even of a deleted file, identifies a checkpoint: sets its name and step. V1 checkpoints cannot
 * be told by name. */
int checkpoint_source_name(const struct checkpoint_source *s, const char *file, char *name, size_t size, int64_t *step);

/* How many seconds it must stay unchanged before it is opened: a file written in place gives no other sign. */
double checkpoint_source_quiet(const struct checkpoint_source *s, const struct sighting *item);

/* Sets out to the path that shows whether a checkpoint still exists: PATH.index of a bundle, else PATH. */
int checkpoint_witness(enum checkpoint_kind kind, const char *path, char *out, size_t size, struct error *e);

/* Describes for people what is looked for: "files named NAME-STEP.index". */
void checkpoint_source_describe(const struct checkpoint_source *s, char *out, size_t size);

#endif
