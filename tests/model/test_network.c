/* Networks as their users see them: what must not depend on batch sizes, the exchange vector. */
#include "base/random.h"
#include "model/network.h"
#include "model/network_builder.h"
#include "tests/check.h"
#include "tests/model/images_batch.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 48 };

struct fed {
    real *images;
    int32_t *labels; /* (ROOM, each) */
    int64_t samples[ROOM];
    size_t image, each; /* reals and labels of a sample */
    const struct model *model;
};

/* The first of these models that is tested: mnist_cnn takes ten times as long, others of large images or captions more. */
static const char *const *next_model(const char *const *names)
{
    const struct model *m = *names ? model_find(*names) : NULL;
    return m && (!strcmp(m->name, "mnist_cnn") || m->height > 64 || m->features) ? next_model(names + 1) : names;
}

static struct network *new_network(const char *model, int max_batch)
{
    struct error e = { 0 };
    struct network *n = NULL;

    if (network_new(&n, model_find(model), max_batch, &e) < 0)
        fail_msg("%s", e.message);
    network_initialize(n, 5);
    return n;
}

static struct fed *new_fed(const char *model)
{
    const struct model *m = model_find(model);
    struct fed *f = calloc(1, sizeof *f);
    struct random r;

    assert_non_null(f);
    f->model = m;
    f->image = (size_t)m->height * (size_t)m->width * (size_t)m->channels, f->each = (size_t)model_labels(m);
    f->images = malloc(ROOM * f->image * sizeof *f->images);
    f->labels = calloc(ROOM * f->each, sizeof *f->labels);
    assert_true(f->images && f->labels);
    random_init(&r, 3, RANDOM_TEST, 0, 0);
    for (size_t i = 0; i < ROOM * f->image; i++)
        f->images[i] = (real)random_normal(&r);
    for (size_t i = 0; m->integers && i < ROOM * f->image; i++) /* as few as come again */
        ((int32_t *)(void *)f->images)[i] = (int32_t)random_below(&r, 20);
    for (size_t i = 0; i < ROOM * f->each; i++)
        f->labels[i] = (int32_t)random_below(&r, 10);
    for (int i = 0; i < ROOM; i++)
        f->samples[i] = 100 + 7 * i;
    return f;
}

static void free_fed(struct fed *f)
{
    free(f->images);
    free(f->labels);
    free(f);
}

/* Words are int32, whatever the build. */
static const void *input_at(const struct fed *f, int first)
{
    const size_t size = f->model->integers ? sizeof(int32_t) : sizeof(real);

    return (const char *)f->images + (size_t)first * f->image * size;
}

static struct batch part(const struct fed *f, int first, int count)
{
    return images_batch(f->model, input_at(f, first), f->labels + (size_t)first * f->each, f->samples + first, count);
}

static void infer(struct network *n, const struct fed *f, int first, int count, real *logits)
{
    const struct field input = model_input(f->model, input_at(f, first), count);

    network_infer(n, &input, logits);
}

static double difference(const real *a, const real *b, size_t n)
{
    double square = 0, norm = 0;

    for (size_t i = 0; i < n; i++) {
        square += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        norm += (double)b[i] * (double)b[i];
    }
    return sqrt(square / norm);
}

static void inference_in_any_parts(void **state)
{
    (void)state;
    for (const char *const *name = next_model(model_names()); *name; name = next_model(name + 1)) {
        struct fed *f = new_fed(*name);
        struct network *whole = new_network(*name, ROOM), *small = new_network(*name, 5);
        const size_t row = f->each * (size_t)f->model->classes, size_all = ROOM * row;
        real *all = reals_new(size_all), *parts = reals_new(size_all), *again = reals_new(size_all);

        infer(whole, f, 0, ROOM, all);
        infer(whole, f, 0, ROOM, again);
        assert_memory_equal(all, again, size_all * sizeof *all);
        for (int size = 1; size <= ROOM; size = size * 2 + 1) {
            for (int first = 0; first < ROOM; first += size)
                infer(small, f, first, ROOM - first < size ? ROOM - first : size, parts + (size_t)first * row);
            assert_true(difference(parts, all, size_all) < 1e-6);
        }
        free(all);
        free(parts);
        free(again);
        free_fed(f);
        network_free(whole);
        network_free(small);
    }
}

static void scores(void **state)
{
    (void)state;
    for (const char *const *name = next_model(model_names()); *name; name = next_model(name + 1)) {
        struct fed *f = new_fed(*name);
        struct network *n = new_network(*name, 7);
        const int classes = f->model->classes, rows = ROOM * (int)f->each;
        real *logits = reals_new((size_t)(rows * classes));
        struct batch batch = part(f, 0, ROOM);
        struct score result, one;
        double sum = 0;
        int64_t correct = 0;

        infer(n, f, 0, ROOM, logits);
        for (int i = 0; i < rows; i++) /* what the network says is right */
            for (int c = 0, top = -1; c < classes; c++)
                if (top < 0 || logits[i * classes + c] > logits[i * classes + top])
                    f->labels[i] = i % 3 ? c : (c + 1) % classes, top = c;
        network_score(n, &batch, &result);
        assert_int_equal(result.hits, rows - rows / 3);
        for (int i = 0; i < ROOM; i++) {
            batch = part(f, i, 1);
            network_score(n, &batch, &one);
            sum += one.loss;
            correct += one.hits;
        }
        assert_int_equal(correct, result.hits);
        assert_true(fabs(sum - result.loss) < 1e-5 * sum);
        free(logits);
        free_fed(f);
        network_free(n);
    }
}

/* Two runs give the same bits, whatever max_batch is and whoever's memory the exchange vector lies in. */
static void same_bits(void **state)
{
    static const int counts[] = { 1, 5, 33, ROOM };

    (void)state;
    for (const char *const *name = next_model(model_names()); *name; name = next_model(name + 1)) {
        struct fed *f = new_fed(*name);
        struct network *a = new_network(*name, ROOM);
        const size_t n = network_exchange_count(a);
        void *memory;

        assert_int_equal(posix_memalign(&memory, 64, n * sizeof(real)), 0);
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            struct network *b = new_network(*name, counts[i]);
            struct batch batch = part(f, 0, counts[i]);
            struct score first, second;

            network_set_exchange(b, memory);
            memset(memory, 0xff, n * sizeof(real));
            network_train(a, at_step(&batch, 3), 1, NULL, &first);
            network_train(b, at_step(&batch, 3), 1, NULL, &second);
            assert_memory_equal(network_exchange(a), memory, n * sizeof(real));
            assert_memory_equal(&first, &second, sizeof first);
            network_free(b);
        }
        free(memory);
        free_fed(f);
        network_free(a);
    }
}

static const struct kernel_options plain = { INITIAL_NORMAL, 0.1, 0 };

/* Dropout of images, which go through in slices of at most 32. */
static int sliced_dropout(struct network_builder *b, struct error *e)
{
    int x = network_builder_convolution(b, network_builder_images(b), "w", 6, window_same(3, 1), &plain);

    (void)e;
    x = network_builder_dropout(b, x, 0.5);
    network_builder_cross_entropy(b, network_builder_dense(b, x, "d", 10, &plain));
    return OK;
}

/* Without batch norm the sums of two halves are the sum of the whole, dropout included: it follows the sample. */
static void halves_add_up(void **state)
{
    static const struct model sliced = {
        .name = "sliced", .height = 4, .width = 4, .channels = 2, .classes = 10, .build = sliced_dropout
    };
    const struct model *const models[] = { model_find("lenet"), model_find("cifar10_cnn"), &sliced };

    (void)state;
    for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
        const struct model *m = models[k];
        struct fed *f = new_fed(m == &sliced ? "lenet" : m->name);
        struct network *n;
        struct error e;
        struct batch batch;
        struct score result, halves = { 0 };

        f->model = m;
        f->image = (size_t)m->height * (size_t)m->width * (size_t)m->channels;
        assert_int_equal(network_new(&n, m, ROOM, &e), OK);
        network_initialize(n, 5);
        const size_t count = network_parameter_count(n);
        real *sum = calloc(count, sizeof *sum);
        assert_non_null(sum);
        for (int first = 0; first < ROOM; first += ROOM / 2) {
            batch = part(f, first, ROOM / 2);
            network_train(n, at_step(&batch, 3), 1, NULL, &result);
            halves.loss += result.loss;
            halves.hits += result.hits;
            for (size_t i = 0; i < count; i++)
                sum[i] += network_exchange(n)[i];
        }
        batch = part(f, 0, ROOM);
        network_train(n, at_step(&batch, 3), 1, NULL, &result);
        assert_true(difference(sum, network_exchange(n), count) < 1e-5);
        assert_true(fabs(halves.loss / result.loss - 1) < 1e-6);
        assert_int_equal(halves.hits, result.hits);
        free(sum);
        free_fed(f);
        network_free(n);
    }
}

/* A weighted batch is what its samples give apart, each so many times; those of weight 0 give nothing, whatever their
 * label. */
static void weights_count(void **state)
{
    static const float weights[] = { 1, 0, 2.5F, 1, 0, 0.25F };
    enum { COUNT = sizeof weights / sizeof *weights };
    struct fed *f = new_fed("lenet");
    struct network *n = new_network("lenet", COUNT);
    const size_t count = network_parameter_count(n);
    real *sum = calloc(count, sizeof *sum);
    struct score wanted = { 0 }, got, one;
    struct batch batch;

    (void)state;
    assert_non_null(sum);
    for (int i = 0; i < COUNT; i++) {
        const double weight = (double)weights[i];

        if (weight == 0)
            continue;
        batch = part(f, i, 1);
        network_train(n, &batch, 1, NULL, &one);
        score_add(&wanted, &(struct score){ weight * one.loss, weight, one.hits, 1 });
        for (size_t k = 0; k < count; k++)
            sum[k] += (real)weight * network_exchange(n)[k];
    }
    f->labels[1] = f->labels[4] = INT32_MAX;
    batch = part(f, 0, COUNT);
    batch.fields[batch.field_count++] = (struct field){ weights, ELEMENT_FLOAT32, 1, { COUNT } };
    network_train(n, &batch, 1, NULL, &got);
    assert_true(difference(sum, network_exchange(n), count) < 1e-5);
    assert_true(network_exchange(n)[network_exchange_count(n) - 1] == (real)4.75);
    for (int again = 0; again < 2; again++) {
        assert_true(fabs(got.loss / wanted.loss - 1) < 1e-6 || again);
        assert_true(got.weight == 4.75);
        assert_int_equal(got.units, 4);
        assert_true(got.hits == wanted.hits || again);
        network_score(n, &batch, &got);
    }
    free(sum);
    free_fed(f);
    network_free(n);
}

/* Dropout: another step or another sample draws anew. */
static void dropout_draws(void **state)
{
    struct fed *f = new_fed("lenet");
    struct network *n = new_network("lenet", 4);
    struct batch batch = part(f, 0, 4);
    struct score a, b;

    (void)state;
    network_train(n, at_step(&batch, 3), 1, NULL, &a);
    network_train(n, at_step(&batch, 4), 1, NULL, &b);
    assert_true(fabs(a.loss - b.loss) > 1e-9);
    network_train(n, at_step(&batch, 3), 2, NULL, &b);
    assert_true(fabs(a.loss - b.loss) > 1e-9);
    batch.samples = NULL;
    network_train(n, at_step(&batch, 3), 1, NULL, &b);
    assert_true(fabs(a.loss - b.loss) > 1e-9);
    free_fed(f);
    network_free(n);
}

static int two_dropouts(struct network_builder *b, struct error *e)
{
    int x = network_builder_dense(b, network_builder_images(b), "w", 256, &plain);

    (void)e;
    x = network_builder_bias(b, x, "b", 0, RELU_NONE);
    x = network_builder_dropout(b, x, 0.5);
    x = network_builder_dropout(b, x, 0.5);
    network_builder_cross_entropy(b, network_builder_dense(b, x, "d", 3, &plain));
    return OK;
}

/* A quarter passes two dropouts of a half; if they drew alike it would be a half. */
static void dropouts_draw_apart(void **state)
{
    const struct model m = {
        .name = "two", .height = 1, .width = 1, .channels = 8, .classes = 3, .build = two_dropouts
    };
    const real image[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    const int32_t label = 0;
    struct batch batch = images_batch(&m, image, &label, NULL, 1);
    struct score result;
    struct network *n;
    struct error e;
    size_t count, passed = 0;

    (void)state;
    assert_int_equal(network_new(&n, &m, 1, &e), OK);
    network_initialize(n, 1);
    network_train(n, at_step(&batch, 0), 1, NULL, &result);
    const struct variable *bias = &network_variables(n, &count)[1];
    for (size_t i = 0; i < bias->count; i++)
        passed += network_exchange(n)[bias->offset + i] != 0;
    assert_in_range(passed, 40, 90);
    network_free(n);
}

/* What ready() promised: a copy of the exchange vector at each call, compared with the end. */
struct watch {
    struct network *n;
    size_t low, calls, total;
    real **copies;
    size_t *lows;
};

static void on_ready(void *context, size_t low)
{
    struct watch *w = context;

    assert_true(low <= w->low && (low < w->low || w->calls == 0));
    w->low = low;
    w->copies = realloc(w->copies, (w->calls + 1) * sizeof *w->copies);
    w->lows = realloc(w->lows, (w->calls + 1) * sizeof *w->lows);
    assert_non_null(w->copies);
    assert_non_null(w->lows);
    w->copies[w->calls] = malloc(w->total * sizeof(real));
    assert_non_null(w->copies[w->calls]);
    memcpy(w->copies[w->calls], network_exchange(w->n), w->total * sizeof(real));
    w->lows[w->calls++] = low;
}

static void ready(void **state)
{
    (void)state;
    for (const char *const *name = next_model(model_names()); *name; name = next_model(name + 1)) {
        struct fed *f = new_fed(*name);
        struct network *n = new_network(*name, 9);
        struct watch w = { n,    network_parameter_count(n),
                           0,    network_parameter_count(n) + network_statistic_count(n),
                           NULL, NULL };
        struct batch batch = part(f, 0, 9);
        struct score result;

        network_train(n, &batch, 1, &(struct gradient_sink){ .dense = on_ready, .context = &w }, &result);
        assert_int_equal(w.low, 0);
        assert_int_equal(w.lows[0], network_parameter_count(n)); /* the statistics come first */
        assert_true(w.calls >= (strncmp(*name, "mnist_lstm", 10) ? 3 : 2));
        for (size_t k = 0; k < w.calls; k++) {
            assert_memory_equal(w.copies[k] + w.lows[k], network_exchange(n) + w.lows[k],
                                (w.total - w.lows[k]) * sizeof(real));
            free(w.copies[k]);
        }
        free(w.copies);
        free(w.lows);
        free_fed(f);
        network_free(n);
    }
}

static int left_at(void *context)
{
    int *more = context;

    return (*more)-- == 0;
}

/* Left at any place, a step has changed nothing: weights and statistics are as before, and the next step has the bits
 * of one before which nothing was left. Every slice asks: no step is longer than a few images through a few layers. */
static void left_half_way(void **state)
{
    (void)state;
    for (const char *const *name = next_model(model_names()); *name; name = next_model(name + 1)) {
        enum { IMAGES = ROOM };
        struct fed *f = new_fed(*name);
        struct network *n = new_network(*name, IMAGES), *undisturbed = new_network(*name, IMAGES);
        const size_t p = network_parameter_count(n), s = network_statistic_count(n);
        struct batch batch = part(f, 0, IMAGES);
        struct score result, wanted;
        int asked = 0, at = INT_MAX;

        assert_int_equal(network_train(undisturbed, at_step(&batch, 0), 1, NULL, &wanted), 1);
        assert_int_equal(network_asked_to_leave(n), 0);
        network_set_leave(n, left_at, &at);
        assert_int_equal(network_train(n, at_step(&batch, 0), 1, NULL, &result), 1);
        asked = INT_MAX - at;
        assert_true(asked > (!strncmp(*name, "mnist_lstm", 10) ? 1
                             : f->model->integers              ? 3
                                                               : 9)); /* they have few layers */
        at = 0;
        assert_int_equal(network_asked_to_leave(n), 1);
        for (int i = 0; i < asked; i += 1 + asked / 7) {
            at = i;
            assert_int_equal(network_train(n, at_step(&batch, 0), 1, NULL, &result), 0);
            assert_int_equal(at, -1);
        }
        assert_memory_equal(network_parameters(n), network_parameters(undisturbed), p * sizeof(real));
        assert_memory_equal(network_statistics(n), network_statistics(undisturbed), s * sizeof(real));
        assert_int_equal(network_train(n, at_step(&batch, 0), 1, NULL, &result), 1);
        assert_memory_equal(network_exchange(n), network_exchange(undisturbed), (p + s) * sizeof(real));
        assert_true(result.loss == wanted.loss && result.hits == wanted.hits);
        free_fed(f);
        network_free(n);
        network_free(undisturbed);
    }
}

/* A network that shares another's weights has no others: what is written there is what it trains and scores with. */
static void weights_are_shared(void **state)
{
    (void)state;
    for (const char *const *name = next_model(model_names()); *name; name = next_model(name + 1)) {
        struct fed *f = new_fed(*name);
        struct network *a = new_network(*name, 4), *b = new_network(*name, 4);
        struct batch batch = part(f, 0, 4);
        struct score of_a, of_b;

        network_share(b, a);
        assert_ptr_equal(network_parameters(b), network_parameters(a));
        assert_ptr_equal(network_statistics(b), network_statistics(a));
        assert_true(network_exchange(b) != network_exchange(a));
        network_initialize(a, 99);
        assert_int_equal(network_train(a, at_step(&batch, 0), 1, NULL, &of_a), 1);
        assert_int_equal(network_train(b, at_step(&batch, 0), 1, NULL, &of_b), 1);
        assert_memory_equal(network_exchange(a), network_exchange(b), network_exchange_count(a) * sizeof(real));
        assert_true(of_a.loss == of_b.loss);
        free_fed(f);
        network_free(b);
        network_free(a);
    }
}

/* Batch statistics in the exchange vector are sums over samples: of a batch seen twice, twice that of the batch. */
static void statistics_add_up(void **state)
{
    struct fed *f = new_fed("resnet32");
    struct network *n = new_network("resnet32", 8);
    const size_t p = network_parameter_count(n), s = network_statistic_count(n);
    struct batch batch = part(f, 0, 4);
    struct score result;
    real *once = malloc(s * sizeof *once);

    (void)state;
    assert_non_null(once);
    network_train(n, at_step(&batch, 0), 1, NULL, &result);
    for (size_t i = 0; i < s; i++)
        once[i] = 2 * network_exchange(n)[p + i];
    memcpy(f->images + 4 * f->image, f->images, 4 * f->image * sizeof *f->images);
    memcpy(f->labels + 4, f->labels, 4 * sizeof *f->labels);
    batch = part(f, 0, 8);
    network_train(n, at_step(&batch, 0), 1, NULL, &result);
    assert_true(difference(network_exchange(n) + p, once, s) < 1e-5);
    free(once);
    free_fed(f);
    network_free(n);
}

/* A channel that hardly varies around a large mean: the variance must not drown in the mean's square. */
static void variance_beside_large_mean(void **state)
{
    struct fed *f = new_fed("resnet32");
    struct network *n = new_network("resnet32", ROOM);
    const size_t p = network_parameter_count(n);
    struct batch batch = part(f, 0, ROOM);
    struct score result;
    real *w = network_parameters(n); /* init/init_conv/DW [3,3,3,16]: channel 0 copies the middle pixel's red */
    double sum = 0, square = 0, count = 0;

    (void)state;
    for (size_t i = 0; i < 27; i++)
        w[i * 16] = i == 12 ? 1 : 0;
    for (size_t i = 0; i < ROOM * f->image; i++)
        f->images[i] = (real)(1000 + 0.5 * (double)f->images[i]);
    for (size_t i = 0; i < ROOM * f->image; i += 3)
        sum += (double)f->images[i], count++;
    for (size_t i = 0; i < ROOM * f->image; i += 3)
        square += ((double)f->images[i] - sum / count) * ((double)f->images[i] - sum / count);
    network_train(n, at_step(&batch, 0), 1, NULL, &result);
    assert_true(fabs((double)network_exchange(n)[p] / (double)ROOM / (sum / count) - 1) < 1e-6);
    assert_true(fabs((double)network_exchange(n)[p + 16] / (double)ROOM / (square / count) - 1) < 1e-4);
    free_fed(f);
    network_free(n);
}

/* NaN is passed on, not hidden: somebody is watching for it. */
static void nan_is_seen(void **state)
{
    (void)state;
    for (const char *const *name = next_model(model_names()); *name; name = next_model(name + 1)) {
        struct fed *f = new_fed(*name);
        struct network *n = new_network(*name, 3);
        struct batch batch = part(f, 0, 3);
        struct score result;
        size_t count;
        const struct variable *v = network_variables(n, &count);

        network_parameters(n)[v[count - 1].offset] = (real)NAN;
        network_score(n, &batch, &result);
        assert_true(isnan(result.loss));
        network_train(n, at_step(&batch, 0), 1, NULL, &result);
        assert_true(isnan(result.loss));
        free_fed(f);
        network_free(n);
    }
}

static size_t count_threads(void)
{
    DIR *d = opendir("/proc/self/task");
    size_t n = 0;

    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static void starts_no_threads(void **state)
{
    const size_t before = count_threads();
    struct fed *f = new_fed("resnet32");
    struct network *n = new_network("resnet32", 16);
    struct batch batch = part(f, 0, 16);
    struct score result;

    (void)state;
    network_train(n, at_step(&batch, 0), 1, NULL, &result);
    network_score(n, &batch, &result);
    assert_int_equal(count_threads(), before);
    free_fed(f);
    network_free(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inference_in_any_parts),
        cmocka_unit_test(scores),
        cmocka_unit_test(same_bits),
        cmocka_unit_test(halves_add_up),
        cmocka_unit_test(dropout_draws),
        cmocka_unit_test(ready),
        cmocka_unit_test(left_half_way),
        cmocka_unit_test(weights_are_shared),
        cmocka_unit_test(statistics_add_up),
        cmocka_unit_test(nan_is_seen),
        cmocka_unit_test(starts_no_threads),
        cmocka_unit_test(variance_beside_large_mean),
        cmocka_unit_test(weights_count),
        cmocka_unit_test(dropouts_draw_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
