/* A server's arithmetic on its packed state against the optimizer's own, bit by bit; what is sent back, and what stays. */
#include "trainer/server/aggregation.h"

#include "base/random.h"
#include "tests/check.h"
#include "tests/failing_allocation.h"
#include "trainer/collective/tally.h"

#include <stdlib.h>
#include <string.h>

enum { WORKERS = 3, SERVERS = 2, STEPS = 4, BATCH = 8, LIMIT = 5000 /* elements of a packet */ };

/* a network and its optimizer */
struct side {
    struct network *network;
    struct optimizer *optimizer;
};

struct fixture {
    struct side whole, split; /* updated as one; over servers, whose states are brought together in it */
    size_t total;
    struct reduction reduction;
    struct placement placement;
    struct packing packings[SERVERS];
    struct aggregation *servers[SERVERS];
};

static struct side side_of(const char *model, enum optimizer_kind kind, double average)
{
    const struct optimizer_options options = {
        .kind = kind, .learning_rate = 0.05, .momentum = 0.9, .moving_average = average
    };
    struct side s;

    assert_int_equal(network_new(&s.network, model_find(model), 0, NULL), OK);
    network_initialize(s.network, 7);
    assert_int_equal(optimizer_new(&s.optimizer, s.network, &options, NULL), OK);
    return s;
}

static void side_free(struct side *s)
{
    optimizer_free(s->optimizer);
    network_free(s->network);
}

static void fixture_make(struct fixture *f, const char *model, enum optimizer_kind kind, double average, int workers,
                         int synchronous)
{
    *f = (struct fixture){ .whole = side_of(model, kind, average), .split = side_of(model, kind, average) };
    f->total = network_exchange_count(f->whole.network);
    assert_int_equal(reduction_init(&f->reduction, workers, 0, NULL), OK);
    assert_int_equal(placement_of(&f->placement, f->whole.network, SERVERS, 0, NULL), OK);
    for (int j = 0; j < SERVERS; j++) {
        struct packing *p = &f->packings[j];

        assert_int_equal(packing_make(p, &f->placement, j, LIMIT, NULL), OK);
        assert_int_equal(aggregation_new(&f->servers[j], f->split.optimizer, p, &f->reduction,
                                         synchronous ? AGGREGATION_TOGETHER : AGGREGATION_CHOSEN, NULL),
                         OK);
    }
}

static void fixture_free(struct fixture *f)
{
    for (int j = 0; j < SERVERS; j++) {
        aggregation_free(f->servers[j]);
        packing_release(&f->packings[j]);
    }
    reduction_release(&f->reduction);
    placement_release(&f->placement);
    side_free(&f->whole);
    side_free(&f->split);
}

/* A gradient of one worker's; the batch statistics at its end are positive. */
static void fill(real *vector, const struct fixture *f, int64_t step, int worker)
{
    const size_t parameters = network_parameter_count(f->whole.network);
    struct random r;

    random_init(&r, (uint64_t)worker, RANDOM_TEST, (uint64_t)step, 0);
    for (size_t i = 0; i < f->total; i++)
        vector[i] = (real)(i < parameters ? random_normal(&r) : (double)BATCH * (0.5 + random_uniform(&r)));
    vector[f->total - 1] = (real)((double)BATCH + 0.5 * worker + (double)step); /* some weigh more */
}

static void push_all(struct fixture *f, int j, int worker, const real *vector)
{
    for (size_t k = 0; k < f->packings[j].packet_count; k++)
        packing_gather(&f->packings[j], k, vector, aggregation_incoming(f->servers[j], worker, k));
}

/* What the servers hold, put into the arrays of the side that is split. */
static void bring_together(struct fixture *f, int before)
{
    for (int j = 0; j < SERVERS; j++) {
        const struct packed_state layout = packed_state_of(f->split.optimizer, &f->packings[j]);
        size_t count;
        const real *state = aggregation_snapshot(f->servers[j], before, &count);

        assert_int_equal(count, layout.length);
        packed_state_give(&layout, f->split.optimizer, state);
    }
}

static void assert_equal_sides(const struct fixture *f)
{
    for (int k = 0; k < ARRAY_KINDS; k++) {
        const struct optimizer_array a = optimizer_array(f->whole.optimizer, (enum optimizer_array_kind)k);
        const struct optimizer_array b = optimizer_array(f->split.optimizer, (enum optimizer_array_kind)k);

        assert_int_equal(a.count, b.count);
        if (a.count)
            assert_memory_equal(a.values, b.values, a.count * sizeof *a.values);
    }
}

/* The values that the servers send back for a worker are those of the whole; the flags come last. */
static void assert_sent(struct fixture *f, int worker, uint32_t flags)
{
    for (int j = 0; j < SERVERS; j++) {
        const struct packed_state layout = packed_state_of(f->split.optimizer, &f->packings[j]);

        for (size_t k = 0; k < f->packings[j].packet_count; k++) {
            const int last = k + 1 == f->packings[j].packet_count;
            size_t count;
            const real *values = aggregation_values(f->servers[j], worker, k, &count);

            assert_int_equal(count, f->packings[j].packets[k].length + (size_t)last);
            if (last)
                assert_true(values[count - 1] == (real)flags);
            packed_state_give_values(&layout, f->split.optimizer, k, values);
        }
    }
    assert_memory_equal(network_parameters(f->whole.network), network_parameters(f->split.network),
                        network_parameter_count(f->whole.network) * sizeof(real));
    assert_memory_equal(network_statistics(f->whole.network), network_statistics(f->split.network),
                        network_statistic_count(f->whole.network) * sizeof(real));
}

static void check_together(const char *model, enum optimizer_kind kind, double average, int workers)
{
    struct fixture f;
    real *vectors, *sum;
    const real *rows[WORKERS];

    fixture_make(&f, model, kind, average, workers, 1);
    vectors = calloc(f.total * (size_t)workers, sizeof *vectors);
    sum = calloc(f.total, sizeof *sum);
    for (int w = 0; w < workers; w++)
        rows[w] = vectors + (size_t)w * f.total;
    for (int64_t step = 0; step < STEPS; step++) {
        for (int w = 0; w < workers; w++)
            fill(vectors + (size_t)w * f.total, &f, step, w);
        for (int j = 0; j < SERVERS; j++)
            for (int w = 0; w < workers; w++)
                push_all(&f, j, w, rows[w]);
        for (int j = 0; j < SERVERS; j++)
            for (size_t k = 0; k < f.packings[j].packet_count; k++)
                aggregation_update(f.servers[j], NULL, 0, k, step, TALLY_INT);
        bring_together(&f, 1); /* as the whole still is */
        assert_equal_sides(&f);
        exchange_sum(sum, rows, workers, 0, f.total);
        optimizer_apply(f.whole.optimizer, step, sum, 0, f.total);
        assert_sent(&f, (int)(step % workers), TALLY_INT);
        bring_together(&f, 0);
        assert_equal_sides(&f);
    }
    free(vectors);
    free(sum);
    fixture_free(&f);
}

static void test_together(void **state)
{
    (void)state;
    check_together("lenet", OPTIMIZER_SGD, 0, WORKERS);
    check_together("lenet", OPTIMIZER_MOMENTUM, 0.99, WORKERS);
    check_together("lenet", OPTIMIZER_ADAM, 0, WORKERS);
    check_together("lenet", OPTIMIZER_MOMENTUM, 0, 1);
    check_together("resnet32", OPTIMIZER_MOMENTUM, 0, WORKERS);
    check_together("resnet32", OPTIMIZER_SGD, 0.99, WORKERS);
    check_together("cifar10_cnn", OPTIMIZER_ADAM, 0.99, WORKERS);
}

/* Each push by itself; what was sent to one worker stays while another's push changes the values. */
static void test_alone(void **state)
{
    struct fixture f;
    size_t count;
    real *vector, *kept;
    const real *sent;

    (void)state;
    fixture_make(&f, "resnet32", OPTIMIZER_MOMENTUM, 0.99, WORKERS, 0);
    vector = calloc(f.total, sizeof *vector);
    sent = aggregation_values(f.servers[0], 1, 0, &count);
    kept = calloc(count, sizeof *kept);
    for (int64_t step = 0; step < STEPS; step++) {
        const int worker = step == 1 ? 1 : 2;

        fill(vector, &f, step, worker);
        for (int j = 0; j < SERVERS; j++) {
            push_all(&f, j, worker, vector);
            for (size_t k = 0; k < f.packings[j].packet_count; k++) {
                aggregation_update(f.servers[j], &worker, 1, k, step, 0);
                aggregation_answer(f.servers[j], worker, k, (uint32_t)step);
            }
        }
        optimizer_apply(f.whole.optimizer, step, vector, 0, f.total);
        assert_sent(&f, worker, (uint32_t)step);
        bring_together(&f, 0);
        assert_equal_sides(&f);
        if (step == 1)
            memcpy(kept, sent, count * sizeof *kept);
    }
    assert_memory_equal(sent, kept, count * sizeof *kept);
    assert_memory_not_equal(sent, aggregation_values(f.servers[0], 2, 0, &count), count * sizeof *kept);
    free(vector);
    free(kept);
    fixture_free(&f);
}

/* The sum of some rows, each packet with the weight of its own members; what was answered stays. */
static void test_chosen(void **state)
{
    static const int members[STEPS][WORKERS] = { { 0, 2 }, { 1, 4, 5 }, { 3 }, { 0, 3, 1 } };
    static const int counts[STEPS] = { 2, 3, 1, 3 };
    struct side whole = side_of("resnet32", OPTIMIZER_MOMENTUM, 0.99),
                split = side_of("resnet32", OPTIMIZER_MOMENTUM, 0.99);
    struct fixture f = { .whole = whole, .split = split, .total = network_exchange_count(whole.network) };
    real *vectors = calloc(f.total * 2 * WORKERS, sizeof *vectors), *sum = calloc(f.total, sizeof *sum);
    const real *rows[WORKERS];
    struct packed_state layout;
    size_t count;

    (void)state;
    assert_int_equal(placement_of(&f.placement, whole.network, 1, 0, NULL), OK);
    assert_int_equal(packing_make(&f.packings[0], &f.placement, 0, LIMIT, NULL), OK);
    assert_int_equal(reduction_init(&f.reduction, 2 * WORKERS, 0, NULL), OK);
    assert_int_equal(
        aggregation_new(&f.servers[0], split.optimizer, &f.packings[0], &f.reduction, AGGREGATION_CHOSEN, NULL), OK);
    layout = packed_state_of(split.optimizer, &f.packings[0]);
    for (int r = 0; r < 2 * WORKERS; r++) {
        fill(vectors + (size_t)r * f.total, &f, 0, r);
        push_all(&f, 0, r, vectors + (size_t)r * f.total);
    }
    /* Packet 0 is ahead by all steps. */
    for (size_t k = 0; k < f.packings[0].packet_count; k++)
        for (int64_t step = 0; step < STEPS; step++)
            aggregation_update(f.servers[0], members[step], counts[step], k, step, 0);
    for (int64_t step = 0; step < STEPS; step++) {
        for (int i = 0; i < counts[step]; i++)
            rows[i] = vectors + (size_t)members[step][i] * f.total;
        exchange_sum(sum, rows, counts[step], 0, f.total);
        optimizer_apply(whole.optimizer, step, sum, 0, f.total);
    }
    packed_state_give(&layout, split.optimizer, aggregation_snapshot(f.servers[0], 0, &count));
    assert_equal_sides(&f);

    for (size_t k = 0; k < f.packings[0].packet_count; k++)
        aggregation_answer(f.servers[0], 1, k, TALLY_INT);
    aggregation_update(f.servers[0], members[0], counts[0], 0, STEPS, 0);
    for (size_t k = 0; k < f.packings[0].packet_count; k++)
        packed_state_give_values(&layout, split.optimizer, k, aggregation_values(f.servers[0], 1, k, &count));
    assert_memory_equal(network_parameters(whole.network), network_parameters(split.network),
                        network_parameter_count(whole.network) * sizeof(real));
    assert_true(aggregation_values(f.servers[0], 1, f.packings[0].packet_count - 1, &count)[count - 1] ==
                (real)TALLY_INT);
    aggregation_free(f.servers[0]);
    packing_release(&f.packings[0]);
    reduction_release(&f.reduction);
    placement_release(&f.placement);
    side_free(&whole);
    side_free(&split);
    free(vectors);
    free(sum);
}

/* A server for which there was nothing left. */
static void test_nothing_held(void **state)
{
    struct side s = side_of("lenet", OPTIMIZER_MOMENTUM, 0);
    const struct packing none = { .packet_count = 0 };
    struct reduction reduction;
    struct aggregation *a;
    size_t count;

    (void)state;
    assert_int_equal(reduction_init(&reduction, WORKERS, 0, NULL), OK);
    assert_int_equal(aggregation_new(&a, s.optimizer, &none, &reduction, AGGREGATION_TOGETHER, NULL), OK);
    aggregation_snapshot(a, 0, &count);
    assert_int_equal(count, 0);
    aggregation_free(a);
    aggregation_free(NULL);
    reduction_release(&reduction);
    side_free(&s);
}

static void test_no_memory(void **state)
{
    struct side s = side_of("lenet", OPTIMIZER_MOMENTUM, 0);
    const struct packing none = { .packet_count = 0 };
    struct reduction reduction;
    struct aggregation *a;
    struct error e;

    (void)state;
    assert_int_equal(reduction_init(&reduction, WORKERS, 0, NULL), OK);
    for (enum aggregation_kind kind = AGGREGATION_TOGETHER; kind <= AGGREGATION_CHOSEN; kind++) {
        int rc;

        for (long n = 1;; n++) {
            calls = 0;
            fail_at = n;
            rc = aggregation_new(&a, s.optimizer, &none, &reduction, kind, &e);
            fail_at = 0;
            if (rc == OK)
                break;
            assert_int_equal(rc, ERR_NOMEM);
            assert_string_equal(e.message, "no memory for a server that holds 0 values");
        }
        assert_int_equal(calls, 7 + (kind == AGGREGATION_TOGETHER)); /* all of them failed once */
        aggregation_free(a);
    }
    reduction_release(&reduction);
    side_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_together),     cmocka_unit_test(test_alone),     cmocka_unit_test(test_chosen),
        cmocka_unit_test(test_nothing_held), cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
