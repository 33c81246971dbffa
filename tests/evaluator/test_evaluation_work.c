/* EVAL/work.json: there and back, what is none, and whole or absent whenever it is read. */
#include "evaluator/record/evaluation_work.h"

#include "base/file.h"
#include "evaluator/files/file_tree.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/killed_at.h"

static struct evaluation_work work_of(int64_t newest, size_t in_hand)
{
    struct evaluation_work w = {
        .pid = 4711, .queued = 2, .newest_step = newest, .until_step = -1, .updated = 1.5, .in_hand_count = in_hand
    };

    for (size_t i = 0; i < in_hand; i++) {
        snprintf(w.in_hand[i].checkpoint.name, sizeof w.in_hand[i].checkpoint.name, "\"name\" %zu", i);
        w.in_hand[i].checkpoint.step = (int64_t)i - 1;
        w.in_hand[i].since = 1e9 + (double)i;
    }
    return w;
}

static void test_there_and_back(void **state)
{
    (void)state;
    for (size_t in_hand = 0; in_hand <= WORK_IN_HAND_MAX; in_hand += WORK_IN_HAND_MAX / 2) {
        struct evaluation_work work = work_of(in_hand ? 700 : -1, in_hand), back, other;
        struct buffer text = BUFFER_EMPTY;

        evaluation_work_format(&work, &text);
        assert_int_equal(evaluation_work_parse(buffer_text(&text), text.length, &back), 1);
        assert_true(evaluation_work_same(&work, &back) && back.updated == 1.5);
        other = back;
        other.updated = 7;
        assert_true(evaluation_work_same(&work, &other));
        other.queued++;
        assert_false(evaluation_work_same(&work, &other));
        other = back;
        other.in_hand[0].since++;
        assert_int_equal(evaluation_work_same(&work, &other), !in_hand);
        for (size_t n = 0; n + 1 < text.length; n++) /* all but the newline */
            assert_int_equal(evaluation_work_parse(buffer_text(&text), n, &back), 0);
        buffer_release(&text);
    }
}

static void test_what_is_none(void **state)
{
    static const char *const texts[] = {
        "",
        "[]",
        "7",
        "{}",
        "{\"pid\":0,\"queued\":1,\"not_whole\":0}",
        "{\"pid\":1,\"queued\":-1,\"not_whole\":0}",
        "{\"pid\":1,\"queued\":1}",
        "{\"pid\":\"1\",\"queued\":1,\"not_whole\":0}",
    };
    struct evaluation_work work;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(evaluation_work_parse(texts[i], strlen(texts[i]), &work), 0);
    assert_int_equal(
        evaluation_work_parse("{\"pid\":1,\"queued\":1,\"not_whole\":0,\"in_hand\":[7,{}],\"more\":1}", 60, &work), 1);
    assert_true(work.in_hand_count == 0 && work.newest_step == -1);
}

struct place {
    const char *directory;
    const struct evaluation_work *work;
};

static int write_it(void *context)
{
    const struct place *p = context;

    return evaluation_work_write(p->directory, p->work, NULL);
}

static void test_killed(void **state)
{
    char directory[] = "/tmp/work.XXXXXX";
    const struct evaluation_work first = work_of(100, 1), second = work_of(200, 2);
    struct evaluation_work found;

    (void)state;
    assert_non_null(mkdtemp(directory));
    assert_int_equal(evaluation_work_read(directory, &found), 0);
    for (int calls = 0, over = 0; !over; calls++) {
        assert_int_equal(evaluation_work_write(directory, &first, NULL), OK);
        over = killed_at(write_it, &(struct place){ directory, &second }, calls);
        assert_int_equal(evaluation_work_read(directory, &found), 1);
        assert_true(evaluation_work_same(&found, over ? &second : &first) || evaluation_work_same(&found, &second));
        assert_true(calls < 100);
    }
    assert_int_equal(file_tree_remove(directory, NULL), OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_what_is_none),
        cmocka_unit_test(test_killed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
