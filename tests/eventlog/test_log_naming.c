/* Which names mislead readers. */
#include "eventlog/check/log_check.h"

#include "tests/check.h"

static void test_order(void **state)
{
    static const struct {
        const char *former, *name;
        int broken;
    } rows[] = {
        { "events.out.tfevents.1.h.7.10", "events.out.tfevents.1.h.7.2", 1 }, /* a counter */
        { "events.out.tfevents.1.h.7.2", "events.out.tfevents.1.h.7.3", 0 },
        { "events.out.tfevents.1.h.7.02", "events.out.tfevents.1.h.7.2", 0 },     /* the same number */
        { "events.out.tfevents.1000.h.7.0", "events.out.tfevents.999.h.7.0", 1 }, /* the seconds, and numbers behind */
        { "events.out.tfevents.1000.h", "events.out.tfevents.1001.h", 0 },
        { "events.out.tfevents.1.h.10.0", "events.out.tfevents.1.h.9.0", 0 }, /* a process, of which one is behind */
        { "events.out.tfevents.1.h.10.x", "events.out.tfevents.1.h.9.x", 1 },
        { "events.out.tfevents.1.h.10.v2.5", "events.out.tfevents.1.h.9.v2.5", 0 },
        { "events.out.tfevents.1.host10.0", "events.out.tfevents.1.host9.0", 0 }, /* no number alone */
        { "events.out.tfevents.1.h.1x", "events.out.tfevents.1.h.0x", 0 },
        { "events.out.tfevents.1.h.10", "events.out.tfevents.1.h.9x", 0 },
        { "events.out.tfevents.1.h.10x", "events.out.tfevents.1.h.9", 0 },
        { "events.out.tfevents.1.h.10.", "events.out.tfevents.1.h.9.", 1 }, /* nothing behind is no number */
        { "events.out.tfevents.1.h", "events.out.tfevents.1.h.2", 0 },
        { "10", "9", 1 },
        { "tfevents.10.1", "tfevents.9.1", 1 },
        { "xfevents.10.1", "xfevents.9.1", 0 },
        { "", "", 0 },
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (log_naming_order_broken(rows[i].former, rows[i].name) != rows[i].broken)
            fail_msg("%s, %s", rows[i].former, rows[i].name);
}

static void test_copies(void **state)
{
    static const struct {
        const char *name;
        int copy;
    } rows[] = {
        { "events.out.tfevents.1.h", 0 },
        { "events.out.tfevents.1.h.bak", 1 },
        { "events.out.tfevents.1.h~", 1 },
        { "a.tfevents.zst", 1 },
        { "a.bak.tfevents", 0 },
        { ".bak", 0 },
        { "~", 0 },
        { "", 0 },
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (log_naming_is_copy(rows[i].name) != rows[i].copy)
            fail_msg("%s", rows[i].name);
}

static void test_hidden(void **state)
{
    static const struct {
        const char *run;
        int hidden;
    } rows[] = {
        { ".", 0 }, { "a/b", 0 }, { "a.b", 0 },  { "./a", 0 },  { "a/.", 0 },
        { "", 0 },  { "..a", 1 }, { ".a/b", 1 }, { "a/.b", 1 }, { "a//.b", 1 },
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (log_naming_is_hidden(rows[i].run) != rows[i].hidden)
            fail_msg("%s", rows[i].run);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_order), cmocka_unit_test(test_copies),
                                        cmocka_unit_test(test_hidden) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
