/* batch_source.h: which samples a step holds for any number of workers, resuming, both kinds of shards, freeing. */
#include "dataset/batch_source.h"

#include "base/random.h"
#include "tests/check.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 37, HEIGHT = 2, WIDTH = 3, PIXELS = HEIGHT * WIDTH };

/* Image i is filled with i, its label is i mod 10: a batch tells which records it is made of. */
static uint8_t images[COUNT * PIXELS], labels[COUNT];
static struct dataset data = { .name = "mnist",
                               .count = COUNT,
                               .height = HEIGHT,
                               .width = WIDTH,
                               .channels = 1,
                               .classes = 10,
                               .element = ELEMENT_UINT8,
                               .input = images,
                               .stride = PIXELS,
                               .labels = { labels, ELEMENT_UINT8, 1, { COUNT } } };

static void fill_data(void)
{
    for (size_t i = 0; i < COUNT; i++) {
        memset(images + i * PIXELS, (int)i, PIXELS);
        labels[i] = (uint8_t)(i % 10);
    }
}

/* Shows what it was called with: step, sample, seed, and draws from them. */
static void apply_numbers(const struct dataset *d, const uint8_t *image, uint64_t seed, int64_t step, int64_t sample,
                          float *out)
{
    struct random r;

    (void)d;
    random_init(&r, seed, RANDOM_AUGMENT, (uint64_t)step, (uint64_t)sample);
    out[0] = image[0];
    out[1] = (float)step;
    out[2] = (float)sample;
    for (int i = 3; i < PIXELS; i++)
        out[i] = (float)random_uniform(&r);
}

/* As wide as the data (height 0), so that transform_check lets it pass. */
static const struct transform numbers = { "numbers", "", 0, 0, 0, 1, apply_numbers };

static struct batch_source_options options(int workers, int worker, int batch_size, int64_t first_step)
{
    struct batch_source_options o = { .transform = transform_find("unit"),
                                      .shard = { SHARD_RECORDS, workers, worker, SHARD_MODULO },
                                      .batch_size = batch_size,
                                      .seed = 77,
                                      .first_step = first_step };
    return o;
}

static struct batch_source *open_source(const struct batch_source_options *o)
{
    struct batch_source *s;
    struct error e;

    if (batch_source_new(&s, &data, o, &e) != OK)
        fail_msg("%s", e.message);
    return s;
}

static const struct batch *next(struct batch_source *s)
{
    const struct batch *b;

    assert_int_equal(batch_source_next(s, &b, NULL), OK);
    return b;
}

static const float *images_of(const struct batch *b)
{
    return b->fields[FIELD_INPUT].data;
}

static int record_of(const struct batch *b, int i)
{
    int record = (int)(images_of(b)[i * PIXELS] * 255.0f + 0.5f);

    for (int p = 1; p < PIXELS; p++)
        assert_true(images_of(b)[i * PIXELS + p] == images_of(b)[i * PIXELS]);
    assert_int_equal(field_integer(&b->fields[FIELD_LABELS], (size_t)i), record % 10);
    return record;
}

/* One worker with batch 12 tells which record each sample is; 2, 3, 4, 6 workers must agree step by step. */
static void test_workers_share_one_order(void **state)
{
    enum { GLOBAL = 12, STEPS = 20 };
    int record[STEPS * GLOBAL], seen[COUNT];
    struct batch_source_options o = options(1, 0, GLOBAL, 0);
    struct batch_source *s = open_source(&o);

    (void)state;
    for (int t = 0; t < STEPS; t++) {
        const struct batch *b = next(s);

        assert_int_equal(b->step, t);
        assert_int_equal(b->count, GLOBAL);
        for (int i = 0; i < GLOBAL; i++) {
            assert_int_equal(b->samples[i], t * GLOBAL + i);
            record[t * GLOBAL + i] = record_of(b, i);
        }
    }
    batch_source_free(s);
    for (int epoch = 0; epoch < STEPS * GLOBAL / COUNT; epoch++) { /* each epoch holds each record once */
        memset(seen, 0, sizeof seen);
        for (int i = 0; i < COUNT; i++)
            assert_int_equal(seen[record[epoch * COUNT + i]]++, 0);
        assert_true(epoch == 0 || memcmp(record, record + epoch * COUNT, sizeof seen) != 0);
    }
    for (int k = 0; k < 10; k++) {
        const int workers = k / 2 < 4 ? 1 + k / 2 : 6, size = GLOBAL / workers;
        int given[STEPS * GLOBAL] = { 0 };

        for (int worker = 0; worker < workers; worker++) {
            o = options(workers, worker, size, 0);
            o.together = k % 2 ? GLOBAL : 0;
            o.first = k % 2 ? worker * size : 0;
            s = open_source(&o);
            for (int t = 0; t < STEPS; t++) {
                const struct batch *b = next(s);

                for (int i = 0; i < b->count; i++) {
                    int64_t sample = b->samples[i];

                    assert_true(sample >= t * GLOBAL && sample < (t + 1) * GLOBAL);
                    assert_int_equal(o.together ? sample % GLOBAL / size : sample % workers, worker);
                    assert_true(!o.together || i == 0 || sample == b->samples[i - 1] + 1);
                    assert_int_equal(given[sample]++, 0);
                    assert_int_equal(record_of(b, i), record[sample]);
                }
            }
            batch_source_free(s);
        }
    }
}

/* A batch of several workers has those of each, one after the other. */
static void test_workers_together(void **state)
{
    enum { GLOBAL = 12, STEPS = 20 };

    (void)state;
    for (int k = 0; k < 8; k++) {
        const int workers = k / 2 < 2 ? 3 : 4, first = k / 4, together = workers - first, size = GLOBAL / workers;
        struct batch_source_options o = options(workers, first, size, 3);
        struct batch_source *all, *one;

        o.together = k % 2 ? GLOBAL : 0;
        o.first = k % 2 ? first * size : 0;
        o.workers = together;
        all = open_source(&o);
        for (int t = 0; t < STEPS; t++) {
            const struct batch *b = next(all);

            assert_int_equal(b->count, together * size);
            assert_int_equal(b->fields[FIELD_INPUT].shape[0], together * size);
            assert_int_equal(b->fields[FIELD_LABELS].shape[0], together * size);
            for (int w = 0; w < together; w++) {
                struct batch_source_options alone = options(workers, first + w, size, 3 + t);
                const struct batch part = batch_part(b, w * size, size), *wanted;

                alone.together = k % 2 ? GLOBAL : 0;
                alone.first = k % 2 ? (first + w) * size : 0;
                one = open_source(&alone);
                wanted = next(one);
                assert_int_equal(part.step, wanted->step);
                assert_memory_equal(part.samples, wanted->samples, (size_t)size * sizeof *part.samples);
                for (int i = 0; i < size; i++)
                    assert_int_equal(record_of(&part, i), record_of(wanted, i));
                batch_source_free(one);
            }
        }
        batch_source_free(all);
    }
}

/* Parts of unequal size have all samples of every step, in order. */
static void test_unequal_parts(void **state)
{
    enum { GLOBAL = 12, STEPS = 5 };
    static const int ends[] = { 0, GLOBAL / 4, GLOBAL / 4 + 1, GLOBAL };

    (void)state;
    for (int worker = 0; worker < 3; worker++) {
        struct batch_source_options o = options(3, worker, ends[worker + 1] - ends[worker], 0);
        struct batch_source *s, *whole;
        const struct batch_source_options all = options(1, 0, GLOBAL, 0);

        o.together = GLOBAL;
        o.first = ends[worker];
        s = open_source(&o);
        whole = open_source(&all);
        for (int t = 0; t < STEPS; t++) {
            const struct batch *b = next(s), *w = next(whole);

            assert_int_equal(b->count, ends[worker + 1] - ends[worker]);
            for (int i = 0; i < b->count; i++) {
                assert_int_equal(b->samples[i], w->samples[ends[worker] + i]);
                assert_int_equal(record_of(b, i), record_of(w, ends[worker] + i));
            }
        }
        batch_source_free(s);
        batch_source_free(whole);
    }
}

/* Starting at step t gives bit for bit what a run from 0 has there; the transform gets step, sample and seed. */
static void test_resume(void **state)
{
    enum { BATCH = 7, STEPS = 30 };
    float want[STEPS][BATCH * PIXELS];
    struct batch_source_options o = options(3, 1, BATCH, 0);
    struct batch_source *s;

    (void)state;
    o.transform = &numbers;
    o.ahead = 1;
    s = open_source(&o);
    for (int t = 0; t < STEPS; t++) {
        const struct batch *b = next(s);

        memcpy(want[t], images_of(b), sizeof want[t]);
        for (int i = 0; i < BATCH; i++) {
            assert_int_equal((int)want[t][PIXELS * i + 1], t);
            assert_int_equal((int)want[t][PIXELS * i + 2], (t * BATCH + i) * 3 + 1);
            assert_int_equal(b->samples[i], (t * BATCH + i) * 3 + 1);
        }
    }
    batch_source_free(s);
    for (int first = 0; first < STEPS; first += 5) {
        o.first_step = first;
        o.ahead = first % 4;
        s = open_source(&o);
        for (int t = first; t < STEPS; t++) {
            const struct batch *b = next(s);

            assert_int_equal(b->step, t);
            assert_memory_equal(images_of(b), want[t], sizeof want[t]);
        }
        batch_source_free(s);
    }
    o.seed++;
    s = open_source(&o);
    assert_true(memcmp(images_of(next(s)), want[o.first_step], sizeof want[0]) != 0);
    batch_source_free(s);
}

/* With files or all records for itself a worker goes through all its records each epoch, in an order of its own, and
 * sample indices are unique over workers. */
static void check_own_orders(enum shard_kind kind)
{
    enum { BATCH = 5, STEPS = 15, WORKERS = 3 };
    int given[WORKERS * BATCH * STEPS] = { 0 }, order[WORKERS][BATCH * STEPS];

    for (int worker = 0; worker < WORKERS; worker++) {
        struct batch_source_options o = options(WORKERS, worker, BATCH, 0);
        struct batch_source *s;
        int seen[COUNT] = { 0 };

        o.shard.kind = kind;
        s = open_source(&o);
        for (int t = 0; t < STEPS; t++) {
            const struct batch *b = next(s);

            for (int i = 0; i < BATCH; i++) {
                assert_in_range(b->samples[i], t * BATCH * WORKERS, (t + 1) * BATCH * WORKERS - 1);
                assert_int_equal(given[b->samples[i]]++, 0);
                order[worker][t * BATCH + i] = record_of(b, i);
            }
        }
        batch_source_free(s);
        for (int i = 0; i < COUNT; i++)
            assert_int_equal(seen[order[worker][i]]++, 0);
        for (int other = 0; other < worker; other++)
            assert_true(memcmp(order[worker], order[other], sizeof order[0]) != 0);
    }
}

static void test_own_orders(void **state)
{
    (void)state;
    check_own_orders(SHARD_FILES);
    check_own_orders(SHARD_NONE);
}

static void test_free_any_time(void **state)
{
    (void)state;
    for (int taken = 0; taken < 60; taken++) {
        struct batch_source_options o = options(1, 0, 1 + taken * 37, 0);
        struct batch_source *s = open_source(&o);

        for (int t = 0; t < taken % 6; t++)
            next(s);
        batch_source_free(s);
    }
    batch_source_free(NULL);
}

/* The batch given out stays as it is until the next call, however far the thread is ahead. */
static void test_borrowed(void **state)
{
    struct batch_source_options o = options(1, 0, 4, 0);
    struct batch_source *fast = open_source(&o), *other;
    const struct batch *b = next(fast);
    float copy[4 * PIXELS];

    (void)state;
    memcpy(copy, images_of(b), sizeof copy);
    for (int i = 0; i < 50; i++) { /* others come and go meanwhile: time for the thread, and reused memory */
        other = open_source(&o);
        next(other);
        batch_source_free(other);
    }
    assert_int_equal(b->step, 0);
    assert_memory_equal(copy, images_of(b), sizeof copy);
    batch_source_free(fast);
}

static atomic_int held; /* 1: no image is made */

static void apply_when_let(const struct dataset *d, const uint8_t *image, uint64_t seed, int64_t step, int64_t sample,
                           float *out)
{
    while (atomic_load(&held))
        sched_yield();
    apply_numbers(d, image, seed, step, sample, out);
}

/* Waiting for a batch that is not made ends with its time, and takes nothing. */
static void test_wait(void **state)
{
    static const struct transform when_let = { "when_let", "", 0, 0, 0, 1, apply_when_let };
    struct batch_source_options o = options(1, 0, 4, 5);
    const struct batch *foreseen;
    struct batch_source *s;

    (void)state;
    o.transform = &when_let;
    atomic_store(&held, 1);
    s = open_source(&o);
    assert_int_equal(batch_source_wait(s, 0), 0);
    assert_int_equal(batch_source_wait(s, 0.02), 0);
    assert_null(batch_source_peek(s));
    atomic_store(&held, 0);
    while (!batch_source_wait(s, 0.01))
        ;
    assert_int_equal(batch_source_wait(s, 0), 1);
    assert_int_equal(next(s)->step, 5);
    while (!batch_source_wait(s, 0.01)) /* with the first one borrowed still */
        ;
    foreseen = batch_source_peek(s);
    assert_int_equal(foreseen->step, 6);
    assert_ptr_equal(next(s), foreseen);
    batch_source_free(s);
}

/* Words are copied, not transformed; windows of a text overlap, and its labels have four bytes. */
static void test_words(void **state)
{
    enum { WORDS = 50, CONTEXT = 5 };
    int32_t text[WORDS];
    const struct dataset words = { .name = "text",
                                   .count = WORDS - CONTEXT,
                                   .height = 1,
                                   .width = CONTEXT,
                                   .channels = 1,
                                   .classes = 10000,
                                   .element = ELEMENT_INT32,
                                   .input = text,
                                   .stride = 1,
                                   .labels = { text + CONTEXT, ELEMENT_INT32, 1, { WORDS - CONTEXT } } };
    struct batch_source_options o = options(1, 0, 9, 0);
    struct batch_source *s;
    struct error e;

    (void)state;
    for (int i = 0; i < WORDS; i++)
        text[i] = 9000 + i;
    assert_int_equal(batch_source_new(&s, &words, &o, &e), ERR_ARG);
    assert_string_equal(e.message, "text has words, and the model reads images; choose other data or another model");
    o.transform = NULL;
    assert_int_equal(batch_source_new(&s, &data, &o, &e), ERR_ARG);
    assert_string_equal(e.message, "mnist has images, and the model reads words; choose other data or another model");
    assert_int_equal(batch_source_new(&s, &words, &o, &e), OK);
    for (int t = 0; t < 8; t++) {
        const struct batch *b = next(s);
        const struct field *in = &b->fields[FIELD_INPUT];

        assert_true(in->element == ELEMENT_INT32 && in->rank == 4 && in->shape[0] == 9 && in->shape[2] == CONTEXT);
        for (size_t i = 0; i < 9; i++) {
            const int64_t label = field_integer(&b->fields[FIELD_LABELS], i);

            assert_in_range(label, 9000 + CONTEXT, 9000 + WORDS - 1);
            for (size_t k = 0; k < CONTEXT; k++)
                assert_int_equal(field_integer(in, i * CONTEXT + k), label - CONTEXT + (int64_t)k);
        }
    }
    batch_source_free(s);
}

static void test_errors(void **state)
{
    static const struct {
        int workers, worker, batch;
        int64_t first;
        const char *transform, *sentence;
        int64_t together, place;
    } wrong[] = {
        { 1, 0, 0, 0, "unit", "batch size 0: must be", 0, 0 },
        { 1, 0, -1, 0, "unit", "batch size -1: must be", 0, 0 },
        { 0, 0, 1, 0, "unit", "worker 0 of 0: must be", 0, 0 },
        { 2, 2, 1, 0, "unit", "worker 2 of 2: must be", 0, 0 },
        { 2, -1, 1, 0, "unit", "worker -1 of 2: must be", 0, 0 },
        { 1, 0, 1, -1, "unit", "step -1 is out of range", 0, 0 },
        { 1000, 0, 1000, INT64_MAX / 1000, "unit", "is out of range for batches of 1000", 0, 0 },
        { 3, 0, 4, 0, "unit", "samples 9 to 12 of the 12 of a step", 12, 9 },
        { 3, 0, 4, 0, "unit", "samples -1 to 2 of the 12 of a step", 12, -1 },
        { 3, 0, 4, INT64_MAX / 100, "unit", "is out of range", 48, 0 },
        { 1, 0, 1, 0, "cifar-resnet-train", "takes images of 32x32x3, but those of mnist are 2x3x1", 0, 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct batch_source_options o = options(wrong[i].workers, wrong[i].worker, wrong[i].batch, wrong[i].first);
        struct batch_source *s;
        struct error e;

        o.transform = transform_find(wrong[i].transform);
        o.together = wrong[i].together;
        o.first = wrong[i].place;
        assert_int_equal(batch_source_new(&s, &data, &o, &e), ERR_ARG);
        assert_null(s);
        if (!strstr(e.message, wrong[i].sentence))
            fail_msg("%s", e.message);
    }
}

static void test_errors_of_workers_together(void **state)
{
    static const struct {
        int workers, worker, together, batch;
        enum shard_kind shard;
        const char *sentence;
    } wrong[] = {
        { 4, 2, 3, 1, SHARD_RECORDS, "batches of 3 workers, from worker 2 on, but there are 4" },
        { 4, 2, -1, 1, SHARD_RECORDS, "batches of -1 workers" },
        { 2, 0, 2, 1, SHARD_FILES, "--shard files and none are for one worker" },
        { 2, 0, 2, 1, SHARD_NONE, "--shard files and none are for one worker" },
        { 4, 0, 4, INT32_MAX / 4, SHARD_RECORDS, "is out of range for 4 workers" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct batch_source_options o = options(wrong[i].workers, wrong[i].worker, wrong[i].batch, 0);
        struct batch_source *s;
        struct error e;

        o.workers = wrong[i].together;
        o.shard.kind = wrong[i].shard;
        assert_int_equal(batch_source_new(&s, &data, &o, &e), ERR_ARG);
        assert_null(s);
        if (!strstr(e.message, wrong[i].sentence))
            fail_msg("%s", e.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_workers_share_one_order),
        cmocka_unit_test(test_workers_together),
        cmocka_unit_test(test_unequal_parts),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_own_orders),
        cmocka_unit_test(test_free_any_time),
        cmocka_unit_test(test_borrowed),
        cmocka_unit_test(test_wait),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_errors_of_workers_together),
    };

    fill_data();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
