/* The record that a run writes: what is read from it at any time, and each write that can fail. */
#include "trainer/server/recording.h"

#include "base/file.h"
#include "tests/check.h"
#include "tests/failing_io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct arrivals_header header = { .workers = 3, .staleness = -1 };

enum { PUSHES = 150, FIRST_HARMLESS = 10 /* call: after the renaming, everything is there */ };

struct place {
    char directory[64], path[80], part[90];
};

static int enter(void **state)
{
    struct place *p = *state = calloc(1, sizeof *p);

    strcpy(p->directory, "/tmp/test-recording-XXXXXX");
    assert_non_null(mkdtemp(p->directory));
    snprintf(p->path, sizeof p->path, "%s/record", p->directory);
    snprintf(p->part, sizeof p->part, "%s%s", p->path, RECORDING_PART);
    return 0;
}

static int leave(void **state)
{
    struct place *p = *state;

    unlink(p->path);
    unlink(p->part);
    assert_int_equal(rmdir(p->directory), 0);
    free(p);
    return 0;
}

static void add(struct recording *r)
{
    struct arrival pushes[PUSHES];

    for (uint32_t i = 0; i < PUSHES; i++)
        pushes[i] = (struct arrival){ i, i % 3, i / 2 };
    recording_add(r, pushes, PUSHES);
}

/* What the file has; -1: there is none. */
static int64_t steps_in(const char *path, int *complete)
{
    struct buffer bytes = BUFFER_EMPTY;
    struct arrivals a;
    int64_t steps = -1;

    *complete = 0;
    if (file_read(path, 1 << 20, &bytes, NULL) == OK) {
        assert_int_equal(arrivals_parse(&a, path, (const uint8_t *)bytes.data, bytes.length, NULL), OK);
        steps = a.steps;
        *complete = a.complete;
        arrivals_release(&a);
    }
    buffer_release(&bytes);
    return steps;
}

static void test_whole(void **state)
{
    const struct place *p = *state;
    struct recording *r;
    int complete;

    assert_int_equal(recording_open(&r, NULL, p->path, &header, NULL), OK);
    assert_int_equal(steps_in(p->part, &complete), 0);
    add(r);
    assert_int_equal(steps_in(p->part, &complete), PUSHES); /* whoever is killed now has left that */
    assert_false(complete);
    assert_int_equal(steps_in(p->path, &complete), -1);
    assert_int_equal(recording_close(r, NULL), OK);
    recording_free(r);
    assert_int_equal(steps_in(p->path, &complete), PUSHES);
    assert_true(complete);
    assert_int_equal(steps_in(p->part, &complete), -1);
}

/* The n-th call fails: said at once, or at the end, and there is no file of the name that is not whole. */
static void test_failing(void **state)
{
    const struct place *p = *state;
    int failed = 1, complete;
    int64_t steps;

    for (int n = 1; failed; n++) {
        struct io_failing f = { .fail_at = n, .error_number = ENOSPC, .stay_failed = 1, .short_writes = 1 };
        const struct io io = io_failing_table(&f);
        struct recording *r;
        struct error e = { 0 };
        int rc = recording_open(&r, &io, p->path, &header, &e);

        if (rc == OK) {
            add(r);
            rc = recording_close(r, &e);
            recording_free(r);
        }
        failed = f.calls >= n;
        steps = steps_in(p->path, &complete);
        assert_true(steps == -1 || (steps == PUSHES && complete));
        assert_int_equal(n < FIRST_HARMLESS || !failed ? rc : ERR_IO, failed ? ERR_IO : OK);
        assert_true(rc == ERR_IO || steps == PUSHES);
        assert_true(rc == OK || n >= FIRST_HARMLESS || strstr(e.message, "--record: "));
        unlink(p->path);
        unlink(p->part);
    }
}

static void test_refused(void **state)
{
    const struct place *p = *state;
    struct recording *r;
    struct error e;

    assert_int_equal(recording_open(&r, NULL, p->directory, &header, &e), ERR_ARG);
    assert_non_null(strstr(e.message, "is a directory; name a file"));
    assert_int_equal(recording_open(&r, NULL, "/nowhere/at/all", &header, &e), ERR_IO);
    assert_string_equal(e.message, "--record: /nowhere/at/all.part: cannot open: No such file or directory");
    assert_int_equal(symlink("elsewhere", p->part), 0); /* what it leads to is not written */
    assert_int_equal(recording_open(&r, NULL, p->path, &header, &e), ERR_ARG);
    assert_non_null(strstr(e.message, ".part: is a symbolic link"));
    assert_int_equal(unlink(p->part), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_whole, enter, leave),
        cmocka_unit_test_setup_teardown(test_failing, enter, leave),
        cmocka_unit_test_setup_teardown(test_refused, enter, leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
