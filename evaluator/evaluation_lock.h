/*
 * evaluation_lock.h - EVAL/evaluator.lock: who works on an eval directory, one line of JSON:
 *
 * {"state":"running","host":"node7","pid":4711,"process_start":123456,"boot":"9f0c...","since":1.7e9,
 *  "checkpoint_dir":"/data/ckpt","pattern":"step{step}.pt","step_from":"count","step_scale":1,"step_offset":0,
 *  "eval_dir":"/data/runs/eval","tags":"plain","version":"0.1.0"}
 *
 * state "ended", with "why", is left behind by an evaluator that ended in order. The kernel's lock (fcntl) on the file
 * tells living processes apart on one host; it does not reach other hosts on every file system, and so the line counts
 * as well: what stands there as running on another host is respected until somebody says otherwise (take_over). A
 * process number may be given again: process_start, in ticks since boot as /proc has it, and the boot tell which one is
 * meant. Anything else in the file is nobody's lock, and is overwritten only if a crash may have left it; what a link
 * leads to is not. The directory itself is locked as well (directory_lock.h), so that nobody gets in because the file
 * was deleted; but not where EVAL is the directory of the checkpoints, which is the trainer's. Thread-safe, but closing
 * any descriptor of the file in the process that holds it gives the kernel's lock up: the holder reads it no more.
 */
#ifndef EVALUATOR_EVALUATION_LOCK_H
#define EVALUATOR_EVALUATION_LOCK_H

#include "base/error.h"
#include "base/process.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

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
    int file, directory;
};
#define EVALUATION_LOCK_NOT_HELD { -1, -1 }

/* Takes the lock for this process. take_over: also from an evaluator of another host. ERR_PEER: somebody holds it, and
 * e names host and pid where they are known. ERR_ARG: path is a link, no plain file, or no lock. On OK *held is yours
 * until evaluation_lock_release(), and before is who stood there (unless *was says LOCK_NONE). */
int evaluation_lock_take(const char *path, const struct evaluation_lock_about *about, int take_over,
                         struct evaluation_lock_held *held, struct evaluation_lock *before,
                         enum evaluation_lock_state *was, struct error *e);

/* Writes down that this process has ended, and why, and gives the lock up. One that is not held is fine. */
void evaluation_lock_release(const struct evaluation_lock_held *held, const char *why);

#endif
