#include "eventlog/server/workers.h"

#include <pthread.h>
#include <sys/resource.h>

/* A third of the weight that threads of the usual priority have. */
enum { NICER_BY = 5 };

struct workers {
    void *(*work)(void *context);
    void *context;
};

/* Linux gives each thread a priority of its own, which it cannot raise again; elsewhere nothing changes. */
static void *work_behind(void *context)
{
    const struct workers *w = context;

#ifdef __linux__
    setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + NICER_BY);
#endif
    return w->work(w->context);
}

void workers_run(size_t count, enum worker_rank rank, void *(*work)(void *context), void *context)
{
    struct workers behind = { work, context };
    const size_t most = count < 1 ? 1 : count < WORKERS_MOST ? count : WORKERS_MOST;
    /* this thread is one of them, unless they get a priority that it would keep */
    const size_t wanted = rank == WORKERS_BEHIND ? most : most - 1;
    pthread_t threads[WORKERS_MOST];
    size_t started = 0;

    while (started < wanted && pthread_create(&threads[started], NULL, rank == WORKERS_BEHIND ? work_behind : work,
                                              rank == WORKERS_BEHIND ? &behind : context) == 0)
        started++;
    if (rank == WORKERS_EQUAL || !started)
        work(context);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}
