/* A file without a name: what goes in comes out, within its limit, and nothing is left of it. */
#include "base/spool.h"

#include "base/file.h"
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void test_appended(void **state)
{
    char directory[] = "/tmp/test_spool.XXXXXX", got[11] = "";
    struct spool s = SPOOL_CLOSED;
    struct error e = { 0 };
    int ends[2];

    (void)state;
    assert_non_null(mkdtemp(directory));
    assert_int_equal(setenv("TMPDIR", directory, 1), 0);
    assert_int_equal(spool_open(&s, &e), OK);
    assert_true(s.most > 0);
    assert_int_equal(rmdir(directory), 0); /* empty */
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "world", 5), 5);
    close(ends[1]);
    assert_int_equal(spool_append(&s, "hello", 5, &e), OK);
    assert_int_equal(spool_append_from(&s, ends[0], "pipe", &e), OK);
    close(ends[0]);
    assert_int_equal(s.size, 10);
    assert_int_equal(file_read_at(s.fd, got, sizeof got, 0), 10);
    assert_string_equal(got, "helloworld");

    s.most = 12;
    assert_int_equal(spool_append_hole(&s, 3, &e), ERR_IO);
    assert_int_equal(spool_append_hole(&s, UINT64_MAX, &e), ERR_IO);
    assert_int_equal(s.size, 10);
    assert_int_equal(spool_append_hole(&s, 0, &e), OK);
    assert_int_equal(spool_append_hole(&s, 1, &e), OK);
    assert_int_equal(spool_append(&s, "1", 1, &e), OK);
    assert_int_equal(file_read_at(s.fd, got, sizeof got, 8), 4);
    assert_memory_equal(got,
                        "ld\0"
                        "1",
                        4);

    s.most = 14;
    assert_int_equal(spool_append(&s, "12", 2, &e), OK);
    assert_int_equal(spool_append(&s, "3", 1, &e), ERR_IO);
    assert_non_null(strstr(e.message, "14 B"));
    assert_non_null(strstr(e.message, "TMPDIR"));
    assert_int_equal(s.size, 14);
    spool_close(&s);
    spool_close(&s);

    assert_int_equal(spool_open(&s, &e), ERR_IO);
    assert_non_null(strstr(e.message, directory));
    assert_int_equal(s.fd, -1);
    spool_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_appended) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
