/*
 * evaluation_set.h - the directories that one evaluator serves: given by name, listed in a file that is read again on
 * request, or found below a directory once checkpoints appear in them. Each has its own eval directory, ROOT/NAME/eval.
 * All share one notifier. A directory found in a tree is dropped when it is gone or its training has finished, and
 * taken up again when it comes back or changes. One thread.
 */
#ifndef EVALUATOR_EVALUATION_SET_H
#define EVALUATOR_EVALUATION_SET_H

#include "base/error.h"
#include "base/program/log.h"
#include "base/program/options.h"
#include "evaluator/evaluation_watch.h"

#include <stddef.h>

/* ---- watch pair -------------------------------------------------------------------------------------------------- */

/*
 * NAME=DIR, as --watch takes it and as a line of a --watch-file. Pure.
 *
 * Blanks around it are ignored. NAME is the path of the results below the eval root: relative, without empty parts, .
 * or ..; DIR is any path, and begins after the first '='. Empty lines and lines that begin with # are ignored.
 */

/* 1: *name and *directory point into `line`, which is modified; 0: the line is ignored; ERR_ARG with a sentence. */
int watch_pair_parse(char *line, char **name, char **directory, struct error *e);

/* ---- evaluation set ---------------------------------------------------------------------------------------------- */

struct evaluation_set_options {
    struct evaluation_watch_settings settings; /* of each watch; name and directories are filled in */
    const char *eval_root;
    struct option_list pairs; /* "NAME=DIR" */
    const char *file, *tree;  /* NULL: none */
};

struct evaluation_set;

/* Opens the directories that exist. ERR_ARG: a pair is not NAME=DIR, a name is used twice or contains "..", or the file
 * cannot be read or has such a line. A directory that cannot be served (another evaluator holds its lock) is an error
 * if it was named on the command line; otherwise it is logged and tried again. options is copied, what it borrows stays
 * borrowed. On OK *out is yours until evaluation_set_close(). */
int evaluation_set_open(struct evaluation_set **out, const struct evaluation_set_options *options, struct log *log,
                        struct error *e);
void evaluation_set_close(struct evaluation_set *s); /* NULL is fine */

/* The watches served now; borrowed until the next refresh. */
struct evaluation_watch **evaluation_set_watches(const struct evaluation_set *s, size_t *count);

/* Seconds until the next refresh is due; infinity without a tree. */
double evaluation_set_due(const struct evaluation_set *s);
/* Looks at the tree; reread: also reads the file again. May close watches without flights and open new ones. Fails with
 * ERR_NOMEM only; other trouble is logged. */
int evaluation_set_refresh(struct evaluation_set *s, int reread, struct error *e);

/* 1 if more directories may appear although all served ones have ended. */
int evaluation_set_open_ended(const struct evaluation_set *s);

/* Counts of the watches that were dropped. */
struct evaluation_set_past {
    size_t done, failed, gone;
};
struct evaluation_set_past evaluation_set_past(const struct evaluation_set *s);

#endif
