/* What names of event files say. */
#include "eventlog/format/log_name.h"

#include "tests/check.h"

static void test_writer(void **state)
{
    static const struct {
        const char *path, *host;
        int64_t process; /* 0: not said */
    } cases[] = {
        { "logs/a/events.out.tfevents.1700000000.host.123.000001", "host", 123 },              /* ours */
        { "events.out.tfevents.1700000000.host.example.org.45.0.v2", "host.example.org", 45 }, /* TensorFlow 2's */
        { "events.out.tfevents.1700000000.host.123.0.gz", "host", 123 },
        { "events.out.tfevents.1700000000.10.0.0.7.123.0", "10.0.0.7", 123 },
        { "events.out.tfevents.1700000000.host", "", 0 }, /* TensorFlow 1's */
        { "events.out.tfevents.1700000000.host.v2", "", 0 },
        { "events.out.tfevents.1700000000.123.0", "", 0 },
        { "events.out.tfevents.1700000000.host.-3.0", "", 0 },
        { "events.out.tfevents.1700000000.host.0.0", "", 0 },
        { "events.out.tfevents.1700000000.host.99999999999999999999.0", "", 0 },
        { "tfevents.", "", 0 },
        { "tfevents.1.2", "", 0 },
        { "a.b.1.2", "", 0 },
        { "", "", 0 },
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char host[LOG_NAME_MAX] = "";

        assert_int_equal(log_name_writer(cases[i].path, host), cases[i].process);
        assert_string_equal(host, cases[i].host);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_writer) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
