#include "trainer/job.h"

#include "base/clock.h"
#include "checkpoint/directory/checkpoint_directory.h"
#include "trainer/launch/child.h"
#include "trainer/launch/launch.h"
#include "trainer/launch/mpirun_line.h"
#include "trainer/loop.h"
#include "trainer/training_lock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RANK_GONE_SECONDS 60.0 /* a rank whose mpirun was killed saves before it ends */

int job_wanted(const struct train_options *o, struct error *e)
{
    if (!o->launch.resource_info && o->launch.restarts == 0)
        return 0;
    return launch_may(o->launch.resource_info ? "resource-info" : "restarts", e) < 0 ? ERR_ARG : 1;
}

/* Makes the words that start the ranks. resume: 1: from the newest checkpoint, whatever the user said first. */
static int compose(const struct train_options *o, struct launch *l, int resume, struct error *e)
{
    struct strategy_options strategy = o->strategy;
    const struct strategy_servers *said = strategy.kind->servers ? strategy.kind->servers(&strategy) : NULL;
    const int by_default = said && !said->given && !said->per_host;
    const char *added[5] = { NULL };
    const int servers = strategy_count_servers(&strategy, (int)l->hosts.count);
    size_t n = 0;
    int rc = OK;

    if (l->hosts.count)
        rc = strategy.kind->workers(&strategy, resource_info_workers(&l->hosts) + servers, e);
    if (l->hosts.count && by_default) {
        added[n++] = "--servers-per-host";
        added[n++] = "1";
    }
    if (resume) {
        added[n++] = "--resume";
        added[n++] = "auto";
    }
    return rc < 0 ? rc : launch_compose(l, servers, added, e);
}

enum { NEWEST_SIZE = 256 };

static void newest_of(const struct train_options *o, char *name)
{
    if (checkpoint_directory_newest(o->checkpoint_directory, name, NEWEST_SIZE, NULL) != 1)
        name[0] = '\0';
}

/* Waits until rank 0 of the ended job is gone, if it is on this host, and its saver, too: it may still be saving. */
static void wait_for_rank_0(const struct train_options *o, struct log *log)
{
    const struct timespec pause = { 0, 50000000 };
    const double begun = clock_monotonic();
    struct training_state state;
    int fd = -1, told = 0;

    while (training_state_read(o->checkpoint_directory, &state, NULL) == 1 && !strcmp(state.state, "running") &&
           process_judge(&state.process) == PROCESS_LIVES && clock_monotonic() - begun < RANK_GONE_SECONDS)
        nanosleep(&pause, NULL);
    while (training_lock_take(o->checkpoint_directory, 0, &fd, NULL) == TRAINING_LOCK_SAVING) {
        if (!told)
            log_line(log, "%s: waiting until the last state of the training is saved", o->checkpoint_directory);
        told = 1;
        nanosleep(&pause, NULL);
    }
    if (fd >= 0)
        close(fd);
}

/* Says why the job is or is not started again, in one line. */
static void tell(struct log *log, enum restart_verdict verdict, const struct restart_facts *f, const char *newest)
{
    if (verdict == RESTART_AGAIN)
        log_line(log,
                 "trainer: the training ended with status %d; starting it again from %s (restart %" PRId64
                 " of %" PRId64 ")",
                 f->status, *newest ? newest : "the beginning", f->done + 1, f->most);
    else if (verdict == RESTART_NO_PROGRESS)
        log_line(
            log,
            "trainer: the training ended with status %d again, and made no checkpoint since its last start; it is not "
            "started again",
            f->status);
    else if (verdict == RESTART_ENOUGH)
        log_line(log, "trainer: the training ended with status %d after %" PRId64 " restart%s; it is not started again",
                 f->status, f->done, f->done == 1 ? "" : "s");
}

/* Runs the job until it need not be started again. Its exit status, or an error. */
static int supervise(const struct train_options *o, struct launch *l, struct log *log, struct error *e)
{
    struct restart_facts f = { .most = o->launch.restarts };
    struct training_state state;
    char first[NEWEST_SIZE], before[NEWEST_SIZE], newest[NEWEST_SIZE];
    enum restart_verdict verdict;
    struct child_end end;
    int rc = OK;

    newest_of(o, first);
    snprintf(newest, sizeof newest, "%s", first);
    for (;; f.done++) {
        snprintf(before, sizeof before, "%s", newest);
        if ((rc = child_run(l->words, &end, e)) < 0)
            return rc;
        wait_for_rank_0(o, log);
        newest_of(o, newest);
        f.state = training_state_read(o->checkpoint_directory, &state, NULL) == 1 ? &state : NULL;
        if (!end.status && f.state && (!strcmp(state.state, "failed") || !strcmp(state.reason, LAUNCHER_GONE)))
            end.status = EXIT_NO; /* Open MPI 5's mpirun ends with 0 when it has lost a host */
        f.status = end.status;
        f.asked = end.asked;
        f.progress = strcmp(before, newest) != 0;
        verdict = restart_rule(&f);
        tell(log, verdict, &f, newest);
        if (verdict != RESTART_AGAIN)
            return end.status;
        if ((rc = compose(o, l, strcmp(first, newest) != 0, e)) < 0)
            return rc;
    }
}

int job_start(const struct train_options *o, struct log *log)
{
    struct error e = { 0 };
    struct launch l;
    int status = EXIT_DONE, rc = launch_open(&l, &o->launch, o->own_count, o->own, &e);

    if (rc == OK)
        rc = compose(o, &l, 0, &e);
    if (rc == OK && o->launch.dry_run)
        rc = launch_print(&l, &e);
    else if (rc == OK && (rc = launch_check(&l, &e)) == OK)
        rc = o->launch.restarts ? status = supervise(o, &l, log, &e) : launch_become(&l, &e);
    if (rc < 0)
        log_line(log, "trainer: %s", e.message);
    launch_release(&l);
    return rc < 0 ? EXIT_USAGE : status;
}
