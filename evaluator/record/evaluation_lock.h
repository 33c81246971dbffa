/*
 * evaluation_lock.h - EVAL/evaluator.lock: who works on an eval directory, as one line of JSON:
 *
 * {"state":"running","host":"node7","pid":4711,"process_start":123456,"boot":"9f0c...","since":1.7e9,
 *  "checkpoint_dir":"/data/ckpt","pattern":"step{step}.pt","step_from":"count","step_scale":1,"step_offset":0,
 *  "eval_dir":"/data/runs/eval","tags":"plain","version":"0.1.0"}
 *
 * An evaluator that ended normally leaves state "ended" with "why". The kernel's lock (flock), which distinguishes
 * living processes, is on the ledger beside it, which the holder keeps open anyway: deleting the lock file lets nobody
 * in, and one descriptor is enough. Where the file system has no flock, fcntl locks the lock file instead. Neither lock
 * reaches other hosts on every file system, so the line counts as well: a "running" evaluator on another host is
 * respected until the user overrides it (take_over). Process numbers are reused: process_start (ticks since boot, as in
 * /proc) and boot identify the process. Any other content is nobody's lock, and is overwritten only if a crash may have
 * left it; what a link leads to is not. Thread-safe, but closing any descriptor of the lock file in the process
 * releases an fcntl lock on it.
 */
#ifndef EVALUATOR_RECORD_EVALUATION_LOCK_H
#define EVALUATOR_RECORD_EVALUATION_LOCK_H

#include "base/error.h"
#include "base/process.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#define EVALUATION_LOCK_FILE "evaluator.lock"

struct evaluation_lock {
    char state[16], tags[16], why[160], pattern[256], step_from[512];
    int64_t step_scale, step_offset; /* 0: not given */
    struct process process;
    double since; /* wall seconds */
    char checkpoint_directory[PATH_MAX], eval_directory[PATH_MAX];
};

enum evaluation_lock_state {
    LOCK_NONE,      /* no file, or not a lock in it */
    LOCK_ENDED,     /* the evaluator ended normally */
    LOCK_ALIVE,     /* its process lives on this host */
    LOCK_DEAD,      /* its process ran on this host and is gone */
    LOCK_ELSEWHERE, /* on another host; whether it lives is not known */
};

/* Parses the text of a lock file; 1, or 0: not a lock file. Pure. */
int evaluation_lock_parse(const char *text, size_t n, struct evaluation_lock *out);

/* Reads the file and checks whether its process lives. */
enum evaluation_lock_state evaluation_lock_read(const char *path, struct evaluation_lock *out);

/* written to the lock file beside the process; texts may be NULL, and are borrowed */
struct evaluation_lock_about {
    const char *checkpoint_directory; /* made absolute if possible */
    const char *pattern, *step_from, *tags;
    int64_t step_scale, step_offset;
};

/* descriptors; -1: none */
struct evaluation_lock_held {
    int ledger; /* opened with LEDGER_FLAGS */
    int file;   /* only if the ledger cannot be locked */
};
#define EVALUATION_LOCK_NOT_HELD \
    { \
        -1, -1 \
    }

/* Takes the lock for this process, and makes the ledger if there is none. take_over: even from an evaluator on another
 * host. ERR_PEER: somebody holds it, and e names host and pid if known; if not, this first waits two seconds for the
 * name to appear, or for the children of a killed evaluator to release it. ERR_ARG: path or the ledger is a link or not
 * a regular file, or path is not a lock. On OK *held is yours until evaluation_lock_release(), and *before is the
 * previous holder (unless *was is LOCK_NONE). */
int evaluation_lock_take(const char *path, const struct evaluation_lock_about *about, int take_over,
                         struct evaluation_lock_held *held, struct evaluation_lock *before,
                         enum evaluation_lock_state *was, struct error *e);

/* Writes that this process has ended and why, and releases the lock. Does nothing if it is not held. */
void evaluation_lock_release(const char *path, const struct evaluation_lock_held *held, const char *why);

#endif
