#include "evaluator/score/scoring.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct worker {
    struct scoring *scoring;
    struct network *network;
    struct classification counts;
    void *room;      /* (batch, width) floats or int32_t */
    float *features; /* (batch, features); NULL: none */
    float *logits;   /* (batch, labels of a sample, classes) */
    pthread_t thread;
    int started;
};

struct scoring {
    struct scoring_options options;
    struct scoring_source source;
    struct worker *workers; /* (threads); the first is the caller's */
    double *losses;         /* (examples, labels of a sample) cross entropy of each */
    size_t batches;
    atomic_size_t next; /* batch to be taken */
    pthread_mutex_t lock;
    pthread_cond_t begin, done;
    int has_lock, ending; /* this and all below: under the lock */
    unsigned round;       /* number of evaluations begun */
    int busy;             /* helpers that have not finished this round */
};

static void score(struct worker *w, size_t batch)
{
    const struct scoring *s = w->scoring;
    const size_t size = (size_t)s->options.batch_size, first = batch * size;
    const size_t left = s->source.examples - first, count = left < size ? left : size;
    const struct model *m = s->options.model;
    const size_t classes = (size_t)m->classes, each = (size_t)model_labels(m);
    struct batch b = { .count = (int)count, .field_count = FIELD_INPUT + 1 };

    b.fields[FIELD_INPUT] = model_input(m, s->source.input(s->source.context, first, count, w->room), (int)count);
    if (w->features) {
        s->source.features(s->source.context, first, count, w->features);
        b.fields[FIELD_FEATURES] = (struct field){ w->features, ELEMENT_FLOAT32, 2, { (int)count, m->features } };
        b.field_count = FIELD_FEATURES + 1;
    }
    network_infer_batch(w->network, &b, w->logits);
    for (size_t i = 0, k = first * each; i < count * each; i++, k++) {
        const int32_t label = s->source.labels[k];

        s->losses[k] = label < 0 ? 0 : classification_add(&w->counts, w->logits + i * classes, label);
    }
}

/* Does one batch; 0 if there was none left. */
static int scoring_take(struct worker *w)
{
    size_t batch = atomic_fetch_add(&w->scoring->next, 1);

    if (batch >= w->scoring->batches)
        return 0;
    score(w, batch);
    return 1;
}

static void copy_weights(struct network *to, struct network *from)
{
    memcpy(network_parameters(to), network_parameters(from), network_parameter_count(from) * sizeof(real));
    memcpy(network_statistics(to), network_statistics(from), network_statistic_count(from) * sizeof(real));
}

static void *help(void *argument)
{
    struct worker *w = argument;
    struct scoring *s = w->scoring;
    unsigned round = 0;

    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->ending && s->round == round)
            pthread_cond_wait(&s->begin, &s->lock);
        if (s->ending)
            break;
        round = s->round;
        pthread_mutex_unlock(&s->lock);
        while (scoring_take(w))
            ;
        pthread_mutex_lock(&s->lock);
        if (!--s->busy)
            pthread_cond_signal(&s->done);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void wait_for_helpers(struct scoring *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->busy)
        pthread_cond_wait(&s->done, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static int make_worker(struct scoring *s, struct worker *w, struct error *e)
{
    const struct model *m = s->options.model;
    const size_t batch = (size_t)s->options.batch_size;
    const size_t width = (size_t)m->height * (size_t)m->width * (size_t)m->channels;
    int rc;

    w->scoring = s;
    if ((rc = network_new_for_inference(&w->network, m, s->options.batch_size, e)) != OK ||
        (rc = classification_init(&w->counts, m->classes, m->ties_are_correct, s->options.metrics, e)) != OK)
        return rc;
    if (width > SIZE_MAX / sizeof(float) / batch - 64)
        return error_set(e, ERR_ARG, "model %s: batches of %zu images are too large", m->name, batch);
    w->room = aligned_alloc(64, (batch * width * sizeof(float) + 63) / 64 * 64);
    w->logits = calloc(batch * (size_t)model_labels(m), (size_t)m->classes * sizeof *w->logits);
    if (m->features)
        w->features = calloc(batch, (size_t)m->features * sizeof *w->features);
    return w->room && w->logits && (w->features || !m->features)
               ? OK
               : error_memory(e, NULL, "for batches of %zu examples", batch);
}

int scoring_new(struct scoring **out, const struct scoring_options *options, const struct scoring_source *source,
                struct error *e)
{
    struct scoring *s = calloc(1, sizeof *s);
    int rc = OK;

    if (!s)
        return error_memory(e, NULL, "for the evaluation");
    s->options = *options;
    s->source = *source;
    s->batches = (source->examples + (size_t)options->batch_size - 1) / (size_t)options->batch_size;
    s->workers = calloc((size_t)options->threads, sizeof *s->workers);
    s->losses = calloc(source->examples, (size_t)model_labels(options->model) * sizeof *s->losses);
    if (!s->workers || !s->losses) {
        rc = error_memory(e, NULL, "for the losses of %zu examples", source->examples);
        goto fail;
    }
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->begin, NULL);
    pthread_cond_init(&s->done, NULL);
    s->has_lock = 1;
    for (int i = 0; i < options->threads; i++)
        if ((rc = make_worker(s, &s->workers[i], e)) != OK)
            goto fail;
    for (int i = 1; i < options->threads; i++) {
        if (pthread_create(&s->workers[i].thread, NULL, help, &s->workers[i])) {
            rc = error_set(e, ERR_IO, "only %d of %d threads could be started", i, options->threads);
            goto fail;
        }
        s->workers[i].started = 1;
    }
    *out = s;
    return OK;
fail:
    scoring_free(s);
    return rc;
}

void scoring_free(struct scoring *s)
{
    if (!s)
        return;
    if (s->has_lock) {
        atomic_store(&s->next, s->batches);
        pthread_mutex_lock(&s->lock);
        s->ending = 1;
        pthread_cond_broadcast(&s->begin);
        pthread_mutex_unlock(&s->lock);
    }
    for (int i = 0; s->workers && i < s->options.threads; i++) {
        struct worker *w = &s->workers[i];

        if (w->started)
            pthread_join(w->thread, NULL);
        network_free(w->network);
        classification_release(&w->counts);
        free(w->room);
        free(w->features);
        free(w->logits);
    }
    if (s->has_lock) {
        pthread_mutex_destroy(&s->lock);
        pthread_cond_destroy(&s->begin);
        pthread_cond_destroy(&s->done);
    }
    free(s->workers);
    free(s->losses);
    free(s);
}

struct network *scoring_network(struct scoring *s)
{
    return s->workers[0].network;
}

void scoring_begin(struct scoring *s)
{
    for (int i = 0; i < s->options.threads; i++) {
        classification_clear(&s->workers[i].counts);
        if (i)
            copy_weights(s->workers[i].network, s->workers[0].network);
    }
    atomic_store(&s->next, 0);
    pthread_mutex_lock(&s->lock);
    s->round++;
    s->busy = s->options.threads - 1;
    pthread_cond_broadcast(&s->begin);
    pthread_mutex_unlock(&s->lock);
}

int scoring_step(struct scoring *s)
{
    if (scoring_take(&s->workers[0]))
        return 1;
    wait_for_helpers(s);
    return 0;
}

double scoring_share(const struct scoring *s)
{
    const size_t next = atomic_load(&s->next);

    return next < s->batches ? (double)next / (double)s->batches : 1;
}

void scoring_end(struct scoring *s, const struct classification **counts, double *cross_entropy)
{
    double sum = 0;

    atomic_store(&s->next, s->batches); /* cancelled: nobody takes another batch */
    wait_for_helpers(s);
    for (int i = 1; i < s->options.threads; i++)
        classification_merge(&s->workers[0].counts, &s->workers[i].counts);
    for (size_t i = 0; i < s->source.examples * (size_t)model_labels(s->options.model); i++)
        sum += s->losses[i];
    if (counts)
        *counts = &s->workers[0].counts;
    if (cross_entropy)
        *cross_entropy = sum;
}
