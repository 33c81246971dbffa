#include "base/unfinished.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A signal may come at any time, so entries stay in the list and are reused. */
struct unfinished {
    struct unfinished *next;
    char *path;
    int directory;
    atomic_int begun;
};

static struct unfinished *_Atomic all; /* signals are per process, so this is, too */
static size_t spare;                   /* of them, not begun */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

static struct unfinished *unfinished_place(void)
{
    struct unfinished *u = all;

    if (spare) {
        while (u->begun)
            u = u->next;
        spare--;
    } else if ((u = calloc(1, sizeof *u))) {
        u->next = all;
        all = u;
    }
    return u;
}

struct unfinished *unfinished_begin(int directory, const char *path)
{
    char *copy = strdup(path);
    struct unfinished *u;

    pthread_mutex_lock(&changing);
    if (copy && (u = unfinished_place())) {
        free(u->path);
        u->path = copy;
        u->directory = directory;
        u->begun = 1;
    } else {
        free(copy);
        u = NULL;
    }
    pthread_mutex_unlock(&changing);
    return u;
}

void unfinished_end(struct unfinished *u)
{
    if (!u)
        return;
    pthread_mutex_lock(&changing);
    u->begun = 0;
    spare++;
    pthread_mutex_unlock(&changing);
}

static void remove_all(int number)
{
    for (struct unfinished *u = all; u; u = u->next)
        if (u->begun)
            unlinkat(u->directory, u->path, 0);
    raise(number); /* whose default action is restored */
}

void unfinished_remove_at_signals(void)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
    const struct sigaction action = { .sa_handler = remove_all, .sa_flags = (int)(SA_RESETHAND | SA_NODEFER) };
    struct sigaction before;

    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(signals[i], &action, NULL);
}
