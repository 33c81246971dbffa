/* Lines for people, and what may stand in them. */

#include "base/program/log.h"

#include "base/buffer.h"

#include "tests/check.h"

#include <string.h>
#include <unistd.h>

/* What "tensor NAME" is written as. */
static const char *said(int json, const char *name, char *out, size_t size)
{
    struct log log;
    int ends[2];
    ssize_t n;

    assert_int_equal(pipe(ends), 0);
    log_init(&log, "test", ends[1]);
    log_set_json(&log, json);
    log_event(&log, "error", NULL, "tensor %s", name);
    assert_true((n = read(ends[0], out, size - 1)) > 0);
    out[n] = '\0';
    close(ends[0]);
    close(ends[1]);
    return out;
}

static void test_control_characters(void **state)
{
    char out[4096], longest[3000];

    (void)state;
    assert_string_equal(said(0,
                             "a\x1b[31m\r\n\x7f\xc2\x9b"
                             "gr\xc3\xb6\xc3\x9f"
                             "e\xff",
                             out, sizeof out),
                        "test: tensor a\\x1b[31m\\x0d\\x0a\\x7f\\xc2\\x9bgr\xc3\xb6\xc3\x9f"
                        "e\\xff\n");
    assert_non_null(strstr(said(1, "a\x1b[31m", out, sizeof out), "\"message\":\"tensor a\\u001b[31m\""));
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    said(0, longest, out, sizeof out); /* cut, and still one line */
    assert_true(strlen(out) < sizeof longest && out[strlen(out) - 1] == '\n');
}

/* What one log keeps, another writes as if it had been told itself: also nothing, and more than a line holds. */
static void test_kept_lines(void **state)
{
    struct buffer kept = BUFFER_EMPTY;
    struct log keeping, log;
    char longest[3000], out[8192];
    int ends[2];
    ssize_t n;

    (void)state;
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(pipe(ends), 0);
    log_init(&log, "test", ends[1]);
    log_kept_lines(&log, &kept);
    keeping = log;
    keeping.kept = &kept;
    keeping.status_next = 0;
    log_progress(&keeping, "half");
    log_progress_work(&keeping, 0, 0.5, "a", "all");
    log_line(&keeping, "%d\x1b", 1);
    log_line(&keeping, "%s", "");
    log_line(&keeping, "%s", longest);
    log_line(&log, "before");
    log_kept_lines(&log, &kept);
    assert_true((n = read(ends[0], out, sizeof out - 1)) > 0);
    out[n] = '\0';
    assert_memory_equal(out, "test: before\ntest: 1\\x1b\ntest: \ntest: xxx", 41);
    assert_int_equal(n, 32 + 6 + 2047 + 1);
    buffer_release(&kept);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_control_characters), cmocka_unit_test(test_kept_lines) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
