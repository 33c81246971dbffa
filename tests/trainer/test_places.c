/* Ranks as sentences name them. */
#include "trainer/collective/places.h"

#include "tests/check.h"

#include <string.h>

static const struct process two_hosts[] = { { .host = "a", .boot = "1" },
                                            { .host = "a", .boot = "1" },
                                            { .host = "b", .boot = "2" },
                                            { .host = "b", .boot = "2" } };

static void assert_text(const struct process *places, const char *marks, const char *wanted)
{
    struct buffer text = BUFFER_EMPTY;
    int marked = 0;

    for (const char *m = marks; *m; m++)
        marked += *m == 'x';
    assert_int_equal(places_text(&text, places, marks, (int)strlen(marks), 'x'), marked);
    assert_string_equal(buffer_text(&text), wanted);
    buffer_release(&text);
}

static void test_text(void **state)
{
    (void)state;
    assert_text(two_hosts, "....", "");
    assert_text(two_hosts, "..x.", "rank 2 on host b");
    assert_text(two_hosts, "xx..", "ranks 0, 1 on host a");
    assert_text(two_hosts, ".xxx", "ranks 1 on host a, 2, 3 on host b");
    assert_text(NULL, ".x", "rank 1");
    assert_text(NULL, "x.x", "ranks 0, 2");
}

/* How many have the word before that rank, on hosts "aabb". */
static int before(int rank, const char *marks)
{
    char late[4];

    for (int r = 0; r < 4; r++)
        late[r] = marks[r] == 'x';
    return places_before(two_hosts, late, 4, rank);
}

static void test_before(void **state)
{
    static const struct process apart[] = { { .host = "a" }, { .host = "b" }, { .host = "c" } };

    (void)state;
    assert_int_equal(before(1, "x..."), 0); /* of the same host */
    assert_int_equal(before(3, "..x."), 0);
    assert_int_equal(before(2, "x..."), 2); /* rank 1 sees more, and so do those of its own host */
    assert_int_equal(before(0, "...x"), 1); /* rank 2 sees more */
    assert_int_equal(before(1, "...x"), 2);
    assert_int_equal(before(0, "..xx"), 2); /* one of them may wait for the other */
    assert_int_equal(before(1, "..xx"), 3);
    assert_int_equal(before(2, "xx.."), 2);
    assert_int_equal(before(0, ".xx."), 4);
    assert_int_equal(before(3, ".xx."), 5);
    assert_int_equal(before(0, ".xxx"), 4);
    assert_int_equal(places_before(apart, (const char[]){ 0, 0, 1 }, 3, 0), 0); /* alone on its host */
    assert_int_equal(places_before(apart, (const char[]){ 0, 0, 1 }, 3, 1), 1);
    assert_int_equal(places_before(apart, (const char[]){ 0, 1, 1 }, 3, 0), 4);
    assert_int_equal(places_before(apart, (const char[]){ 0, 0, 0 }, 3, 2), 1);
}

static void test_one_host(void **state)
{
    const struct process other_boot[] = { { .host = "a", .boot = "1" }, { .host = "a", .boot = "2" } };

    (void)state;
    assert_int_equal(places_one_host(two_hosts, 2), 1);
    assert_int_equal(places_one_host(two_hosts, 3), 0);
    assert_int_equal(places_one_host(other_boot, 2), 0);
}

static void assert_roles(const char *hosts, int workers, const char *wanted)
{
    struct process places[16] = { { .host = "" } };
    struct buffer text = BUFFER_EMPTY;

    for (size_t r = 0; hosts[r]; r++)
        places[r].host[0] = hosts[r];
    places_roles(&text, places, (int)strlen(hosts), workers);
    assert_string_equal(buffer_text(&text), wanted);
    buffer_release(&text);
}

static void test_roles(void **state)
{
    (void)state;
    assert_roles("a", 1, "1 host: a: worker 0");
    assert_roles("aab", 3, "2 hosts: a: workers 0-1; b: worker 2");
    assert_roles("aabab", 3, "2 hosts: a: workers 0-1, server 3; b: worker 2, server 4");
    assert_roles("baabbb", 4, "2 hosts: b: workers 0, 3, servers 4-5; a: workers 1-2");
    assert_roles("aab", 2, "2 hosts: a: workers 0-1; b: server 2");
    assert_roles("abcabcab", 6, "3 hosts: a: workers 0, 3, server 6; b: workers 1, 4, server 7; c: workers 2, 5");
}

static void test_json(void **state)
{
    static const struct process places[] = { { .host = "b" }, { .host = "a" }, { .host = "b" }, { .host = "b" } };
    struct buffer text = BUFFER_EMPTY;

    (void)state;
    places_json(&text, places, 4, 3);
    assert_string_equal(buffer_text(&text), "[{\"host\": \"b\", \"workers\": [0, 2], \"servers\": [3]}, "
                                            "{\"host\": \"a\", \"workers\": [1], \"servers\": []}]");
    buffer_clear(&text);
    places_json(&text, NULL, 0, 0);
    assert_string_equal(buffer_text(&text), "[]");
    buffer_release(&text);
}

/* Whoever has the word first waits no longer; each other waits longer than those before. */
static void test_precedence(void **state)
{
    (void)state;
    assert_true(places_precedence(60, 0) == 0);
    assert_true(places_precedence(60, 1) == 9);
    assert_true(places_precedence(60, 4) == 18);
}

static void test_hosts(void **state)
{
    static const struct process scattered[] = { { .host = "b", .boot = "1" },
                                                { .host = "a", .boot = "1" },
                                                { .host = "b", .boot = "1" },
                                                { .host = "b", .boot = "2" },
                                                { .host = "a", .boot = "1" } };
    static const int wanted[] = { 0, 1, 0, 2, 1 };
    int hosts[5];

    (void)state;
    assert_int_equal(places_hosts(two_hosts, 4, hosts), 2);
    assert_int_equal(hosts[1], 0);
    assert_int_equal(hosts[2], 1);
    assert_int_equal(places_hosts(scattered, 5, hosts), 3);
    assert_memory_equal(hosts, wanted, sizeof wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_text),      cmocka_unit_test(test_hosts),
                                        cmocka_unit_test(test_before),    cmocka_unit_test(test_one_host),
                                        cmocka_unit_test(test_roles),     cmocka_unit_test(test_json),
                                        cmocka_unit_test(test_precedence) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
