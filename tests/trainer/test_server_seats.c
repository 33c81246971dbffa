/* The last ranks of each host as servers, however the launcher placed the ranks. */
#include "trainer/server/server_seats.h"

#include "tests/check.h"

#include <stdio.h>
#include <string.h>

enum { RANKS_MOST = 16 };

/* One letter per rank: its host. */
static void place(struct process *places, const char *hosts)
{
    memset(places, 0, RANKS_MOST * sizeof *places);
    for (size_t r = 0; hosts[r]; r++) {
        snprintf(places[r].host, sizeof places[r].host, "%c", hosts[r]);
        snprintf(places[r].boot, sizeof places[r].boot, "boot");
    }
}

/* wanted: the launcher's numbers in their new order, then "|" before the first server */
static void seated(const char *hosts, int per_host, const char *wanted)
{
    struct process places[RANKS_MOST];
    const int count = (int)strlen(hosts);
    char found[128] = "";
    int order[RANKS_MOST], servers;
    struct error e = { 0 };

    place(places, hosts);
    if ((servers = server_seats(places, count, per_host, order, &e)) < 0)
        fail_msg("%s: %s", hosts, e.message);
    for (int i = 0; i < count; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%d",
                 i == count - servers ? "|"
                 : i                  ? " "
                                      : "",
                 order[i]);
    assert_string_equal(found, wanted);
}

static void test_orders(void **state)
{
    (void)state;
    seated("aa", 1, "0|1");
    seated("aaaa", 1, "0 1 2|3");
    seated("aabb", 1, "0 2|1 3");       /* by host */
    seated("abab", 1, "0 1|2 3");       /* in turns */
    seated("aabbab", 1, "0 1 2 3|4 5"); /* as trainer/launch places them */
    seated("bababa", 2, "0 1|2 3 4 5");
    seated("aaabbcccc", 1, "0 1 3 5 6 7|2 4 8");
    seated("cabcab", 1, "0 1 2|3 4 5");
    seated("aaabbb", 2, "0 3|1 2 4 5");
}

static void test_too_few(void **state)
{
    struct process places[RANKS_MOST];
    struct error e = { 0 };
    int order[RANKS_MOST];

    (void)state;
    place(places, "aab");
    assert_int_equal(server_seats(places, 3, 1, order, &e), ERR_ARG);
    assert_string_equal(e.message,
                        "--servers-per-host 1 leaves no worker on host b, which has 1 rank; start at least 2 "
                        "on each host");
    assert_int_equal(server_seats(places, 2, 2, order, NULL), ERR_ARG);
    assert_int_equal(server_seats(places, 2, 1, order, NULL), 1);
}

/* Hosts of one name are several if they were not started together. */
static void test_one_name(void **state)
{
    struct process places[RANKS_MOST];
    int order[RANKS_MOST];

    (void)state;
    place(places, "aaaa");
    strcpy(places[2].boot, "another");
    strcpy(places[3].boot, "another");
    assert_int_equal(server_seats(places, 4, 1, order, NULL), 2);
    assert_int_equal(order[1], 2);
    assert_int_equal(order[2], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_orders), cmocka_unit_test(test_too_few),
                                        cmocka_unit_test(test_one_name) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
