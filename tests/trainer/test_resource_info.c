/* Lists of hosts: what is taken, with its counts, and what is refused, with its line. */
#include "trainer/launch/resource_info.h"

#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int parse(struct resource_info *out, const char *text, struct error *e)
{
    memset(e, 0, sizeof *e);
    return resource_info_parse(out, text, strlen(text), "hosts.txt", e);
}

/* wanted: "a 2, b 1" */
static void taken(const char *text, const char *wanted)
{
    struct resource_info r;
    struct error e;
    char found[4096] = "";
    size_t used = 0;

    if (parse(&r, text, &e) != OK)
        fail_msg("'%s': %s", text, e.message);
    for (size_t i = 0; i < r.count; i++)
        used += (size_t)snprintf(found + used, sizeof found - used, "%s%s %d", i ? ", " : "", r.hosts[i].name,
                                 r.hosts[i].devices);
    assert_string_equal(found, wanted);
    resource_info_release(&r);
}

static void test_taken(void **state)
{
    (void)state;
    taken("a", "a 1");
    taken("a\nb\n", "a 1, b 1");
    taken("a:0\n", "a 1");
    taken("a:0,1\nb:0,1,2,3", "a 2, b 4");
    taken("a:0-3\nb:1,4-6,9\n", "a 4, b 5");
    taken("a:7-7\n", "a 1");
    taken("a:0,1023", "a 2");
    taken("z\ny:0\nx", "z 1, y 1, x 1"); /* in their order */
    taken("node-1.example.org:0\n10.0.0.2:0,1\n", "node-1.example.org 1, 10.0.0.2 2");
}

static void test_blanks_and_comments(void **state)
{
    (void)state;
    taken("\n\na\n\n\nb\n\n", "a 1, b 1");
    taken("# all of them\na:0,1 # two\n  # b\n", "a 2");
    taken("a#\n", "a 1");
    taken("  a : 0 , 1 \n\tb:\t0 - 2\n", "a 2, b 3");
    taken("a:0,1\r\nb\r\n\r\n", "a 2, b 1"); /* of Windows */
}

static void refused(const char *text, const char *sentence)
{
    struct resource_info r;
    struct error e;

    assert_int_equal(parse(&r, text, &e), ERR_ARG);
    if (strncmp(e.message, sentence, strlen(sentence)) != 0)
        fail_msg("'%s': '%s', wanted '%s'", text, e.message, sentence);
    assert_null(r.hosts);
}

static void test_no_hosts(void **state)
{
    (void)state;
    refused("", "hosts.txt: lists no host; write one host per line: HOST, or HOST:0,1");
    refused("\n# a\n\n", "hosts.txt: lists no host;");
    refused("a\n :0\n", "hosts.txt:2: no host is before the ':'; write HOST:0,1");
    refused("a b\n", "hosts.txt:1: 'a b' is not a host's name; write one host per line");
    refused("a,b\n", "hosts.txt:1: 'a,b' is not a host's name;");
    refused("a slots=4\n", "hosts.txt:1: 'a slots=4' is not a host's name;"); /* as mpirun has it */
    refused("--help\n", "hosts.txt:1: '--help' cannot be a host's name;");
    refused("a\n\n\nme@b:0\n", "hosts.txt:4: 'me@b' has a user's name; write the host's alone");
    refused("[::1]:0\n", "hosts.txt:1: '[' is not a host's name;");
}

static void test_duplicates(void **state)
{
    (void)state;
    refused("a:0\nb\na:1\n", "hosts.txt:3: 'a' is already listed; write all its devices into one line");
    refused("a\nA\n", "hosts.txt:2: 'A' is already listed;"); /* names of hosts have no case */
    taken("a\nab\n", "a 1, ab 1");
    refused("# x\na:0,1,0\n", "hosts.txt:2: '0' lists a device of this host again; list each once");
    refused("a:0-3,2\n", "hosts.txt:1: '2' lists a device of this host again;");
    refused("a:2,0-3\n", "hosts.txt:1: '0-3' lists a device of this host again;");
    taken("a:0\nb:0\n", "a 1, b 1"); /* of another host */
}

static void test_bad_devices(void **state)
{
    static const char *const rows[][2] = {
        { "a:", "''" },
        { "a:0,", "''" },
        { "a:,0", "''" },
        { "a:x", "'x'" },
        { "a:0 1", "'0 1'" },
        { "a:-1", "'-1'" },
        { "a:1-", "'1-'" },
        { "a:0-1-2", "'0-1-2'" },
        { "a:1024", "'1024'" },
        { "a:0-1024", "'0-1024'" },
        { "a:0:1", "'0:1'" },
        { "a:+1", "'+1'" },
        { "a:1.5", "'1.5'" },
        { "a:0x1", "'0x1'" },
        { "a:99999999999999999999", "'99999999999999999999'" },
    };
    char text[64], wanted[160];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(text, sizeof text, "b:0\n\n%s\nc\n", rows[i][0]);
        snprintf(wanted, sizeof wanted,
                 "hosts.txt:3: %s is not a device; list devices by numbers from 0 to 1023: HOST:0,1 or HOST:0-3",
                 rows[i][1]);
        refused(text, wanted);
    }
    refused("a:3-0", "hosts.txt:1: '3-0' is an empty range; write the smaller number first");
}

/* The first hosts that so many workers need, and the numbers at which they are looked at. */
static void test_first(void **state)
{
    struct resource_info r, first;
    struct error e;
    int counts[RESOURCE_COUNTS_MOST];

    (void)state;
    assert_int_equal(parse(&r, "a:0,1\nb:0-3\nc\nd\ne:5,7\n", &e), OK);
    assert_int_equal(resource_info_workers(&r), 10);
    for (int workers = 1; workers <= 10; workers++) {
        assert_int_equal(resource_info_first(&first, &r, workers, &e), OK);
        assert_int_equal(resource_info_workers(&first), workers);
        assert_int_equal(first.count, workers <= 2 ? 1 : workers <= 6 ? 2 : workers <= 8 ? workers - 4 : 5);
        assert_string_equal(first.hosts[first.count - 1].name, r.hosts[first.count - 1].name);
        resource_info_release(&first);
    }
    assert_int_equal(resource_info_first(&first, &r, 11, &e), ERR_ARG);
    assert_string_equal(e.message, "11 workers are too many for hosts with 10 devices");
    assert_int_equal(resource_info_counts(&r, counts), 5); /* of 1, 2, 4 and 5 hosts, and of a worker alone */
    assert_memory_equal(counts, ((int[]){ 1, 2, 6, 8, 10 }), 5 * sizeof *counts);
    resource_info_release(&r);
    assert_int_equal(parse(&r, "a\n", &e), OK);
    assert_int_equal(resource_info_counts(&r, counts), 1);
    assert_int_equal(counts[0], 1);
    resource_info_release(&r);
    assert_int_equal(parse(&r, "a\nb\n", &e), OK);
    assert_int_equal(resource_info_counts(&r, counts), 2);
    assert_memory_equal(counts, ((int[]){ 1, 2 }), 2 * sizeof *counts);
    resource_info_release(&r);
}

static void test_limits(void **state)
{
    struct resource_info r;
    struct error e = { 0 };
    char *text = malloc((RESOURCE_HOSTS_MOST + 1) * 8 + 1), name[RESOURCE_NAME_MAX + 2];
    size_t n = 0;

    (void)state;
    for (int i = 0; i <= RESOURCE_HOSTS_MOST; i++)
        n += (size_t)snprintf(text + n, 9, "h%06d\n", i);
    assert_int_equal(resource_info_parse(&r, text, n, "hosts.txt", &e), ERR_ARG);
    assert_string_equal(e.message, "hosts.txt:4097: 'h004096' is one host too many; use at most 4096");
    assert_int_equal(resource_info_parse(&r, text, n - 8, "hosts.txt", &e), OK);
    assert_int_equal(r.count, RESOURCE_HOSTS_MOST);
    resource_info_release(&r);
    free(text);
    memset(name, 'a', sizeof name);
    name[RESOURCE_NAME_MAX] = '\0';
    refused(name, "hosts.txt:1: 'aaa");
    name[RESOURCE_NAME_MAX - 1] = '\0';
    assert_int_equal(parse(&r, name, &e), OK);
    assert_int_equal(strlen(r.hosts[0].name), RESOURCE_NAME_MAX - 1);
    resource_info_release(&r);
    assert_int_equal(resource_info_parse(&r, "a\0b\n", 4, "hosts.txt", &e), ERR_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taken),      cmocka_unit_test(test_blanks_and_comments), cmocka_unit_test(test_no_hosts),
        cmocka_unit_test(test_duplicates), cmocka_unit_test(test_bad_devices),         cmocka_unit_test(test_first),
        cmocka_unit_test(test_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
