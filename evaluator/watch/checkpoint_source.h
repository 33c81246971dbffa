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
 * Checkpoints of a known format are ready when they are whole; others by rules.
 */
#ifndef EVALUATOR_WATCH_CHECKPOINT_SOURCE_H
#define EVALUATOR_WATCH_CHECKPOINT_SOURCE_H

#include "base/buffer.h"
#include "base/error.h"
#include "evaluator/files/opened_checkpoint.h"
#include "evaluator/watch/sightings.h"

#include <stddef.h>
#include <stdint.h>

/* ---- pattern ----------------------------------------------------------------------------------------------------- */

/*
 * Matches names of checkpoints that contain the step, as given with --pattern. Pure.
 *
 *   checkpoint-{step}            a file or directory with such a name; {step} is 1 to 18 digits
 *   checkpoint-{step}/           a directory
 *   epoch={*}-step={step}.ckpt   {*}, or {} for short: any text or none; the shortest match is taken
 *
 * {step} takes all digits in a row: "model{step}.pt" finds 12 in model12.pt, and so does "{*}{step}.pt". A pattern
 * without {step}, "last.ckpt", is for steps that come from elsewhere.
 */

enum { PATTERN_PARTS_MAX = 32, PATTERN_TEXT_MAX = 256 };
enum pattern_part_kind { PATTERN_TEXT, PATTERN_STEP, PATTERN_ANY };

struct pattern {
    struct pattern_part {
        enum pattern_part_kind kind;
        unsigned short start, length; /* of a TEXT part, in text */
    } parts[PATTERN_PARTS_MAX];
    size_t count;
    char text[PATTERN_TEXT_MAX]; /* the pattern, without a final '/' */
    int directory;               /* 1: it had a final '/' */
};

/* with_step 1: {step} must occur once; 0: it must not occur. ERR_ARG: it does not follow that rule, has a '/' inside,
 * an unknown {word}, or a digit right after {step}, or is too long. */
int pattern_parse(const char *text, int with_step, struct pattern *out, struct error *e);

/* 1 if the whole name matches; *step: -1 without {step}. */
int pattern_match(const struct pattern *p, const char *name, int64_t *step);

/* ---- step rule --------------------------------------------------------------------------------------------------- */

/*
 * The step of a checkpoint, by --step-from, --step-scale and --step-offset: a number times the scale,
 * plus the offset. Pure.
 *
 *   (nothing)    the number in the name
 *   FILE:KEY     the whole number at KEY, a dotted path of members, in the JSON file FILE: NAME/FILE in a directory,
 *                FILE beside a file. With {name} in it, FILE is a path relative to the watched directory. FILE is
 *                written after the checkpoint: an older one belongs to another checkpoint
 *   count        the number of checkpoints found so far: 1, 2, 3, ...
 *   mtime        the modification time of the checkpoint, in whole seconds since 1970
 */

enum step_from { STEP_FROM_NAME, STEP_FROM_FILE, STEP_FROM_COUNT, STEP_FROM_MTIME };

struct step_rule {
    enum step_from from;
    char file[256];  /* STEP_FROM_FILE */
    const char *key; /* the same; borrowed */
    int64_t scale, offset;
    int scaled; /* 1: scale or offset was given, so the step comes from the name, not a tensor */
};

/* from: as on the command line, NULL: the name; borrowed. scale 0: 1. ERR_ARG with a sentence. */
int step_rule_parse(struct step_rule *out, const char *from, int64_t scale, int64_t offset, struct error *e);

/* The step of a number, and back; -1: there is no such step of 0 or more. */
int64_t step_rule_step(const struct step_rule *r, int64_t number);
int64_t step_rule_number(const struct step_rule *r, int64_t step);

/* The path of FILE relative to the watched directory; 0: it does not fit. */
int step_rule_path(const struct step_rule *r, const char *name, int is_directory, char *out, size_t size);
/* The number at the key in these n bytes of FILE. ERR_CORRUPT with a sentence that names path. */
int step_rule_find(const struct step_rule *r, const char *path, const char *bytes, size_t n, int64_t *out,
                   struct error *e);

/* ---- ready rule -------------------------------------------------------------------------------------------------- */

/*
 * When a checkpoint of unknown format is ready to be opened, as given with --ready. If several rules are
 * given, all must be met.
 *
 *   quiet:SECONDS   nothing in it has changed for SECONDS; the default, with 5
 *   marker:FILE     FILE exists: NAME/FILE in a directory; for a file NAME.FILE, or NAMEFILE if FILE begins with a dot.
 *                   With {name} or {step} in it, FILE is a path relative to the watched directory. It counts once
 *                   it has not changed for READY_MARKER_SECONDS and, if its name or content says JSON, is complete
 *   latest:FILE     FILE in the watched directory names it or a later one: by its name, as DeepSpeed's "latest" does,
 *                   or by its number, as Megatron's "latest_checkpointed_iteration.txt"
 *   rename          as soon as its name exists: it was written under another name, and does not change in place
 *
 * A marker or latest FILE that is older than the checkpoint may be left from an earlier training: then the checkpoint
 * must also have been quiet for READY_QUIET_SECONDS.
 */

enum { READY_MARKERS_MAX = 8 };

#define READY_QUIET_SECONDS 5.0
#define READY_MARKER_SECONDS 0.5 /* a program that creates a file fills it sooner */
#define READY_TICK_SECONDS 0.01  /* of the kernel's clock, at most */

struct ready_rule {
    int rename;
    double quiet_seconds;                   /* 0: need not be quiet */
    const char *markers[READY_MARKERS_MAX]; /* borrowed */
    size_t marker_count;
    const char *latest; /* borrowed; NULL: none */
};

/* texts: as on the command line, borrowed; count 0: the default. ERR_ARG with a sentence. */
int ready_rule_parse(struct ready_rule *out, const char *const *texts, size_t count, struct error *e);

/* 1: it is ready as soon as the name exists. */
int ready_rule_by_name(const struct ready_rule *r);
/* Replaces {name} and {step} in text; 0: it does not fit. Pure. */
int ready_rule_fill(const char *text, const char *name, int64_t step, char *out, size_t size);
/* The path of a marker relative to the watched directory; 0: it does not fit. Pure. */
int ready_rule_marker_path(const char *marker, const char *name, int64_t step, int is_directory, char *out,
                           size_t size);

/* 1: the checkpoint changed after its marker, so that the marker may be older than the checkpoint; in wall seconds. A
 * rename changes the marker and then the directory, in the same tick or the next: that is no change. Pure. */
int ready_rule_changed_after(double changed, double marked);
/* 1 if a marker is JSON, judging by its name or its first bytes: an object. Pure. */
int ready_rule_says_json(const char *path, const char *bytes, size_t n);
/* OK if these bytes can be the complete marker of that path: JSON is parsed. ERR_CORRUPT with a sentence. Pure. */
int ready_rule_marker_whole(const char *path, const char *bytes, size_t n, struct error *e);

/* The number named in these n bytes of a latest FILE: "global_step500", as a name that matches, or "500". 0: none, as
 * in "release". Pure. */
int ready_rule_latest(const struct pattern *p, const char *bytes, size_t n, int64_t *number);

/* ---- checkpoint source ------------------------------------------------------------------------------------------- */

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

/* ERR_ARG with a sentence. Texts that the rules borrow stay borrowed. */
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
