/* Event files made by seed, sound or damaged in one place: verify, reader and points say of them what was made. */
#include "tests/fuzz/made_events.h"

#include "tests/check.h"

#include <string.h>

enum { FILES = 2000, DAMAGES_MOST = 100 };

static void test_seeds(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < FILES; seed++) {
        struct made_events m;
        struct error e = { 0 };

        made_events_make(&m, decisions_from_seed(seed));
        if (made_events_judge(&m, &e) != OK)
            fail_msg("seed %llu: %s", (unsigned long long)seed, e.message);
        made_events_release(&m);
    }
}

/* The seeds reach what the maker can make: half of the files sound, and every kind of damage. */
static void test_variety(void **state)
{
    const char *damages[DAMAGES_MOST] = { NULL };
    size_t sound = 0, kinds = 0;

    (void)state;
    for (uint64_t seed = 0; seed < FILES; seed++) {
        struct made_events m;
        size_t i = 0;

        made_events_make(&m, decisions_from_seed(seed));
        while (i < kinds && strcmp(damages[i], m.damage) != 0)
            i++;
        assert_true(i < DAMAGES_MOST);
        damages[i] = m.damage;
        kinds += i == kinds;
        sound += m.verdict == MADE_SOUND;
        made_events_release(&m);
    }
    assert_in_range(sound, FILES / 3, FILES * 2 / 3);
    assert_in_range(kinds, 38, DAMAGES_MOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_seeds), cmocka_unit_test(test_variety) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
