/* What a log keeps of output of any length, in pieces of any size: its beginning, how much is missing, its end. */
#include "evaluator/score/command_process.h"

#include "base/buffer.h"
#include "base/file.h"
#include "base/random.h"
#include "tests/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEAD = 1000, LIMIT = COMMAND_LOG_TAIL + HEAD, MOST = 4 * COMMAND_LOG_TAIL };

static const size_t lengths[] = { 0, 1, HEAD - 1, HEAD, HEAD + 1, LIMIT - 1, LIMIT, LIMIT + 1, 2 * LIMIT, MOST };

/* The bytes of the file that are no notes, and what the note of what is missing says; 0 without one. */
static size_t kept(const char *path, struct buffer *out, uint64_t *missing)
{
    struct buffer text = BUFFER_EMPTY;
    char *rest = NULL;

    *missing = 0;
    assert_int_equal(file_read(path, 1 << 24, &text, NULL), OK);
    for (char *line = strtok_r(text.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (strncmp(line, "# ", 2))
            buffer_append(out, line, strlen(line));
        else if (strstr(line, "left out here"))
            sscanf(line, "# %*s %" SCNu64, missing);
    buffer_release(&text);
    return out->length;
}

static void test_every_length(void **state)
{
    char path[] = "/tmp/test_command_log.XXXXXX", *said = malloc(MOST);
    const int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0 && said);
    for (size_t i = 0; i < MOST; i++)
        said[i] = (char)('a' + i % 23);
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            const size_t n = lengths[k], most = (size_t)1 << seed, whole = n <= LIMIT ? n : LIMIT;
            struct buffer out = BUFFER_EMPTY;
            struct random random;
            struct command_log log;
            uint64_t missing;

            assert_int_equal(ftruncate(fd, 0), 0);
            command_log_init(&log, LIMIT);
            command_log_open(&log, path);
            random_init(&random, seed, RANDOM_TEST, k, 0);
            for (size_t at = 0, piece; at < n; at += piece) {
                piece = 1 + (size_t)random_below(&random, most);
                piece = piece < n - at ? piece : n - at;
                command_log_add(&log, said + at, piece);
            }
            command_log_end(&log);
            command_log_close(&log);
            assert_int_equal(kept(path, &out, &missing), whole);
            assert_int_equal(missing, n - whole);
            if (n <= LIMIT) {
                assert_true(!n || !memcmp(out.data, said, n));
            } else {
                assert_memory_equal(out.data, said, HEAD);
                assert_memory_equal(out.data + HEAD, said + n - COMMAND_LOG_TAIL, COMMAND_LOG_TAIL);
            }
            buffer_release(&out);
        }
    close(fd);
    unlink(path);
    free(said);
}

/* Of several starts each has its own beginning and end; the last line is that of the command, not ours. */
static void test_starts(void **state)
{
    char path[] = "/tmp/test_command_log.XXXXXX", line[176];
    struct buffer text = BUFFER_EMPTY;
    struct command_log log;

    (void)state;
    close(mkstemp(path));
    command_log_init(&log, LIMIT);
    command_log_open(&log, path);
    for (int i = 0; i < 3; i++) {
        command_log_note(&log, "start");
        command_log_add(&log, "no \033[31mend", 11);
        command_log_end(&log);
    }
    command_log_note(&log, "over");
    command_log_last_line(&log, line, sizeof line);
    assert_string_equal(line, ": no  [31mend");
    command_log_close(&log);
    assert_int_equal(file_read(path, 4096, &text, NULL), OK);
    for (const char *at = buffer_text(&text); (at = strchr(at, '#')); at++) /* notes begin lines */
        assert_true(at == text.data || at[-1] == '\n');
    buffer_release(&text);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_length),
        cmocka_unit_test(test_starts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
