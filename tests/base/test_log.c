/* Lines for people, and what may stand in them. */

#include "base/program/log.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_control_characters) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
