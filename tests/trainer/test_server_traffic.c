/* Messages between workers and servers with links of their own, by hand: packets of one segment, which takes a second. */
#include "trainer/plan/server_traffic.h"

#include "tests/check.h"
#include "trainer/plan/cost.h"

#include <math.h>

enum { BYTES = 1000 };

static double seconds_on(int per_host, int workers, int servers, const struct traffic_packet *packets, size_t count,
                         double computing)
{
    const struct server_traffic t = { .workers = workers,
                                      .per_host = per_host,
                                      .servers = servers,
                                      .packets = packets,
                                      .count = count,
                                      .computing = computing,
                                      .bandwidth = plan_wire_bytes(1, BYTES),
                                      .latency = 0.25 };
    double seconds;

    assert_int_equal(server_traffic_seconds(&t, &seconds, NULL), OK);
    return seconds;
}

static double seconds_of(int workers, int servers, const struct traffic_packet *packets, size_t count, double computing)
{
    return seconds_on(1, workers, servers, packets, count, computing);
}

static void near(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-9))
        fail_msg("%.17g, wanted %.17g", value, wanted);
}

/* There and back, with what both ends do with it; or as long as a step takes to compute. */
static void test_one_worker(void **state)
{
    const struct traffic_packet packet = { 0, BYTES, 3, 0.5, 0.125, 0.0625, 0 };
    struct traffic_packet half = packet;

    (void)state;
    near(seconds_of(1, 1, &packet, 1, 0), 3 + 0.5 + 1.25 + 0.125 + 1.25 + 0.0625);
    near(seconds_of(1, 1, &packet, 1, 10), 10);
    half.pushed = (double)BYTES / 2.0; /* of the way there */
    near(seconds_of(1, 1, &half, 1, 0),
         seconds_of(1, 1, &packet, 1, 0) - 1 + plan_wire_bytes(1, (double)BYTES / 2.0) / plan_wire_bytes(1, BYTES));
}

/* The second packet comes while the first leaves. */
static void test_packets_overlap(void **state)
{
    const struct traffic_packet packets[] = { { 0, BYTES, 0, 0, 0, 0, 0 }, { 0, BYTES, 0, 0, 0, 0, 0 } };

    (void)state;
    near(seconds_of(1, 1, packets, 2, 0), 3 + 2 * 0.25);
}

/* Each worker begins a second after the one before it, so the last one's packet comes n seconds after the first began;
 * then the first gets its answer. All that is computed makes every step longer. */
static void test_workers_begin_one_after_the_other(void **state)
{
    struct traffic_packet packet = { 0, BYTES, 0, 0, 0, 0, 0 };

    (void)state;
    for (int n = 1; n < 6; n++) {
        packet.final = 0;
        near(seconds_of(n, 1, &packet, 1, 0), n + 1 + 2 * 0.25);
        packet.final = 7;
        near(seconds_of(n, 1, &packet, 1, 0), n + 1 + 2 * 0.25 + 7);
    }
}

/* Two servers have two links, so two workers' packets never wait for each other but at the workers. */
static void test_servers_share_the_traffic(void **state)
{
    const struct traffic_packet packets[] = { { 0, BYTES, 0, 0, 0, 0, 0 }, { 1, BYTES, 0, 0, 0, 0, 0 } };
    const double two = seconds_of(2, 2, packets, 2, 0);

    (void)state;
    assert_true(two >= 2 + 1 + 2 * 0.25);
    assert_true(two <
                seconds_of(2, 1, (struct traffic_packet[]){ packets[0], { 0, BYTES, 0, 0, 0, 0, 0 } }, 2, 0) + 1e-9);
}

/* Workers of a host share its link, which carries the packets of all of them; with one server they wait for that. */
static void test_workers_of_a_host(void **state)
{
    const struct traffic_packet packets[] = { { 0, BYTES, 0, 0, 0, 0, 0 }, { 1, BYTES, 0, 0, 0, 0, 0 } };

    (void)state;
    near(seconds_on(2, 2, 1, packets, 1, 0), seconds_of(2, 1, packets, 1, 0));
    near(seconds_on(2, 2, 2, packets, 2, 0), 4 + 0.25 + 2 + 0.25); /* all four, then a server's two answers */
    near(seconds_of(2, 2, packets, 2, 0), 2 + 0.25 + 2 + 0.25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_worker),
        cmocka_unit_test(test_packets_overlap),
        cmocka_unit_test(test_workers_begin_one_after_the_other),
        cmocka_unit_test(test_servers_share_the_traffic),
        cmocka_unit_test(test_workers_of_a_host),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
