/* Colours of runs: one for each strategy whatever else is drawn, the rest for all others. */
#include "eventlog/tool/picture/picture.h"

#include "tests/check.h"

static void test_strategies(void **state)
{
    static const struct {
        const char *name;
        int colour;
    } cases[] = {
        { "mpi", 0 },
        { "mpi/eval", 0 },
        { "mpi-16", 0 },
        { "round-1/ps-2/train", 1 },
        { "round-3/ps-async-2/eval", 2 },
        { "ps-async", 2 },
        { "ps-async-staleness-2-4", 2 },
        { "ps-servers-2-4", 1 },
        { "logs/hybrid", 3 },
        { "mirrored-weights-shared-2/train", 4 },
        { "ring-2", 5 },
        { "single", 6 },
        { "mpi/ps", 0 }, /* the first directory that says one */
        /* no strategy's */
        { "", -1 },
        { ".", -1 },
        { "mpi-cluster", -1 },
        { "mpich", -1 },
        { "mpich-2", -1 },
        { "eps-2", -1 },
        { "ps_2", -1 },
        { "mpi minus ps", -1 },
        { "train", -1 },
        { "MPI", -1 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (run_strategy_colour(cases[i].name) != cases[i].colour)
            fail_msg("%s: %d", cases[i].name, run_strategy_colour(cases[i].name));
}

static const char *name_of(const void *names, size_t run)
{
    return ((const char *const *)names)[run];
}

static void expect(const char *const *names, size_t count, const size_t *wanted)
{
    size_t styles[16];

    run_styles(name_of, names, count, styles);
    for (size_t i = 0; i < count; i++)
        if (styles[i] != wanted[i])
            fail_msg("%s: %zu, not %zu", names[i], styles[i], wanted[i]);
}

static void test_styles(void **state)
{
    static const char *const plain[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j" };
    static const char *const mixed[] = { "ps/eval", "torch", "mpi/eval", "keras" };
    static const char *const often[] = { "mpi-1", "mpi-2", "ps-1", "mpi-4" };
    static const char *const every[] = {
        "mpi", "ps", "ps-async", "hybrid", "mirrored", "ring", "single", "x", "y", "z"
    };

    (void)state;
    expect(plain, 10, (const size_t[]){ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 });
    expect(mixed, 4, (const size_t[]){ 1, 2, 0, 3 });
    expect(mixed, 2, (const size_t[]){ 1, 0 }); /* ps has it with and without mpi */
    expect(often, 4, (const size_t[]){ 0, RUN_COLOURS, 1, 2 * RUN_COLOURS });
    expect(every, 10, (const size_t[]){ 0, 1, 2, 3, 4, 5, 6, 7, 15, 23 });
    expect(NULL, 0, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strategies),
        cmocka_unit_test(test_styles),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
