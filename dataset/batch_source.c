#include "dataset/batch_source.h"

#include "base/clock.h"
#include "base/random.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- permutation ------------------------------------------------------------------------------------------------- */

void permutation_fill(uint32_t *order, size_t count, uint64_t seed, uint32_t worker, int64_t epoch)
{
    /* "Inside-out": element i goes to an index drawn from 0..i, and the element there moves to index i. */
    for (size_t i = 0; i < count; i++) {
        struct random r;
        size_t place;

        random_init(&r, seed, RANDOM_SHUFFLE, (uint64_t)epoch, (uint64_t)worker << 32 | i);
        place = (size_t)random_below(&r, (uint64_t)i + 1);
        if (place != i)
            order[i] = order[place];
        order[place] = (uint32_t)i;
    }
}

/* ---- batch source ------------------------------------------------------------------------------------------------ */

enum { AHEAD_DEFAULT = 3, ELEMENT_BYTES = 4, PRODUCERS_MAX = 8 };

struct slot {
    struct batch batch; /* points into the three arrays */
    void *input;        /* floats or int32 */
    int32_t *labels;
    float *weights, *features; /* of captions; else NULL */
    int64_t *samples;
    int ready;          /* under lock: the batch that was claimed last is prepared */
    struct error error; /* or could not be */
};

/* A thread that prepares batches. */
struct producer {
    struct batch_source *source;
    pthread_t thread;
    uint32_t *order; /* the permutation of epoch order_epoch */
    int64_t order_epoch;
    void *room; /* for a sample that is read from disk */
};

/*
 * A ring of slots between the producers and one consumer (the caller of next). Batch number k, counted from 0 at
 * first_step, lives in slot k mod slot_count. Three counters say whose it is:
 *   released <= k < made   prepared, or borrowed by the caller
 *   made <= k < claimed    a producer fills it, or has filled it before another one filled the batch before it
 *   claimed <= k           a producer may claim it once k < released + slot_count
 * A producer touches a slot without the lock while it is its own, so the lock is held for moments only. Which producer
 * fills a batch does not matter: a batch is a function of its number.
 */
struct batch_source {
    const struct dataset *data;
    struct transform transform;
    struct shard shard;
    int batch_size, workers;
    int64_t together, first;
    uint64_t seed;
    int64_t first_step;
    struct field field; /* template of a batch's input, without data */
    size_t width;       /* its elements a sample, of ELEMENT_BYTES each */

    int slot_count;
    struct slot *slots;
    char *input;
    int32_t *labels;
    float *weights, *features;
    int64_t *samples;

    struct producer *producers;
    int producer_count, running; /* running: those whose thread was started */
    pthread_mutex_t lock;
    pthread_cond_t filled, freed;
    int64_t claimed, made, released; /* under lock */
    int64_t taken;                   /* the caller's own: batches returned */
    atomic_int stop;
};

/* The record at this index of the endless order: epoch after epoch, each a permutation. */
static size_t record_at(struct producer *p, int64_t place)
{
    struct batch_source *s = p->source;
    int64_t count = (int64_t)s->data->count, epoch = place / count;

    if (epoch != p->order_epoch) {
        uint32_t worker = s->shard.kind == SHARD_RECORDS ? 0 : (uint32_t)s->shard.index;

        permutation_fill(p->order, s->data->count, s->seed, worker, epoch);
        p->order_epoch = epoch;
    }
    return p->order[place % count];
}

/* Labels, their weights and the features of a sample. */
static int take_labels(const struct batch_source *s, struct slot *slot, size_t k, size_t record, struct error *e)
{
    const size_t labels = dataset_labels(s->data), features = (size_t)s->data->features;

    for (size_t l = k * labels; l < (k + 1) * labels; l++) {
        const int64_t label = field_integer(&s->data->labels, record * labels + l - k * labels);

        slot->labels[l] = label < 0 ? 0 : (int32_t)label;
        if (slot->weights)
            slot->weights[l] = label < 0 ? 0 : 1;
    }
    return features ? dataset_features(s->data, record, slot->features + k * features, e) : OK;
}

/* Sample indices of step t: worker i of n takes every n-th of [t n B, (t + 1) n B), from i on, or B that follow each
 * other of [t G, (t + 1) G); they are unique over workers and steps. With shared records they are places of the endless
 * order; with files of its own, or with all records for itself, it takes places [t B, (t + 1) B) of its own order. */
static int prepare(struct producer *p, struct slot *slot, int64_t step, struct error *e)
{
    struct batch_source *s = p->source;
    const int64_t n = s->shard.count, size = s->batch_size, count = slot->batch.count;

    slot->batch.step = step;
    for (int64_t k = 0; k < count && !atomic_load_explicit(&s->stop, memory_order_relaxed); k++) {
        const int64_t i = s->shard.index + k / size, j = k % size;
        const int64_t sample = s->together ? step * s->together + s->first + k : (step * size + j) * n + i;
        const size_t wanted = record_at(p, s->shard.kind == SHARD_RECORDS ? sample : step * size + j);
        const void *input;
        size_t record;
        int rc = dataset_read(s->data, wanted, p->room, &input, &record, e);

        if (rc < 0 || (rc = take_labels(s, slot, (size_t)k, record, e)) < 0)
            return rc;
        slot->samples[k] = sample;
        if (s->transform.apply)
            s->transform.apply(s->data, input, s->seed, step, sample, (float *)slot->input + (size_t)k * s->width);
        else
            memcpy((int32_t *)slot->input + (size_t)k * s->width, input, s->width * ELEMENT_BYTES);
    }
    return OK;
}

static void *produce(void *context)
{
    struct producer *p = context;
    struct batch_source *s = p->source;
    struct slot *slot;
    int64_t k;

    for (;;) {
        pthread_mutex_lock(&s->lock);
        while (s->claimed >= s->released + s->slot_count && !atomic_load(&s->stop))
            pthread_cond_wait(&s->freed, &s->lock);
        k = s->claimed++;
        slot = &s->slots[k % s->slot_count];
        slot->ready = 0;
        pthread_mutex_unlock(&s->lock);
        slot->error.code = OK;
        if (!atomic_load(&s->stop))
            prepare(p, slot, s->first_step + k, &slot->error);
        if (atomic_load(&s->stop))
            return NULL;
        pthread_mutex_lock(&s->lock);
        slot->ready = 1;
        while (s->made < s->claimed && s->slots[s->made % s->slot_count].ready)
            s->made++;
        pthread_cond_signal(&s->filled);
        pthread_mutex_unlock(&s->lock);
    }
}

static int check_options(const struct dataset *d, const struct batch_source_options *o, struct error *e)
{
    const int64_t whole = (int64_t)o->batch_size * (o->workers > 0 ? o->workers : 1);

    if (o->batch_size < 1)
        return error_set(e, ERR_ARG, "batch size %d: must be at least 1", o->batch_size);
    if (o->shard.count < 1 || o->shard.index < 0 || o->shard.index >= o->shard.count)
        return error_set(e, ERR_ARG, "worker %d of %d: must be from 0 to the number of workers less 1", o->shard.index,
                         o->shard.count);
    if (o->workers < 0 || o->workers > o->shard.count - o->shard.index)
        return error_set(e, ERR_ARG, "batches of %d workers, from worker %d on, but there are %d", o->workers,
                         o->shard.index, o->shard.count);
    if (o->workers > 1 && o->shard.kind != SHARD_RECORDS)
        return error_set(e, ERR_ARG, "batches of %d workers: --shard files and none are for one worker per process",
                         o->workers);
    if (o->batch_size > INT32_MAX / (o->workers + 1))
        return error_set(e, ERR_ARG, "batch size %d is out of range for %d workers", o->batch_size, o->workers);
    if (o->together && (o->first < 0 || o->first > o->together - whole))
        return error_set(e, ERR_ARG, "samples %lld to %lld of the %lld of a step: must be some of them",
                         (long long)o->first, (long long)(o->first + whole - 1), (long long)o->together);
    if (o->first_step < 0 || o->first_step > INT64_MAX / 4 / o->batch_size / o->shard.count ||
        (o->together && o->first_step > INT64_MAX / 4 / o->together))
        return error_set(e, ERR_ARG, "step %lld is out of range for batches of %d on %d workers",
                         (long long)o->first_step, o->batch_size, o->shard.count);
    if (d->count == 0 || d->count > UINT32_MAX)
        return error_set(e, ERR_ARG, "%s has %zu samples; must be 1 to 2^32 - 1", d->name, d->count);
    return transform_check(o->transform, d, e);
}

static int start_threads(struct batch_source *s)
{
    sigset_t all, before;
    int rc = 0;

    /* Blocks signals, which are for the program's own threads: no handler may run here, and no wait there may miss
     * one. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (s->running < s->producer_count && rc == 0) {
        struct producer *p = &s->producers[s->running];

        rc = pthread_create(&p->thread, NULL, produce, p);
        s->running += rc == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

/* One for data in memory; to read and decode, as many as the process has cores, within reason. */
static int choose_producers(const struct dataset *d)
{
    cpu_set_t cores;

    if (!d->stream || sched_getaffinity(0, sizeof cores, &cores) < 0)
        return 1;
    return CPU_COUNT(&cores) < PRODUCERS_MAX ? CPU_COUNT(&cores) : PRODUCERS_MAX;
}

static int allocate_producers(struct batch_source *s)
{
    if (!(s->producers = calloc((size_t)s->producer_count, sizeof *s->producers)))
        return 0;
    for (int i = 0; i < s->producer_count; i++) {
        struct producer *p = &s->producers[i];

        p->source = s;
        p->order_epoch = -1;
        p->order = malloc(s->data->count * sizeof *p->order);
        p->room = s->data->stream ? malloc(dataset_bytes(s->data)) : NULL;
        if (!p->order || (s->data->stream && !p->room))
            return 0;
    }
    return 1;
}

/* Beside input and labels: what captions have. */
static void add_fields(struct slot *slot, int samples, size_t labels, size_t features)
{
    slot->batch.fields[FIELD_WEIGHTS] = (struct field){
        slot->weights, ELEMENT_FLOAT32, 2, { samples, (int32_t)labels }
    };
    slot->batch.fields[FIELD_FEATURES] = (struct field){
        slot->features, ELEMENT_FLOAT32, 2, { samples, (int32_t)features }
    };
    slot->batch.field_count = features ? FIELD_FEATURES + 1 : FIELD_WEIGHTS + 1;
}

/* The arrays of all slots: one allocation per kind. 0: out of memory, or too large for size_t. */
static int allocate_slots(struct batch_source *s)
{
    const int samples = s->batch_size * s->workers;
    const size_t batch = (size_t)samples, count = (size_t)s->slot_count, labels = dataset_labels(s->data);
    const size_t features = (size_t)s->data->features;

    if (s->width == 0 || batch > SIZE_MAX / ELEMENT_BYTES / s->width / count || batch > SIZE_MAX / 8 / count / labels ||
        batch > SIZE_MAX / 8 / count / (features + 1))
        return 0;
    s->input = malloc(count * batch * s->width * ELEMENT_BYTES);
    s->labels = malloc(count * batch * labels * sizeof *s->labels);
    s->weights = malloc((s->data->padded ? count * batch * labels : 1) * sizeof *s->weights);
    s->features = malloc((count * batch * features + 1) * sizeof *s->features);
    s->samples = malloc(count * batch * sizeof *s->samples);
    s->slots = calloc(count, sizeof *s->slots);
    if (!s->input || !s->labels || !s->weights || !s->features || !s->samples || !s->slots || !allocate_producers(s))
        return 0;
    for (size_t i = 0; i < count; i++) {
        struct slot *slot = &s->slots[i];

        slot->input = s->input + i * batch * s->width * ELEMENT_BYTES;
        slot->labels = s->labels + i * batch * labels;
        slot->weights = s->data->padded ? s->weights + i * batch * labels : NULL;
        slot->features = s->features + i * batch * features;
        slot->samples = s->samples + i * batch;
        slot->batch = (struct batch){ .count = samples, .field_count = 2, .samples = slot->samples };
        slot->batch.fields[FIELD_INPUT] = s->field;
        slot->batch.fields[FIELD_INPUT].data = slot->input;
        slot->batch.fields[FIELD_LABELS] = (struct field){
            slot->labels, ELEMENT_INT32, s->data->labels.rank, { samples, (int32_t)labels }
        };
        if (s->data->padded)
            add_fields(slot, samples, labels, features);
    }
    return 1;
}

int batch_source_new(struct batch_source **out, const struct dataset *d, const struct batch_source_options *options,
                     struct error *e)
{
    const struct transform *t = options->transform;
    struct batch_source *s;
    int rc = check_options(d, options, e);

    *out = NULL;
    if (rc < 0)
        return rc;
    if (!(s = calloc(1, sizeof *s)))
        return error_memory(e, NULL, "for the input batches");
    s->data = d;
    if (t)
        s->transform = *t;
    s->shard = options->shard;
    s->batch_size = options->batch_size;
    s->workers = options->workers > 0 ? options->workers : 1;
    s->together = options->together;
    s->first = options->first;
    s->seed = options->seed;
    s->first_step = options->first_step;
    s->producer_count = choose_producers(d);
    /* One more for the borrowed batch, and for each further producer the one it fills. */
    s->slot_count = (options->ahead > 0 ? options->ahead : AHEAD_DEFAULT) + s->producer_count;
    s->field = (struct field){
        NULL, t ? ELEMENT_FLOAT32 : ELEMENT_INT32, 4, { s->batch_size * s->workers, d->height, d->width, d->channels }
    };
    if (t && t->height)
        s->field = (struct field){
            NULL, ELEMENT_FLOAT32, 4, { s->batch_size * s->workers, t->height, t->width, t->channels }
        };
    s->width = (size_t)s->field.shape[1] * (size_t)s->field.shape[2] * (size_t)s->field.shape[3];
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->filled, NULL);
    pthread_cond_init(&s->freed, NULL);
    if (!allocate_slots(s))
        rc = error_memory(e, NULL, "for %d input batches of %d samples", s->slot_count, s->batch_size * s->workers);
    else if (start_threads(s) != 0)
        rc = error_set(e, ERR_NOMEM, "cannot start threads for preparing input");
    if (rc < 0) {
        batch_source_free(s);
        return rc;
    }
    *out = s;
    return OK;
}

/* Waits, under the lock, until a batch is ready or `until` has passed; NULL: for ever. */
static void await_batch(struct batch_source *s, const struct timespec *until)
{
    int rc = 0;

    while (s->made <= s->taken && rc == 0)
        rc = until ? pthread_cond_clockwait(&s->filled, &s->lock, CLOCK_MONOTONIC, until)
                   : pthread_cond_wait(&s->filled, &s->lock);
}

int batch_source_wait(struct batch_source *s, double seconds)
{
    const double until = clock_monotonic() + seconds;
    const struct timespec deadline = { (time_t)until, (long)((until - floor(until)) * 1e9) };
    int there;

    pthread_mutex_lock(&s->lock);
    await_batch(s, &deadline);
    there = s->made > s->taken;
    pthread_mutex_unlock(&s->lock);
    return there;
}

int batch_source_next(struct batch_source *s, const struct batch **out, struct error *e)
{
    const struct slot *slot;

    pthread_mutex_lock(&s->lock);
    if (s->taken > 0) { /* the batch given out last is free now */
        s->released = s->taken;
        pthread_cond_signal(&s->freed);
    }
    await_batch(s, NULL);
    pthread_mutex_unlock(&s->lock);
    slot = &s->slots[s->taken++ % s->slot_count];
    *out = &slot->batch;
    if (slot->error.code < 0 && e)
        *e = slot->error;
    return slot->error.code;
}

const struct batch *batch_source_peek(struct batch_source *s)
{
    const struct slot *slot = &s->slots[s->taken % s->slot_count];

    return batch_source_wait(s, 0) && slot->error.code == OK ? &slot->batch : NULL;
}

int batch_source_next_bad(struct batch_source *s, struct error *why)
{
    return s->data->stream && sample_stream_next_bad(s->data->stream, why);
}

const struct dataset *batch_source_dataset(const struct batch_source *s)
{
    return s->data;
}

size_t batch_source_bad(struct batch_source *s)
{
    return s->data->stream ? sample_stream_bad(s->data->stream) : 0;
}

void batch_source_free(struct batch_source *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    atomic_store(&s->stop, 1);
    pthread_cond_broadcast(&s->freed);
    pthread_mutex_unlock(&s->lock);
    for (int i = 0; i < s->running; i++)
        pthread_join(s->producers[i].thread, NULL);
    for (int i = 0; s->producers && i < s->producer_count; i++) {
        free(s->producers[i].order);
        free(s->producers[i].room);
    }
    pthread_cond_destroy(&s->freed);
    pthread_cond_destroy(&s->filled);
    pthread_mutex_destroy(&s->lock);
    free(s->producers);
    free(s->slots);
    free(s->samples);
    free(s->labels);
    free(s->weights);
    free(s->features);
    free(s->input);
    free(s);
}
