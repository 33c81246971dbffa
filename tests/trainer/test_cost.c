/* What a step costs, by hand: the formulas of strategies.md, 8.1, where nothing overlaps, and the parts that do. */
#include "trainer/plan/cost.h"

#include "tests/check.h"
#include "trainer/collective/tally.h"

#include <math.h>

enum { ELEMENTS = 16384 };

#define BANDWIDTH 1e6
#define LATENCY 0.01
#define TALLY ((double)sizeof(struct tally_part))

static void near(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-9 * fabs(wanted) + 1e-12))
        fail_msg("%.17g, wanted %.17g", value, wanted);
}

/* One bucket, nothing is computed, nothing takes processor time. */
static struct plan_work bare_work(void)
{
    return (struct plan_work){ .elements = ELEMENTS, .batch = 10, .bucket_bytes = 4 * ELEMENTS, .overlap = 1 };
}

static struct plan_machine bare_machine(void)
{
    return (struct plan_machine){ .network = { LATENCY, BANDWIDTH }, .memory = { 0, INFINITY }, .bus = INFINITY };
}

static struct plan_shape shape(int workers, int per_host, int servers)
{
    return (struct plan_shape){ .workers = workers, .per_host = per_host, .servers = servers };
}

static struct plan_cost cost_of(const char *name, const struct plan_work *w, const struct plan_machine *m,
                                struct plan_shape s)
{
    struct plan_cost c;

    assert_non_null(plan_strategy_find(name));
    assert_int_equal(plan_cost(plan_strategy_find(name), w, m, &s, &c, NULL), OK);
    return c;
}

static void test_headers(void **state)
{
    (void)state;
    near(plan_wire_bytes(1, 1448), 1448 + 66 + 33);
    near(plan_wire_bytes(3, 1449), 3 * (1449 + 2 * (66 + 33)));
    near(plan_wire_bytes(5, 0), 0);
    near(plan_wire_rate(1448e3), 1514e3);
}

static void test_alone(void **state)
{
    struct plan_work w = bare_work();
    const struct plan_machine m = bare_machine();
    static const char *const names[] = { "mpi", "ring", "mirrored", "mirrored:weights=shared" };

    (void)state;
    w.forward = 1;
    w.backward = 2;
    w.update = 0.5;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct plan_cost c = cost_of(names[i], &w, &m, shape(1, 1, 0));

        near(c.seconds, 3.5);
        near(c.samples, 10 / 3.5);
        near(c.bytes, 0);
        assert_int_equal(c.limit, PLAN_COMPUTE);
    }
}

/* 2 (M - 1) / M D, and two latencies: each host's slices, then the sums. */
static void test_allreduce_between_hosts(void **state)
{
    const struct plan_work w = bare_work();
    const struct plan_machine m = bare_machine();
    const double all = 4.0 * (double)ELEMENTS;

    (void)state;
    for (int hosts = 2; hosts <= 8; hosts *= 2)
        for (int group = 1; group <= 2; group++) {
            const struct plan_cost c = cost_of("mpi", &w, &m, shape(hosts * group, group, 0));
            const double slices = plan_wire_bytes((hosts - 1) * group, all / hosts / group);

            near(c.bytes, 2 * (hosts - 1.0) / hosts * all + (hosts - 1) * group * TALLY);
            near(c.seconds, 2 * (slices / BANDWIDTH + LATENCY) + (hosts - 1) * group * TALLY / BANDWIDTH);
            assert_int_equal(c.limit, PLAN_WIRE);
        }
}

/* 2 (n - 1) latencies. */
static void test_ring(void **state)
{
    const struct plan_work w = bare_work();
    const struct plan_machine m = bare_machine();

    (void)state;
    for (int n = 2; n <= 8; n *= 2) {
        const struct plan_cost c = cost_of("ring", &w, &m, shape(n, 1, 0));

        near(c.bytes, 2 * (n - 1.0) / n * 4 * (double)ELEMENTS + (n - 1) * TALLY);
        near(c.seconds, (plan_wire_bytes(2 * (n - 1), 4.0 * (double)ELEMENTS / n) + (n - 1) * TALLY) / BANDWIDTH +
                            2 * (n - 1) * LATENCY);
    }
}

/* On one host each rank reads what all have of its slice: D bytes; the bus is shared. */
static void test_allreduce_in_memory(void **state)
{
    struct plan_work w = bare_work();
    struct plan_machine m = bare_machine();
    struct plan_cost c;

    (void)state;
    m.add = 1e-9;
    c = cost_of("mpi", &w, &m, shape(4, 4, 0));
    near(c.seconds, 4 * ELEMENTS * 1e-9);
    near(c.bytes, 2 * 0.75 * 4 * (double)ELEMENTS + 3 * TALLY);
    assert_int_equal(c.limit, PLAN_ADDING);
    m.bus = 2e9;
    near(cost_of("mpi", &w, &m, shape(4, 4, 0)).seconds, 4 * 4 * ELEMENTS / 2e9);
    w.forward = 1;
    m.cores = 2; /* of 4 ranks each computes half of the time */
    near(cost_of("mpi", &w, &m, shape(4, 4, 0)).seconds, 2 + 4 * 4 * ELEMENTS / 2e9);
}

/* The last of four buckets is all that is seen of the exchange where backward takes longer than the wire. */
static void test_overlap(void **state)
{
    struct plan_work w = bare_work();
    const struct plan_machine m = bare_machine();
    const double slice = plan_wire_bytes(1, ELEMENTS / 2);

    (void)state;
    w.bucket_bytes = ELEMENTS;
    w.forward = 1;
    w.backward = 8;
    near(cost_of("mpi", &w, &m, shape(2, 1, 0)).seconds, 9 + 2 * (slice / BANDWIDTH + LATENCY) + TALLY / BANDWIDTH);
    w.overlap = 0;
    near(cost_of("mpi", &w, &m, shape(2, 1, 0)).seconds, 9 + (8 * slice + TALLY) / BANDWIDTH + LATENCY);
}

static void test_final_at(void **state)
{
    const struct plan_final finals[] = { { 100, 0 }, { 60, 0.25 }, { 0, 1 } };
    struct plan_work w = { .elements = 100, .forward = 1, .backward = 2, .overlap = 1 };

    (void)state;
    near(plan_final_at(&w, 100), 1);
    near(plan_final_at(&w, 25), 1 + 0.75 * 2);
    w.finals = finals;
    w.final_count = 3;
    near(plan_final_at(&w, 60), 1.5);
    near(plan_final_at(&w, 59), 3);
    w.overlap = 0;
    near(plan_final_at(&w, 100), 3);
}

/* n workers and one server, a packet of one segment: the last worker begins when the n answers have left; its gradients
 * come a message later than those of the others, and the first worker waits for one answer. */
static void test_one_server(void **state)
{
    struct plan_work w = bare_work();
    const struct plan_machine m = bare_machine();
    const double message = plan_wire_bytes(1, 1024) / BANDWIDTH;
    struct plan_cost c;

    (void)state;
    w.elements = 256;
    for (int n = 1; n <= 8; n *= 2) {
        c = cost_of("ps", &w, &m, shape(n, 1, 1));
        near(c.bytes, n * 1024);
        near(c.seconds, (n + 1) * message + 2 * LATENCY);
        assert_int_equal(c.on_server, n > 1);
    }
    assert_int_equal(c.limit, PLAN_LATENCY);
}

/* n D come over the server's link while n D leave: more packets are better, but never as good as if all workers began
 * together. */
static void test_packets_of_one_server(void **state)
{
    struct plan_work w = bare_work();
    const struct plan_machine m = bare_machine();
    const double all = plan_wire_bytes(4, 4.0 * (double)ELEMENTS) / BANDWIDTH;
    double before = 2 * all + 2 * LATENCY;

    (void)state;
    for (size_t packets = 4; packets <= 64; packets *= 4) {
        struct plan_cost c;

        w.bucket_bytes = 4 * ELEMENTS / packets;
        c = cost_of("ps", &w, &m, shape(4, 1, 1));
        near(c.bytes, 4 * 4 * ELEMENTS);
        assert_int_equal(c.limit, PLAN_SERVER);
        assert_true(c.seconds < before);
        assert_true(c.seconds > all * (1 + 1.0 / (double)packets) + 2 * LATENCY);
        before = c.seconds;
    }
}

/* As many servers on hosts of their own as workers: no link carries much more than D. */
static void test_servers_apart(void **state)
{
    enum { FEW = 1025 }; /* a packet leaves at once */
    struct plan_work w = bare_work();
    const struct plan_machine m = bare_machine();
    struct plan_cost c = cost_of("ps", &w, &m, shape(4, 1, 4));

    (void)state;
    near(c.bytes, 4 * 4 * (ELEMENTS / 4 + 1)); /* the batch's weight goes to every server */
    w.elements = FEW;
    c = cost_of("ps", &w, &m, shape(4, 1, 4));
    near(c.seconds, 2 * (plan_wire_bytes(4, 4 * (FEW / 4 + 1)) / BANDWIDTH + LATENCY));
}

/* Gradients as bfloat16 are half as many bytes, but for the batch's weight; new values are float32. */
static void test_servers_and_bfloat16(void **state)
{
    enum { FEW = 1025 };
    struct plan_work w = bare_work(), whole = w;
    const struct plan_machine m = bare_machine();
    const double values = 4 * (FEW / 4 + 1), pushes = 2 * (FEW / 4) + 4;
    const double saved = (plan_wire_bytes(4, values) - plan_wire_bytes(4, pushes)) / BANDWIDTH;
    struct plan_cost c, before;

    (void)state;
    w.elements = whole.elements = FEW;
    w.rounded = FEW - 1;
    before = cost_of("ps", &whole, &m, shape(4, 1, 4));
    c = cost_of("ps", &w, &m, shape(4, 1, 4));
    near(c.bytes, before.bytes); /* a link carries as many one way */
    assert_true(c.seconds < before.seconds && c.seconds >= before.seconds - saved);
    c = cost_of("ps", &w, &m, shape(4, 1, 0));
    near(c.bytes, 3 * pushes + 3 * values);
    near(c.seconds, (plan_wire_bytes(3, pushes) + plan_wire_bytes(3, values)) / BANDWIDTH + 2 * LATENCY);
}

/* The workers of a host push their sum, so a host's link carries D however many there are; not asynchronously. */
static void test_servers_and_local_aggregation(void **state)
{
    struct plan_work w = bare_work();
    struct plan_machine m = bare_machine();
    const struct plan_cost apart = cost_of("ps", &w, &m, shape(2, 1, 1));
    const struct plan_cost beside = cost_of("ps", &w, &m, shape(4, 1, 0));

    (void)state;
    near(cost_of("ps", &w, &m, shape(6, 3, 1)).bytes, apart.bytes);
    near(cost_of("ps", &w, &m, shape(6, 3, 1)).seconds, apart.seconds);
    near(cost_of("ps", &w, &m, shape(8, 2, 0)).bytes, beside.bytes);
    near(cost_of("ps", &w, &m, shape(8, 2, 0)).seconds, beside.seconds);
    near(cost_of("ps:async", &w, &m, shape(6, 3, 1)).bytes, 4 * ELEMENTS);
    m.add = 1e-6; /* two vectors on each host, then two at the server, and the values are taken */
    w.elements = 256;
    near(cost_of("ps", &w, &m, shape(4, 2, 1)).seconds - cost_of("ps", &w, &m, shape(2, 1, 1)).seconds, 2 * 1024e-6);
}

/* 2 (n - 1) / n D each way: as the all-reduce. */
static void test_servers_beside_workers(void **state)
{
    const struct plan_work w = bare_work();
    const struct plan_machine m = bare_machine();
    const struct plan_cost c = cost_of("ps", &w, &m, shape(4, 1, 0));

    (void)state;
    near(c.bytes, 2 * 3 * 4 * (ELEMENTS / 4 + 1));
    near(c.seconds, 2 * (plan_wire_bytes(3, 4 * (ELEMENTS / 4 + 1)) / BANDWIDTH + LATENCY));
}

/* Each at its own pace, until the server's link is full: one push of D at a time. */
static void test_async(void **state)
{
    struct plan_work w = bare_work();
    const struct plan_machine m = bare_machine();
    const double wire = plan_wire_bytes(1, 4.0 * (double)ELEMENTS) / BANDWIDTH;
    struct plan_cost c;

    (void)state;
    w.forward = 1;
    c = cost_of("ps:async", &w, &m, shape(2, 1, 1));
    near(c.steps, 2 / (1 + 2 * (wire + LATENCY)));
    near(c.samples, 10 * c.steps);
    near(c.bytes, 4 * ELEMENTS);
    assert_int_equal(c.limit, PLAN_COMPUTE);
    c = cost_of("ps:async", &w, &m, shape(64, 1, 1));
    near(c.steps, 1 / wire);
    assert_int_equal(c.limit, PLAN_SERVER);
}

/* 1000 rows of 16 bytes, of which a worker uses 500: two workers of a host use 750, which it asks for and pushes once. */
static void test_hybrid(void **state)
{
    struct plan_work w = bare_work(), rounded = w;
    const struct plan_machine m = bare_machine();
    const double dense = cost_of("mpi", &w, &m, shape(4, 2, 0)).seconds;
    const struct plan_cost without = cost_of("hybrid", &w, &m, shape(4, 2, 0));
    struct plan_cost c;
    double names, values, sums;

    (void)state;
    near(without.seconds, dense); /* no table: as mpi */
    w.elements += 4000;
    w.rows = (struct plan_rows){ 1000, 16, 500 };
    c = cost_of("hybrid", &w, &m, shape(4, 2, 0));
    names = 750 * 4 / 2.0, values = 750 * 16 / 2.0, sums = 750 * 20 / 2.0; /* half of the rows are on the other host */
    near(c.bytes, without.bytes + names + values + sums);
    near(c.seconds,
         dense + 3 * LATENCY +
             (plan_wire_bytes(1, names) + plan_wire_bytes(1, values) + plan_wire_bytes(1, sums)) / BANDWIDTH);
    rounded.rounded = rounded.elements - 1; /* rows stay float32, and so does the batch's weight */
    w.rounded = w.elements - 1;
    near(cost_of("hybrid", &w, &m, shape(4, 2, 0)).bytes,
         cost_of("mpi", &rounded, &m, shape(4, 2, 0)).bytes + names + values + sums);
    w.rounded = 0;
    w.apart = 1; /* two workers of a host, each for itself */
    near(cost_of("hybrid", &w, &m, shape(4, 2, 0)).bytes, without.bytes + 500 * 4 + 500 * 16 + 500 * 20);
    near(cost_of("hybrid", &w, &m, shape(4, 2, 1)).bytes, without.bytes + 2 * 500 * 24);
    w.apart = 0;
    c = cost_of("hybrid", &w, &m, shape(4, 2, 1)); /* the link of a host of two workers carries most */
    near(c.bytes, without.bytes + 750 * 24);
    assert_false(c.on_server);
    w.elements = 4001; /* that of the server: what two hosts name and push */
    c = cost_of("hybrid", &w, &m, shape(4, 2, 1));
    near(c.bytes, 2 * 750 * 24);
    assert_int_equal(c.limit, PLAN_SERVER);
}

/* Each of two workers of a host sends its 500 rows, and their numbers, to both workers of the other host. */
static void test_gathered_rows(void **state)
{
    static const char name[] = "mpi:sparse-exchange=all-gather";
    const struct plan_work without = bare_work();
    struct plan_work w = without;
    const struct plan_machine m = bare_machine();
    const struct plan_cost dense = cost_of("mpi", &w, &m, shape(4, 2, 0));
    struct plan_cost c;

    (void)state;
    near(cost_of(name, &w, &m, shape(4, 2, 0)).seconds, dense.seconds); /* no table: as mpi */
    w.elements += 4000;
    w.rows = (struct plan_rows){ 1000, 16, 500 };
    c = cost_of(name, &w, &m, shape(4, 2, 0));
    near(c.bytes, dense.bytes + 2 * 2 * 500 * 20);
    near(c.seconds, dense.seconds + LATENCY + plan_wire_bytes(4, 500 * 20) / BANDWIDTH);
    near(cost_of(name, &w, &m, shape(3, 3, 0)).bytes,
         cost_of("mpi", &without, &m, shape(3, 3, 0)).bytes + 2 * 500 * 20);
    near(cost_of(name, &w, &m, shape(1, 1, 0)).bytes, 0);
}

/* The server's rank reads what all workers name and the sums of all of them, and writes what they use. */
static void test_hybrid_on_one_host(void **state)
{
    struct plan_work w = bare_work();
    const struct plan_machine m = bare_machine();
    const struct plan_shape shapes[] = { shape(2, 2, 0), shape(2, 3, 1) };

    (void)state;
    w.elements = 4001;
    w.rows = (struct plan_rows){ 1000, 16, 500 };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        near(cost_of("hybrid", &w, &m, shapes[i]).bytes, 2 * 500 * 24);
}

/* ps sends the rows of tables alone, too, beside the packets of all else. */
static void test_servers_of_rows(void **state)
{
    struct plan_work w = bare_work();
    const struct plan_machine m = bare_machine();
    const struct extent dense = { 0, ELEMENTS - 1 };
    static const char *const names[] = { "ps", "ps:async" };

    (void)state;
    w.variables = &dense;
    w.variable_count = 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const int updates = i ? 4 : 1; /* of four workers' pushes */
        struct plan_work rows = w;

        rows.elements += 4000;
        rows.rows = (struct plan_rows){ 1000, 16, 500 };
        near(cost_of(names[i], &rows, &m, shape(4, 1, 1)).bytes,
             cost_of(names[i], &w, &m, shape(4, 1, 1)).bytes + 4 * 500 * 24.0 / updates);
        near(cost_of(names[i], &rows, &m, shape(4, 1, 0)).bytes,
             cost_of(names[i], &w, &m, shape(4, 1, 0)).bytes + 0.75 * 500 * 40 / updates);
        near(cost_of(names[i], &rows, &m, shape(1, 1, 1)).seconds - cost_of(names[i], &w, &m, shape(1, 1, 1)).seconds,
             3 * LATENCY +
                 (plan_wire_bytes(1, 2000) + plan_wire_bytes(1, 8000) + plan_wire_bytes(1, 10000)) / BANDWIDTH);
        /* many asynchronous workers keep the link of the server busy with what they name and push */
        near(i ? 1 / cost_of(names[i], &rows, &m, shape(64, 1, 1)).steps -
                     1 / cost_of(names[i], &w, &m, shape(64, 1, 1)).steps
               : 0,
             i ? (plan_wire_bytes(1, 2000) + plan_wire_bytes(1, 10000)) / BANDWIDTH : 0);
    }
}

/* Hosts with 3, 1 and 2 workers: sums are exchanged in one lane; without local aggregation the first host sends most. */
static void test_uneven_hosts(void **state)
{
    struct plan_work w = bare_work();
    const struct plan_machine m = bare_machine();
    const struct plan_shape uneven = { .workers = 6, .per_host = 3, .hosts = 3, .fewest = 1 };
    const double held = cost_of("ps", &w, &m, shape(3, 1, 0)).bytes / 4; /* by a server */
    struct plan_cost c = cost_of("mpi", &w, &m, uneven);

    (void)state;
    near(c.bytes, 2 * 2 / 3.0 * 4 * (double)ELEMENTS + 2 * 2 * TALLY);
    near(c.seconds, 2 * (plan_wire_bytes(2, 4 * ELEMENTS / 3.0) / BANDWIDTH + LATENCY) + 2 * 3 * TALLY / BANDWIDTH);
    near(cost_of("ps", &w, &m, uneven).bytes, 4 * held);
    w.apart = 1; /* three workers push to two servers; three are answered */
    near(cost_of("ps", &w, &m, uneven).bytes, (3 * 2 + 3) * held);
    w.bucket_bytes = 8 * ELEMENTS;
    near(cost_of("ps", &w, &m, uneven).seconds,
         (plan_wire_bytes(6, held) + plan_wire_bytes(3, held)) / BANDWIDTH + 2 * LATENCY);
}

/* Device 0 alone: n times the bytes of the ring. */
static void test_devices(void **state)
{
    const struct plan_work w = bare_work();
    struct plan_machine m = bare_machine();
    const double all = 4.0 * (double)ELEMENTS;

    (void)state;
    m.devices = 1;
    for (int n = 2; n <= 8; n *= 2) {
        near(cost_of("mirrored:weights=shared", &w, &m, shape(n, n, 0)).seconds,
             2 * (n - 1) * all / BANDWIDTH + 2 * LATENCY);
        near(cost_of("mirrored", &w, &m, shape(n, n, 0)).seconds,
             2 * (n - 1.0) / n * all / BANDWIDTH + 2 * (n - 1) * LATENCY);
    }
}

/* Threads: the bus carries all vectors; shared weights are updated in slices. */
static void test_threads(void **state)
{
    struct plan_work w = bare_work();
    struct plan_machine m = bare_machine();

    (void)state;
    m.add = 1e-9;
    m.bus = 2e9;
    w.update = 1;
    near(cost_of("mirrored", &w, &m, shape(4, 4, 0)).seconds, 1 + 4 * 4 * ELEMENTS / 2e9);
    near(cost_of("mirrored:weights=shared", &w, &m, shape(4, 4, 0)).seconds, 0.25 + 4 * 4 * ELEMENTS / 2e9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_allreduce_between_hosts),
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_allreduce_in_memory),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_final_at),
        cmocka_unit_test(test_one_server),
        cmocka_unit_test(test_packets_of_one_server),
        cmocka_unit_test(test_servers_apart),
        cmocka_unit_test(test_servers_and_bfloat16),
        cmocka_unit_test(test_servers_beside_workers),
        cmocka_unit_test(test_servers_and_local_aggregation),
        cmocka_unit_test(test_async),
        cmocka_unit_test(test_gathered_rows),
        cmocka_unit_test(test_hybrid),
        cmocka_unit_test(test_hybrid_on_one_host),
        cmocka_unit_test(test_servers_of_rows),
        cmocka_unit_test(test_uneven_hosts),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
