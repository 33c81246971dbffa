/* Measurements, as people write them and as trainer compare does. */
#include "trainer/plan/planning.h"

#include "tests/check.h"

#include <string.h>

static int parse(struct measured *m, const char *text, struct error *e)
{
    return measured_parse(m, text, strlen(text), "m.csv", e);
}

static void takes(const char *text, const char *strategy, int workers, double steps)
{
    struct error e = { 0 };
    struct measured m;

    if (parse(&m, text, &e) < 0)
        fail_msg("%s", e.message);
    assert_int_equal(m.count, 1);
    assert_string_equal(m.items[0].strategy->name, strategy);
    assert_int_equal(m.items[0].workers, workers);
    assert_true(m.items[0].steps == steps);
    measured_release(&m);
}

static void test_csv(void **state)
{
    (void)state;
    takes("strategy,ranks,steps_per_second\nmpi,4,8.5\n", "mpi", 4, 8.5);
    takes("strategy,ranks,steps_per_second\r\nmpi,4,8.5\r\n\r\n", "mpi", 4, 8.5);
    takes("strategy,ranks,steps_per_second\nmpi,4,8.5", "mpi", 4, 8.5);
    takes("cell,steps_per_second,strategy,workers,ranks,note\n\"a, b\",2,ps:async,3,4,\"\n", "ps:async", 3, 2);
    takes("strategy,ranks,steps_per_second\nsingle,1,2\nps:async:staleness=2,4,1e1\nps,3,\n", "ps:async", 4, 10);
    takes("strategy,ranks,steps_per_second\nmirrored:weights=shared,4,1\n", "mirrored:weights=shared", 4, 1);
    takes("strategy,ranks,steps_per_second\nmirrored:weights=copied,4,1\n", "mirrored", 4, 1);
}

static void test_json(void **state)
{
    (void)state;
    takes("[{\"strategy\": \"ring\", \"ranks\": 2, \"steps_per_second\": 3}]", "ring", 2, 3);
    takes("{\"strategy\":\"ring\",\"ranks\":2,\"steps_per_second\":3}\n{\"strategy\":\"x\",\"ranks\":2,"
          "\"steps_per_second\":3}\n",
          "ring", 2, 3);
    takes("{\"type\":\"trainer-compare\",\"cells\":[\n{\"cell\":\"ps-5\",\"strategy\":\"ps\",\"workers\":4,\"ranks\":5,"
          "\"steps_per_second\":{\"median\":7.5,\"least\":7,\"most\":8}},\n{\"strategy\":\"mpi\",\"workers\":4,"
          "\"steps_per_second\":null}]}\n",
          "ps", 4, 7.5);
}

static void refuses(const char *text, const char *wanted)
{
    struct error e = { 0 };
    struct measured m;

    assert_int_equal(parse(&m, text, &e), ERR_ARG);
    if (!strstr(e.message, wanted))
        fail_msg("%s, wanted %s", e.message, wanted);
    assert_null(m.items);
}

static void test_refused(void **state)
{
    (void)state;
    refuses("", "m.csv: no measurements");
    refuses("strategy,ranks\nmpi,4\n", "m.csv:1: no columns strategy, ranks and steps_per_second");
    refuses("strategy,ranks,steps_per_second\nmpi,four,8\n", "m.csv:2: 'four' is not a number of workers");
    refuses("strategy,ranks,steps_per_second\nmpi,4,8\nmpi,8,fast\n", "m.csv:3: 'fast' is not a number of steps");
    refuses("strategy,ranks,steps_per_second\nmpi,0,8\n", "m.csv:2: 0 workers");
    refuses("strategy,ranks,steps_per_second\nmpi,4,-1\n", "m.csv:2: -1 steps a second");
    refuses("strategy,ranks,steps_per_second\nsingle,1,8\n", "m.csv: no measurements");
    refuses("[{\"strategy\": \"mpi\"}]", "m.csv:1: an object without");
    refuses("[{\"strategy\": \"mpi\",\n \"ranks\": }]", "m.csv:2: not JSON");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
