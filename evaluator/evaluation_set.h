/*
 * evaluation_set.h - the directories that one evaluator serves: given by name, listed in a file that is read again when
 * asked, or those below a directory in which checkpoints appear. Each has its own eval directory, ROOT/NAME/eval. All
 * share one notifier. A directory found in a tree that is gone, or whose training is finished, is let go, and taken
 * up again when it comes back or changes. One thread.
 */
#ifndef EVALUATOR_EVALUATION_SET_H
#define EVALUATOR_EVALUATION_SET_H

#include "base/error.h"
#include "base/program/log.h"
#include "evaluator/evaluation_watch.h"

#include <stddef.h>

struct evaluation_set_options {
    struct evaluation_watch_settings settings; /* for each; name and directories are filled in */
    const char *eval_root;
    const char *const *pairs;   /* "NAME=DIR", borrowed */
    size_t pair_count;
    const char *file, *tree;    /* NULL: none */
    double scan_seconds;        /* between looks at the tree */
    int inotify;
};

struct evaluation_set;

/* Opens what is there. ERR_ARG: a pair that is none, a name twice or with ".." in it, a file that cannot be read or has
 * such a line. One directory that cannot be served (another evaluator has its lock) is an error where it was named on
 * the command line, a line in the log and tried again otherwise. options is copied, what it borrows stays borrowed. On
 * OK *out is yours until evaluation_set_close(). */
int evaluation_set_open(struct evaluation_set **out, const struct evaluation_set_options *options, struct log *log,
                        struct error *e);
void evaluation_set_close(struct evaluation_set *s); /* NULL is fine */

/* What is served now; borrowed until the next refresh. */
struct evaluation_watch **evaluation_set_watches(const struct evaluation_set *s, size_t *count);

/* Seconds until refresh has something to do; infinity without a tree. */
double evaluation_set_due(const struct evaluation_set *s);
/* Looks at the tree; reread: also reads the file again. Watches without flights may be closed by this, new ones opened.
 * ERR_NOMEM only; what is wrong otherwise is said in the log. */
int evaluation_set_refresh(struct evaluation_set *s, int reread, struct error *e);

/* 1 while more may come although all that is served has ended. */
int evaluation_set_open_ended(const struct evaluation_set *s);

/* Checkpoints evaluated, failed and gone by watches that were let go. */
struct evaluation_set_past {
    size_t done, failed, gone;
};
struct evaluation_set_past evaluation_set_past(const struct evaluation_set *s);

#endif
