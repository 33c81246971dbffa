/* What --metrics takes, which evaluations get pictures and curves, and that these are in the event file. */
#include "evaluator/score/evaluation_detail.h"

#include "evaluator/score/classification.h"
#include "tests/check.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void test_choice(void **state)
{
    char words[] = METRIC_CHOICES;
    static const struct {
        const char *text;
        unsigned want;
    } good[] = {
        { NULL, 0 },
        { "basic", 0 },
        { "all", METRIC_ALL },
        { "top5", 1 << METRIC_top5 },
        { "curves,speed", 1 << METRIC_curves | 1 << METRIC_speed },
        { "basic,hparams,hparams", METRIC_SETTINGS },
        { "classes,confusion", 1 << METRIC_classes | 1 << METRIC_confusion },
    };

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(metric_choice(good[i].text), good[i].want);
    assert_memory_equal(words, "basic|all|", 10);
    for (char *c = words; (c = strchr(c, '|'));)
        *c = ',';
    assert_int_equal(metric_choice(words + 10), METRIC_ALL);
}

static void test_wanted(void **state)
{
    int64_t all = 0, last = 0;

    (void)state;
    for (int64_t i = 0; i < 1000000; i++)
        if (evaluation_detail_wanted(i, 0)) {
            assert_true(i < 20 || i - last <= i / 10); /* never far from the newest one */
            last = i;
            all++;
        }
    assert_true(all > 100 && all < 200);
    for (int64_t i = 0; i < 100; i++)
        assert_int_equal(evaluation_detail_wanted(i, 7), i % 7 == 0);
}

/* The bytes of the only file of a directory; *n of them. */
static char *only_file(const char *directory, size_t *n)
{
    char path[PATH_MAX + 256], *bytes = NULL;
    struct dirent *entry;
    DIR *d = opendir(directory);

    assert_non_null(d);
    while ((entry = readdir(d)))
        if (*entry->d_name != '.') {
            FILE *f;

            snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
            assert_non_null(f = fopen(path, "rb"));
            assert_non_null(bytes = malloc(1 << 20));
            *n = fread(bytes, 1, 1 << 20, f);
            fclose(f);
            unlink(path);
        }
    closedir(d);
    return bytes;
}

static void test_written(void **state)
{
    static const char *const names[] = { "cat", "a*b" };
    static const float logits[2] = { 1, 2 };
    static const struct {
        unsigned metrics;
        const char *tag;
        int there;
    } cases[] = {
        { 1 << METRIC_confusion, "confusion_matrix/table", 1 },
        { 1 << METRIC_confusion,
          "| label / predicted | cat | a\\*b | precision | recall |\n| --- | ---: | ---: | ---: | ---: |\n"
          "| cat | 0 | 0 | - | - |\n| a\\*b | 0 | 1 | 1.0000 | 1.0000 |\n",
          1 },
        { 1 << METRIC_confusion, "pr_curve/cat", 0 },
        { 1 << METRIC_curves, "pr_curve/a*b", 1 },
        { 1 << METRIC_curves, "confusion_matrix", 0 },
    };
    char directory[PATH_MAX];
    struct classification c;

    (void)state;
    assert_int_equal(classification_init(&c, 2, 0, METRIC_ALL, NULL), OK);
    classification_add(&c, logits, 1);
    snprintf(directory, sizeof directory, "%s/detail.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    assert_non_null(mkdtemp(directory));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct evaluation_detail *d;
        struct eventlog_writer *w;
        size_t n = 0;
        char *bytes;

        assert_int_equal(metric_written(cases[i].metrics), cases[i].metrics);
        assert_int_equal(evaluation_detail_new(&d, cases[i].metrics, &c, names, NULL), OK);
        assert_int_equal(eventlog_writer_open(&w, directory, NULL, NULL), EVENTLOG_OK);
        assert_int_equal(evaluation_detail_write(d, w, 7, 0, NULL), EVENTLOG_OK);
        assert_int_equal(eventlog_writer_close(w, NULL), EVENTLOG_OK);
        bytes = only_file(directory, &n);
        assert_int_equal(memmem(bytes, n, cases[i].tag, strlen(cases[i].tag)) != NULL, cases[i].there);
        free(bytes);
        evaluation_detail_free(d);
    }
    evaluation_detail_free(NULL);
    classification_release(&c);
    assert_int_equal(rmdir(directory), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_wanted),
        cmocka_unit_test(test_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
