#include "evaluator/score/thread_runner.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct thread_runner {
    struct scorer scorer;
    int descriptor;
    pthread_t thread;
    pthread_mutex_t mutex; /* protects all that follows */
    pthread_cond_t start;
    int ending, stopping;
    const struct runner_job *job; /* NULL: idle */
    enum runner_state state;
    double share;
    enum evaluation_weights weights;
    struct evaluation evaluation;
    struct error why;
};

static void tell(const struct thread_runner *r)
{
    uint64_t one = 1;
    ssize_t ignored = write(r->descriptor, &one, sizeof one); /* fails only if full, and then it is readable anyway */

    (void)ignored;
}

static int on_tick(void *context, double share)
{
    struct thread_runner *r = context;
    int stop;

    pthread_mutex_lock(&r->mutex);
    r->share = share;
    stop = r->stopping || r->ending;
    pthread_mutex_unlock(&r->mutex);
    return stop;
}

static void evaluate(struct thread_runner *r, const struct runner_job *job)
{
    struct evaluation evaluation = { .examples = -1, .correct = -1 };
    struct error why = { 0 };
    enum evaluation_weights weights = WEIGHTS_UNKNOWN;
    int rc = r->scorer.load(r->scorer.context, job, &weights, &why);

    if (rc == OK) {
        pthread_mutex_lock(&r->mutex);
        r->weights = weights;
        pthread_mutex_unlock(&r->mutex);
        tell(r);
        rc = r->scorer.evaluate(r->scorer.context, on_tick, r, &evaluation, &why);
    }
    evaluation.weights = weights;
    pthread_mutex_lock(&r->mutex);
    r->state = rc == OK ? RUNNER_DONE : rc == SCORER_STOPPED ? RUNNER_STOPPED : RUNNER_FAILED;
    r->evaluation = evaluation;
    r->why = why;
    r->job = NULL;
    pthread_mutex_unlock(&r->mutex);
    tell(r);
}

static void *work(void *argument)
{
    struct thread_runner *r = argument;

    for (;;) {
        const struct runner_job *job;

        pthread_mutex_lock(&r->mutex);
        while (!r->job && !r->ending)
            pthread_cond_wait(&r->start, &r->mutex);
        job = r->ending ? NULL : r->job;
        pthread_mutex_unlock(&r->mutex);
        if (!job)
            return NULL;
        evaluate(r, job);
    }
}

static int thread_runner_start(void *context, size_t slot, const struct runner_job *job, struct error *e)
{
    struct thread_runner *r = context;

    (void)slot;
    (void)e;
    pthread_mutex_lock(&r->mutex);
    r->job = job;
    r->state = RUNNER_BUSY;
    r->stopping = 0;
    r->share = 0;
    r->weights = WEIGHTS_UNKNOWN;
    pthread_cond_signal(&r->start);
    pthread_mutex_unlock(&r->mutex);
    return OK;
}

static enum runner_state thread_runner_look(void *context, size_t slot, struct runner_progress *progress,
                                            struct evaluation *out, struct error *why)
{
    struct thread_runner *r = context;
    enum runner_state state;
    uint64_t count;
    ssize_t ignored = read(r->descriptor, &count, sizeof count);

    (void)ignored;
    (void)slot;
    pthread_mutex_lock(&r->mutex);
    state = r->state;
    *progress = (struct runner_progress){ r->share, r->weights, NULL };
    if (state != RUNNER_BUSY) {
        if (state == RUNNER_DONE)
            *out = r->evaluation;
        else
            evaluation_release(&r->evaluation);
        r->evaluation = (struct evaluation){ .examples = -1, .correct = -1 };
        if (why)
            *why = r->why;
    }
    pthread_mutex_unlock(&r->mutex);
    return state;
}

static void thread_runner_stop(void *context, size_t slot)
{
    struct thread_runner *r = context;

    (void)slot;
    pthread_mutex_lock(&r->mutex);
    r->stopping = 1;
    pthread_mutex_unlock(&r->mutex);
}

static void thread_runner_free(void *context)
{
    struct thread_runner *r = context;

    if (!r)
        return;
    pthread_mutex_lock(&r->mutex);
    r->ending = 1;
    pthread_cond_signal(&r->start);
    pthread_mutex_unlock(&r->mutex);
    pthread_join(r->thread, NULL);
    pthread_cond_destroy(&r->start);
    pthread_mutex_destroy(&r->mutex);
    evaluation_release(&r->evaluation);
    close(r->descriptor);
    r->scorer.free(r->scorer.context);
    free(r);
}

int thread_runner_new(struct runner *out, const struct scorer *scorer, struct error *e)
{
    struct thread_runner *r = calloc(1, sizeof *r);
    int rc;

    if (!r) {
        scorer->free(scorer->context);
        return error_memory(e, NULL, "for the runner");
    }
    r->scorer = *scorer;
    r->evaluation = (struct evaluation){ .examples = -1, .correct = -1 };
    pthread_mutex_init(&r->mutex, NULL);
    pthread_cond_init(&r->start, NULL);
    if ((r->descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) < 0) {
        rc = error_system(e, "cannot make a descriptor for the runner");
    } else if ((errno = pthread_create(&r->thread, NULL, work, r))) {
        rc = error_system(e, "cannot start a thread for the runner");
        close(r->descriptor);
    } else {
        *out = (struct runner){ .name = scorer->name,
                                .slots = 1,
                                .descriptor = r->descriptor,
                                .start = thread_runner_start,
                                .look = thread_runner_look,
                                .stop = thread_runner_stop,
                                .free = thread_runner_free,
                                .context = r };
        return OK;
    }
    pthread_cond_destroy(&r->start);
    pthread_mutex_destroy(&r->mutex);
    scorer->free(scorer->context);
    free(r);
    return rc;
}
