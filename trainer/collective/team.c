#include "trainer/collective/team.h"

#include "base/clock.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_SECONDS 0.02

struct member {
    struct team *team;
    int number;
    pthread_t thread;
};

struct team {
    struct member *members; /* (size - 1) the threads, from member 1 on */
    int size, running;      /* running: threads that were started */
    pthread_mutex_t lock;
    pthread_cond_t begun, done;
    /* under lock: */
    uint64_t round; /* works begun */
    int busy;       /* threads that have not finished this one */
    int ended;
    team_work *work; /* NULL between works */
    void *context;
};

static void *serve(void *context)
{
    struct member *m = context;
    struct team *t = m->team;
    uint64_t round = 0;

    pthread_mutex_lock(&t->lock);
    for (;;) {
        while (t->round == round && !t->ended)
            pthread_cond_wait(&t->begun, &t->lock);
        if (t->ended)
            break;
        round = t->round;
        pthread_mutex_unlock(&t->lock);
        t->work(t->context, m->number); /* unchanged until this member, too, is done */
        pthread_mutex_lock(&t->lock);
        if (--t->busy == 0)
            pthread_cond_signal(&t->done);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

int team_new(struct team **out, int size, struct error *e)
{
    struct team *t = calloc(1, sizeof *t);
    sigset_t all, before;
    int rc = 0;

    *out = NULL;
    if (!t || !(t->members = calloc((size_t)size, sizeof *t->members))) {
        free(t);
        return error_memory(e, NULL, "for %d threads", size);
    }
    t->size = size;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->begun, NULL);
    pthread_cond_init(&t->done, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; rc == 0 && t->running < size - 1; t->running += rc == 0) {
        struct member *m = &t->members[t->running];

        *m = (struct member){ .team = t, .number = t->running + 1 };
        rc = pthread_create(&m->thread, NULL, serve, m);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        error_set(e, ERR_NOMEM, "cannot start thread %d of %d: %s", t->running + 2, size, strerror(rc));
        team_free(t);
        return ERR_NOMEM;
    }
    *out = t;
    return OK;
}

void team_free(struct team *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    t->ended = 1;
    pthread_cond_broadcast(&t->begun);
    pthread_mutex_unlock(&t->lock);
    for (int i = 0; i < t->running; i++)
        pthread_join(t->members[i].thread, NULL);
    pthread_cond_destroy(&t->done);
    pthread_cond_destroy(&t->begun);
    pthread_mutex_destroy(&t->lock);
    free(t->members);
    free(t);
}

static void begin(struct team *t, team_work *work, void *context)
{
    pthread_mutex_lock(&t->lock);
    t->work = work;
    t->context = context;
    t->busy = t->size - 1;
    t->round++;
    pthread_cond_broadcast(&t->begun);
    pthread_mutex_unlock(&t->lock);
}

/* Waits until all threads are done, at most LOOK_SECONDS. 1: they are. */
static int team_done(struct team *t)
{
    const double until = clock_monotonic() + LOOK_SECONDS;
    const struct timespec deadline = { (time_t)until, (long)((until - floor(until)) * 1e9) };
    int rc = 0, done;

    pthread_mutex_lock(&t->lock);
    while (t->busy > 0 && rc == 0)
        rc = pthread_cond_clockwait(&t->done, &t->lock, CLOCK_MONOTONIC, &deadline);
    done = t->busy == 0;
    pthread_mutex_unlock(&t->lock);
    return done;
}

void team_run(struct team *t, team_work *work, void (*idle)(void *context), void *context)
{
    begin(t, work, context);
    work(context, 0);
    while (!team_done(t))
        if (idle)
            idle(context);
}
