/*
 * launch.h - starts a job instead of taking part in it: `trainer --resource-info FILE ...` becomes mpirun, which starts
 * this program without these options on the hosts of FILE. The process is replaced, so signals, standard input and the
 * exit status are mpirun's. All that can be is checked before: the file, that no launcher started this process, that
 * there is an mpirun.
 *
 * Before it: the rule by which a job is started again.
 */
#ifndef TRAINER_LAUNCH_LAUNCH_H
#define TRAINER_LAUNCH_LAUNCH_H

#include "base/error.h"
#include "base/program/options.h"
#include "checkpoint/directory/training_state.h"
#include "trainer/launch/mpirun_line.h"
#include "trainer/launch/resource_info.h"

#include <stddef.h>
#include <stdint.h>

/* ---- restart rule ------------------------------------------------------------------------------------------------ */

/*
 * Whether a job that has ended should be started again. Pure.
 *
 * A rank failed if the status says so: 1, or 128 and more for a signal, as mpirun and shells have it. Nobody wants a
 * job again that is done (0), whose command line or input is wrong (2), or that was told to end: by a signal to the
 * process that supervises it, to mpirun or to a rank (130, 143, or "stopped" with a signal's name in training.json), or
 * by stop.json. If a start made no checkpoint, the next one would fail at the same place; so only the first failure
 * without a new checkpoint is forgiven.
 */

enum restart_verdict {
    RESTART_AGAIN,
    RESTART_NOT_WANTED,  /* nothing needs to be said */
    RESTART_NO_PROGRESS, /* the last start made no checkpoint */
    RESTART_ENOUGH,      /* all restarts are used up */
};

struct restart_facts {
    int status, asked;                  /* of child.h */
    const struct training_state *state; /* training.json afterwards; NULL: there is none */
    int64_t done, most;                 /* restarts so far, and at most */
    int progress;                       /* 1: there is another newest checkpoint than before the last start */
};

enum restart_verdict restart_rule(const struct restart_facts *f);

/* ---- launch ------------------------------------------------------------------------------------------------------ */

struct launch_options {
    const char *resource_info; /* NULL: not given */
    int dry_run;
    int64_t restarts; /* 0: none */
};

enum { LAUNCH_NAMES = 3, LAUNCH_ROWS = LAUNCH_NAMES + 1 }; /* and a heading */
extern const char *const launch_option_names[LAUNCH_NAMES];

/* Sets rows to the options, whose values are in *o. Returns how many: LAUNCH_ROWS. */
size_t launch_rows(struct option *rows, struct launch_options *o);

struct launch {
    struct resource_info hosts;          /* none without --resource-info */
    char program[4096], directory[4096]; /* absolute paths */
    char *const *given;                  /* (given_count) the program's own options, borrowed */
    size_t given_count;
    enum mpirun_kind mpirun; /* since launch_compose() */
    const char **words;      /* what to run; NULL at the end */
};

/* ERR_ARG: mpirun or Slurm has started this process, and chosen the hosts already. `option` asks for the start. */
int launch_may(const char *option, struct error *e);

/* Reads the file of --resource-info: ERR_ARG, ERR_IO. On OK *out is yours: resource_info_release() it. */
int launch_hosts(struct resource_info *out, const char *path, struct error *e);

/* Reads the file of --resource-info, if it was given: ERR_ARG, ERR_IO. argv: the command line without the options of
 * launch_rows(); borrowed. On OK or not, launch_release() it. */
int launch_open(struct launch *l, const struct launch_options *o, int argc, char **argv, struct error *e);
void launch_release(struct launch *l);

/* Asks the mpirun in PATH for its version. Without one: as mpirun_kind(). Sets HOME, without which Open MPI's
 * crashes, if nothing says where that is. Not beside other threads. */
enum mpirun_kind launch_mpirun(void);

/* Makes l->words: mpirun's line for workers on the hosts' devices and so many servers, or without hosts this program
 * alone. added: the options to add, ending with NULL; borrowed. Call it again for other ones. */
int launch_compose(struct launch *l, int servers, const char *const *added, struct error *e);

/* Prints the words on standard output, for a shell. */
int launch_print(const struct launch *l, struct error *e);

/* ERR_ARG: there is no mpirun to be run. ERR_IO: or no directory for its files. */
int launch_check(const struct launch *l, struct error *e);

/* Replaces this process by the words' program. Returns only after an error. */
int launch_become(const struct launch *l, struct error *e);

#endif
