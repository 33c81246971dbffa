#include "eventlog/server/workers.h"

#include <pthread.h>

void workers_run(size_t count, void *(*work)(void *context), void *context)
{
    const size_t others = count < 1 ? 0 : (count < WORKERS_MOST ? count : WORKERS_MOST) - 1;
    pthread_t threads[WORKERS_MOST];
    size_t started = 0;

    while (started < others && pthread_create(&threads[started], NULL, work, context) == 0)
        started++;
    work(context);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}
