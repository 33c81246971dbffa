#include "tests/trainer/threads.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* sent or to be received; a handle is a pointer to one */
struct letter {
    struct letter *next; /* of those sent and not yet received, in order */
    struct letter *older, *newer;
    int from, to, tag, incoming, taken;
    const void *bytes;
    void *room;
    size_t size;
};

struct thread_post {
    pthread_mutex_t lock;
    struct letter *first, *newest; /* newest: of all, which may be given up by who waits for them */
    int size;
};

struct thread_participant {
    struct participants base;
    struct thread_post *post;
};

static struct letter *letter_of(uint64_t handle)
{
    return (struct letter *)(uintptr_t)handle;
}

static struct thread_post *post_of(struct participants *p)
{
    return ((struct thread_participant *)p)->post;
}

static int thread_letter(struct thread_post *post, const struct letter *l, uint64_t *handle)
{
    struct letter *made = malloc(sizeof *made);

    if (!made)
        abort();
    *made = *l;
    pthread_mutex_lock(&post->lock);
    made->older = post->newest;
    if (post->newest)
        post->newest->newer = made;
    post->newest = made;
    pthread_mutex_unlock(&post->lock);
    *handle = (uintptr_t)made;
    return OK;
}

static void letter_free(struct thread_post *post, struct letter *l)
{
    pthread_mutex_lock(&post->lock);
    if (l->older)
        l->older->newer = l->newer;
    *(l->newer ? &l->newer->older : &post->newest) = l->older;
    pthread_mutex_unlock(&post->lock);
    free(l);
}

static int thread_send(struct participants *p, int to, int tag, const void *bytes, size_t n, uint64_t *handle,
                       struct error *e)
{
    struct thread_post *post = post_of(p);
    struct letter **at = &post->first;

    (void)e;
    thread_letter(post, &(struct letter){ .from = p->rank, .to = to, .tag = tag, .bytes = bytes, .size = n }, handle);
    pthread_mutex_lock(&post->lock);
    while (*at)
        at = &(*at)->next;
    *at = letter_of(*handle);
    pthread_mutex_unlock(&post->lock);
    return OK;
}

static int thread_receive(struct participants *p, int from, int tag, void *bytes, size_t n, uint64_t *handle,
                          struct error *e)
{
    (void)e;
    return thread_letter(
        post_of(p),
        &(struct letter){ .from = from, .to = p->rank, .tag = tag, .incoming = 1, .room = bytes, .size = n }, handle);
}

/* Takes the first letter for l out of the post. */
static int thread_take(struct thread_post *post, const struct letter *l, int *source)
{
    for (struct letter **at = &post->first; *at; at = &(*at)->next) {
        struct letter *sent = *at;

        if (sent->to != l->to || sent->tag != l->tag || (l->from != PARTICIPANT_ANY && sent->from != l->from))
            continue;
        if (sent->size > l->size)
            abort(); /* cut off: a defect */
        memcpy(l->room, sent->bytes, sent->size);
        *source = sent->from;
        *at = sent->next;
        sent->taken = 1;
        return 1;
    }
    return 0;
}

static int thread_done(struct participants *p, uint64_t *handle, int *source, struct error *e)
{
    struct thread_post *post = post_of(p);
    struct letter *l = letter_of(*handle);
    int done;

    (void)e;
    *source = -1;
    pthread_mutex_lock(&post->lock);
    done = l->incoming ? thread_take(post, l, source) : l->taken;
    pthread_mutex_unlock(&post->lock);
    if (done)
        letter_free(post, l);
    return done;
}

static void thread_cancel(struct participants *p, uint64_t *handle)
{
    letter_free(post_of(p), letter_of(*handle));
}

static void thread_abort(struct participants *p, int status)
{
    (void)p;
    (void)status;
    abort();
}

static void thread_end(struct participants *p)
{
    free(p);
}

static const struct participants_operations operations = {
    .send = thread_send,
    .receive = thread_receive,
    .done = thread_done,
    .cancel = thread_cancel,
    .abort = thread_abort,
    .end = thread_end,
};

struct thread_post *thread_post_new(int size)
{
    struct thread_post *p = calloc(1, sizeof *p);

    if (!p || pthread_mutex_init(&p->lock, NULL) != 0)
        abort();
    p->size = size;
    return p;
}

void thread_post_free(struct thread_post *p)
{
    for (struct letter *l = p->newest, *older; l; l = older) {
        older = l->older;
        free(l);
    }
    pthread_mutex_destroy(&p->lock);
    free(p);
}

struct participants *thread_participant(struct thread_post *p, int rank)
{
    struct thread_participant *t = calloc(1, sizeof *t);

    if (!t)
        abort();
    t->base = (struct participants){ &operations, rank, p->size };
    t->post = p;
    return &t->base;
}
