#include "base/program/ordered_work.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

enum { MORE_ITEMS = 2, WAITING_NS = 100 * 1000 * 1000 };

/*
 * Item number i is at place i % count. The caller fills number `filled` and takes number `taken`; threads begin number
 * `begun`. taken <= begun <= filled < taken + count. Of these only the caller's thread changes filled and taken.
 */
struct ordered_work {
    struct ordered_work_calls calls;
    char *items;
    int *done; /* by place */
    size_t count, filled, taken;
    pthread_t threads[ORDERED_WORK_THREADS];
    size_t thread_count, wanted;
    pthread_mutex_t lock; /* of the members below, and of done */
    pthread_cond_t work, result;
    size_t begun, given;
    int stop;
};

static void *item_at(struct ordered_work *w, size_t number)
{
    return w->items + number % w->count * w->calls.item_size;
}

static size_t cores(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) < 0 ? 1 : (size_t)CPU_COUNT(&set);
}

int ordered_work_open(struct ordered_work **out, const struct ordered_work_calls *calls, struct error *e)
{
    struct ordered_work *w = calloc(1, sizeof *w);
    size_t n = cores();
    pthread_condattr_t monotonic;

    *out = NULL;
    if (w) {
        w->calls = *calls;
        w->wanted = n < 2 ? 0 : n < ORDERED_WORK_THREADS ? n : ORDERED_WORK_THREADS;
        w->count = w->wanted + MORE_ITEMS;
        w->items = calloc(w->count, calls->item_size);
        w->done = calloc(w->count, sizeof *w->done);
    }
    if (!w || !w->items || !w->done) {
        if (w) {
            free(w->items);
            free(w->done);
        }
        free(w);
        return error_memory(e, NULL, "for work by several threads");
    }
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->work, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&w->result, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *out = w;
    return OK;
}

static void *work(void *argument)
{
    struct ordered_work *w = argument;

    pthread_mutex_lock(&w->lock);
    for (;;) {
        size_t number;

        while (!w->stop && w->begun == w->given)
            pthread_cond_wait(&w->work, &w->lock);
        if (w->stop)
            break;
        number = w->begun++;
        pthread_mutex_unlock(&w->lock);
        w->calls.run(w->calls.context, item_at(w, number));
        pthread_mutex_lock(&w->lock);
        w->done[number % w->count] = 1;
        pthread_cond_signal(&w->result);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Signals are for the threads of the program. */
static void start_threads(struct ordered_work *w)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (w->thread_count < w->wanted && !pthread_create(&w->threads[w->thread_count], NULL, work, w))
        w->thread_count++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Runs the items that were given before there was a thread: the first one, or all if none can be started. */
static void run_here(struct ordered_work *w)
{
    for (; w->begun < w->filled; w->begun++) {
        w->calls.run(w->calls.context, item_at(w, w->begun));
        w->done[w->begun % w->count] = 1;
    }
    w->given = w->filled;
}

static struct timespec soon(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += WAITING_NS;
    if (t.tv_nsec >= 1000 * 1000 * 1000) {
        t.tv_nsec -= 1000 * 1000 * 1000;
        t.tv_sec++;
    }
    return t;
}

static void wait_for_oldest(struct ordered_work *w, const int *done)
{
    pthread_mutex_lock(&w->lock);
    while (!*done) {
        struct timespec t = { 0 };

        if (!w->calls.waiting) {
            pthread_cond_wait(&w->result, &w->lock);
            continue;
        }
        t = soon();
        if (pthread_cond_timedwait(&w->result, &w->lock, &t) == ETIMEDOUT && !*done) {
            pthread_mutex_unlock(&w->lock);
            w->calls.waiting(w->calls.context, item_at(w, w->taken));
            pthread_mutex_lock(&w->lock);
        }
    }
    pthread_mutex_unlock(&w->lock);
}

static void take_oldest(struct ordered_work *w)
{
    int *done = &w->done[w->taken % w->count];

    if (w->thread_count)
        wait_for_oldest(w, done);
    *done = 0;
    w->calls.take(w->calls.context, item_at(w, w->taken));
    w->taken++;
}

size_t ordered_work_threads(const struct ordered_work *w)
{
    return w->wanted;
}

void *ordered_work_item(struct ordered_work *w)
{
    return item_at(w, w->filled);
}

void ordered_work_give(struct ordered_work *w)
{
    w->filled++;
    if (!w->thread_count && w->wanted && w->filled > 1)
        start_threads(w);
    if (w->thread_count) {
        pthread_mutex_lock(&w->lock);
        w->given = w->filled;
        pthread_cond_broadcast(&w->work);
        pthread_mutex_unlock(&w->lock);
    } else if (!w->wanted || w->filled > 1) {
        run_here(w);
    }
    if (w->filled == w->taken + w->count)
        take_oldest(w);
}

void ordered_work_finish(struct ordered_work *w)
{
    if (!w->thread_count)
        run_here(w);
    while (w->taken < w->filled)
        take_oldest(w);
}

void ordered_work_close(struct ordered_work *w, void (*release)(void *context, void *item))
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->stop = 1;
    pthread_cond_broadcast(&w->work);
    pthread_mutex_unlock(&w->lock);
    for (size_t i = 0; i < w->thread_count; i++)
        pthread_join(w->threads[i], NULL);
    for (size_t i = 0; release && i < w->count; i++)
        release(w->calls.context, w->items + i * w->calls.item_size);
    pthread_cond_destroy(&w->result);
    pthread_cond_destroy(&w->work);
    pthread_mutex_destroy(&w->lock);
    free(w->items);
    free(w->done);
    free(w);
}
