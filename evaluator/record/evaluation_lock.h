/*
 * evaluation_lock.h - EVAL/evaluator.lock: who works on an eval directory, one line of JSON:
 *
 * {"state":"running","host":"node7","pid":4711,"process_start":123456,"boot":"9f0c...","since":1.7e9,
 *  "checkpoint_dir":"/data/ckpt","pattern":"step{step}.pt","step_from":"count","step_scale":1,"step_offset":0,
 *  "eval_dir":"/data/runs/eval","tags":"plain","version":"0.1.0"}
 *
 * state "ended", with "why", is left behind by an evaluator that ended in order. The kernel's lock (flock) that tells
 * living processes apart is on the ledger beside it, which the holder has open all the time: nobody gets in because the
 * lock file was deleted, and one descriptor does for both. Where the file system has no such locks there is one (fcntl)
 * on the lock file. Neither reaches other hosts on every file system, and so the line counts as well: what stands there
 * as running on another host is respected until somebody says otherwise (take_over). A process number may be given
 * again: process_start, in ticks since boot as /proc has it, and the boot tell which one is meant. Anything else in the
 * file is nobody's lock, and is overwritten only if a crash may have left it; what a link leads to is not. Thread-safe,
 * but closing any descriptor of the lock file in the process gives a lock (fcntl) on it up.
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
    double since;               /* wall seconds */
    char checkpoint_directory[PATH_MAX], eval_directory[PATH_MAX];
};

enum evaluation_lock_state {
    LOCK_NONE,      /* no file, or nothing of ours in it */
    LOCK_ENDED,     /* the evaluator ended in order */
    LOCK_ALIVE,     /* its process lives on this host */
    LOCK_DEAD,      /* its process was on this host, and is gone */
    LOCK_ELSEWHERE, /* on another host, about which nothing is known */
};

/* Parses the text of a lock file; 1, or 0: not such a text. Pure. */
int evaluation_lock_parse(const char *text, size_t n, struct evaluation_lock *out);

/* Reads the file and judges what stands there. */
enum evaluation_lock_state evaluation_lock_read(const char *path, struct evaluation_lock *out);

struct evaluation_lock_about { /* what is written down beside the process; texts may be NULL, and are borrowed */
    const char *checkpoint_directory; /* as an absolute path where it can be */
    const char *pattern, *step_from, *tags;
    int64_t step_scale, step_offset;
};

struct evaluation_lock_held { /* descriptors; -1: none */
    int ledger; /* opened with LEDGER_FLAGS */
    int file;   /* where the ledger cannot be locked */
};
#define EVALUATION_LOCK_NOT_HELD { -1, -1 }

/* Takes the lock for this process, and makes the ledger if there is none. take_over: also from an evaluator of another
 * host. ERR_PEER: somebody holds it, and e names host and pid where they are known; if they are not, this waits two
 * seconds for a name, or for the children of an evaluator that was killed to let go. ERR_ARG: path or the ledger is a
 * link or no plain file, or path is no lock. On OK *held is yours until evaluation_lock_release(), and before is who
 * stood there (unless *was says LOCK_NONE). */
int evaluation_lock_take(const char *path, const struct evaluation_lock_about *about, int take_over,
                         struct evaluation_lock_held *held, struct evaluation_lock *before,
                         enum evaluation_lock_state *was, struct error *e);

/* Writes down that this process has ended, and why, and gives the lock up. One that is not held is fine. */
void evaluation_lock_release(const char *path, const struct evaluation_lock_held *held, const char *why);

#endif
