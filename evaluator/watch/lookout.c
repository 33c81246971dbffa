#include "evaluator/watch/lookout.h"

#include "base/array.h"
#include "base/clock.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct heard {
    struct watcher_news news; /* points to what follows, which is owned */
    struct checkpoint_identity *checkpoint;
    char *text;
};

/* Under the lock of its lookout, but for the watcher, which is of whoever holds the post. */
struct lookout_post {
    struct lookout *lookout;
    struct watcher *watcher;
    int held;   /* somebody looks, or has called lookout_hold() */
    int wanted; /* lookout_hold() waits */
    int resting;
    double due; /* monotonic: the next look, whatever the notifier says */
    size_t undecided;
    struct heard **heard;
    size_t count, capacity;
    struct error error; /* why there is no looking any more */
};

struct lookout {
    pthread_mutex_t lock;
    pthread_cond_t released;
    struct lookout_post **posts;
    size_t count, capacity;
    size_t changes; /* of the posts */
    int stopping;
    int wake_fd; /* the thread is to look at its posts again */
    int news_fd; /* the caller is to ask for the news */
    pthread_t thread;
};

static void ring(int fd)
{
    const uint64_t one = 1;
    ssize_t ignored = write(fd, &one, sizeof one); /* one that is full is readable all the same */

    (void)ignored;
}

static void silence(int fd)
{
    uint64_t count;
    ssize_t ignored = read(fd, &count, sizeof count);

    (void)ignored;
}

/* ---- news -------------------------------------------------------------------------------------------------------- */

static void heard_free(struct heard *h)
{
    if (!h)
        return;
    free(h->checkpoint);
    free(h->text);
    free(h);
}

static struct heard *heard_copy(const struct watcher_news *news)
{
    struct heard *h = calloc(1, sizeof *h);

    if (!h)
        return NULL;
    h->news = *news;
    if (news->checkpoint && (h->news.checkpoint = h->checkpoint = malloc(sizeof *h->checkpoint)))
        *h->checkpoint = *news->checkpoint;
    if (news->text)
        h->news.text = h->text = strdup(news->text);
    if (!h->news.checkpoint == !news->checkpoint && !h->news.text == !news->text)
        return h;
    heard_free(h);
    return NULL;
}

static void hear(void *context, const struct watcher_news *news)
{
    struct lookout_post *p = context;
    struct heard *h = heard_copy(news);

    pthread_mutex_lock(&p->lookout->lock);
    if (h && ARRAY_ROOM(p->heard, p->capacity, p->count + 1)) {
        p->heard[p->count++] = h;
    } else {
        heard_free(h);
        error_memory(&p->error, NULL, "for what came to light");
    }
    pthread_mutex_unlock(&p->lookout->lock);
}

int lookout_tell(struct lookout_post *p, watcher_tell *tell, void *context, size_t *undecided, struct error *e)
{
    struct heard **heard;
    size_t count;
    int rc;

    pthread_mutex_lock(&p->lookout->lock);
    heard = p->heard;
    count = p->count;
    p->heard = NULL;
    p->count = p->capacity = 0;
    *undecided = p->undecided;
    rc = error_copy(e, &p->error);
    pthread_mutex_unlock(&p->lookout->lock);
    for (size_t i = 0; i < count; i++) {
        tell(context, &heard[i]->news);
        heard_free(heard[i]);
    }
    free(heard);
    return rc;
}

/* ---- whose a watcher is ------------------------------------------------------------------------------------------ */

/* rc: of a look of the holder, in e. */
static void give_up(struct lookout_post *p, int rc, const struct error *e)
{
    struct lookout *l = p->lookout;
    const double due = clock_monotonic() + watcher_due(p->watcher);
    const size_t undecided = watcher_undecided(p->watcher);

    pthread_mutex_lock(&l->lock);
    p->due = due;
    p->undecided = undecided;
    p->held = 0;
    if (rc != OK)
        p->error = *e;
    if (p->wanted)
        pthread_cond_broadcast(&l->released);
    pthread_mutex_unlock(&l->lock);
}

struct watcher *lookout_hold(struct lookout_post *p)
{
    struct lookout *l = p->lookout;

    pthread_mutex_lock(&l->lock);
    p->wanted = 1;
    while (p->held)
        pthread_cond_wait(&l->released, &l->lock);
    p->wanted = 0;
    p->held = 1;
    pthread_mutex_unlock(&l->lock);
    return p->watcher;
}

void lookout_release(struct lookout_post *p)
{
    give_up(p, OK, NULL);
    ring(p->lookout->wake_fd);
}

void lookout_rest(struct lookout_post *p)
{
    pthread_mutex_lock(&p->lookout->lock);
    p->resting = 1;
    pthread_mutex_unlock(&p->lookout->lock);
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

/* Without the lock. The news of one that rests is heard no more, and would keep the thread awake. */
static void attend(struct lookout_post *p, int resting)
{
    const int should = watcher_should_look(p->watcher), news_fd = p->lookout->news_fd;
    struct error why = { 0 };

    if (!should || resting) {
        give_up(p, OK, NULL);
        return;
    }
    give_up(p, watcher_look(p->watcher, &why), &why); /* p may be closed from now on */
    ring(news_fd);
}

/* Under the lock. A post that its owner holds, or waits for, is left out: its release calls for another round. 0: the
 * posts have changed meanwhile, so some may have been left out as well. */
static int go_round(struct lookout *l)
{
    const size_t changes = l->changes;

    for (size_t i = 0; i < l->count && !l->stopping; i++) {
        struct lookout_post *p = l->posts[i];
        const int resting = p->resting || p->error.code;

        if (p->held || p->wanted)
            continue;
        p->held = 1;
        pthread_mutex_unlock(&l->lock);
        attend(p, resting);
        pthread_mutex_lock(&l->lock);
        if (l->changes != changes)
            return 0;
    }
    return 1;
}

/* Under the lock, which it gives up meanwhile: waits until a directory has news or is due, or the thread is woken. A
 * post that its owner holds is not waited for: its release wakes the thread. */
static void sleep_on(struct lookout *l)
{
    struct pollfd fds[2] = { { .fd = l->wake_fd, .events = POLLIN }, { .fd = -1, .events = POLLIN } };
    double due = INFINITY;

    for (size_t i = 0; i < l->count; i++) {
        const struct lookout_post *p = l->posts[i];

        if (p->resting || p->error.code || p->held)
            continue;
        if (fds[1].fd < 0)
            fds[1].fd = watcher_descriptor(p->watcher);
        due = fmin(due, p->due);
    }
    due -= clock_monotonic();
    pthread_mutex_unlock(&l->lock);
    poll(fds, 2, due > 0 ? (int)ceil(fmin(due, 1e6) * 1000) : 0);
    silence(l->wake_fd);
    pthread_mutex_lock(&l->lock);
}

static void *lookout_run(void *argument)
{
    struct lookout *l = argument;

    pthread_mutex_lock(&l->lock);
    while (!l->stopping)
        if (go_round(l))
            sleep_on(l);
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static void lookout_free(struct lookout *l)
{
    if (l->wake_fd >= 0)
        close(l->wake_fd);
    if (l->news_fd >= 0)
        close(l->news_fd);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->released);
    free(l->posts);
    free(l);
}

int lookout_start(struct lookout **out, struct error *e)
{
    struct lookout *l = calloc(1, sizeof *l);
    sigset_t all, before;

    *out = NULL;
    if (!l)
        return error_memory(e, NULL, "to look at directories");
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->released, NULL);
    l->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    l->news_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (l->wake_fd >= 0 && l->news_fd >= 0 && !(errno = pthread_create(&l->thread, NULL, lookout_run, l)))
        *out = l;
    else
        error_system(e, "cannot look at directories in a thread");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (*out)
        return OK;
    lookout_free(l);
    return ERR_IO;
}

void lookout_stop(struct lookout *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->stopping = 1;
    pthread_mutex_unlock(&l->lock);
    ring(l->wake_fd);
    pthread_join(l->thread, NULL);
    lookout_free(l);
}

int lookout_descriptor(const struct lookout *l)
{
    return l->news_fd;
}

void lookout_heard(struct lookout *l)
{
    silence(l->news_fd);
}

/* A post that is open is held. */
static void post_free(struct lookout_post *p)
{
    watcher_close(p->watcher);
    for (size_t i = 0; i < p->count; i++)
        heard_free(p->heard[i]);
    free(p->heard);
    free(p);
}

static int post_add(struct lookout *l, struct lookout_post *p, struct error *e)
{
    int rc = OK;

    pthread_mutex_lock(&l->lock);
    if (ARRAY_ROOM(l->posts, l->capacity, l->count + 1)) {
        l->posts[l->count++] = p;
        l->changes++;
    } else {
        rc = error_memory(e, NULL, "for %zu directories", l->count + 1);
    }
    pthread_mutex_unlock(&l->lock);
    return rc;
}

int lookout_open(struct lookout_post **out, struct lookout *l, const char *directory,
                 const struct watcher_options *options, struct queue *queue, struct error *e)
{
    struct lookout_post *p = calloc(1, sizeof *p);
    int rc;

    *out = NULL;
    if (!p)
        return error_memory(e, directory, "to watch it");
    p->lookout = l;
    p->held = 1;
    if ((rc = watcher_open(&p->watcher, directory, options, queue, hear, p, e)) != OK ||
        (rc = watcher_look(p->watcher, e)) != OK || (rc = post_add(l, p, e)) != OK) {
        post_free(p);
        return rc;
    }
    lookout_release(p);
    *out = p;
    return OK;
}

void lookout_close(struct lookout_post *p)
{
    struct lookout *l;
    size_t i = 0;

    if (!p)
        return;
    l = p->lookout;
    lookout_hold(p);
    pthread_mutex_lock(&l->lock);
    while (l->posts[i] != p)
        i++;
    memmove(l->posts + i, l->posts + i + 1, (--l->count - i) * sizeof *l->posts);
    l->changes++;
    pthread_mutex_unlock(&l->lock);
    post_free(p);
}
