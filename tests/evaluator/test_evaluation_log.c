/* Which run directory a step goes to, what is remembered of it, and that a failed write can be repeated. The events
 * themselves are read back by the process tests. */
#include "base/file.h"
#include "evaluator/record/evaluation_log.h"
#include "tests/check.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[PATH_MAX], eval[PATH_MAX];
static struct evaluation_log_files *open_files;

static int set_up(void **state)
{
    (void)state;
    snprintf(top, sizeof top, "%s/evaluation_log.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(top) || file_join(eval, sizeof eval, top, "eval/", NULL) != OK)
        return -1;
    return file_make_directories(eval, NULL);
}

static int each_file(const char *directory, int remove)
{
    DIR *d = opendir(directory);
    struct dirent *entry;
    int events = 0;

    while (d && (entry = readdir(d))) {
        char path[PATH_MAX];

        events += strncmp(entry->d_name, "events.out.tfevents.", 20) == 0;
        if (remove && strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
            file_join(path, sizeof path, directory, entry->d_name, NULL) == OK)
            unlink(path);
    }
    if (d)
        closedir(d);
    if (remove)
        rmdir(directory);
    return events;
}

static int tear_down(void **state)
{
    char directory[PATH_MAX + 16];

    (void)state;
    each_file(eval, 1);
    for (int run = 1; run < 5; run++) {
        snprintf(directory, sizeof directory, "%s/eval_%d", top, run);
        each_file(directory, 1);
    }
    return rmdir(top);
}

static struct evaluation_log *start(int64_t last_run, int64_t last_step)
{
    struct evaluation_log *l;

    assert_int_equal(evaluation_log_open(&l, eval, evaluation_tags_find(NULL), open_files, last_run, last_step, NULL),
                     OK);
    return l;
}

static int point(struct evaluation_log *l, int64_t step)
{
    struct evaluation_metric items[] = { { (char[]){ "precision" }, 0.5 },
                                         { (char[]){ "loss" }, 1 },
                                         { (char[]){ "cross_entropy" }, 1 } };
    struct evaluation_metrics metrics = { items, 3, 3 };
    struct evaluation_point p = { step, 1.5e9, &metrics, NULL, NULL };

    return evaluation_log_point(l, &p, NULL);
}

static void test_runs(void **state)
{
    struct evaluation_log *l = start(0, -1);
    char directory[PATH_MAX], want[PATH_MAX + 16];

    (void)state;
    assert_int_equal(each_file(eval, 0), 0); /* an evaluator that finds nothing leaves no empty event file */
    assert_int_equal(evaluation_log_run(l, 0), 0);
    assert_int_equal(point(l, 100), OK);
    assert_int_equal(point(l, 300), OK);
    assert_int_equal(evaluation_log_run(l, 300), 0); /* the same step once more is no step down */
    assert_int_equal(evaluation_log_run(l, 200), 1);
    assert_int_equal(point(l, 200), OK);
    assert_int_equal(evaluation_log_run(l, 250), 1); /* and what follows goes there */
    assert_int_equal(evaluation_log_run(l, 400), 0); /* unless it is the next of a run with a higher step */
    assert_int_equal(evaluation_log_run(l, 100), 2);
    assert_int_equal(evaluation_log_directory(eval, 1, directory, sizeof directory, NULL), OK);
    snprintf(want, sizeof want, "%s/eval_1", top);
    assert_string_equal(directory, want);
    assert_int_equal(each_file(eval, 0), 1);
    assert_int_equal(each_file(directory, 0), 1);
    assert_int_equal(evaluation_log_close(l, NULL), OK);

    /* Killed before the ledger had its line: the ledger knows of 300 only, the log still of run 1, step 200. */
    l = start(0, 300);
    assert_int_equal(evaluation_log_run(l, 150), 2);
    assert_int_equal(evaluation_log_run(l, 200), 1);
    evaluation_log_close(l, NULL);
    /* And where the file of the log is gone, the ledger's word counts. */
    snprintf(want, sizeof want, "%s/.points", eval);
    assert_int_equal(unlink(want), 0);
    l = start(1, 200);
    assert_int_equal(evaluation_log_run(l, 150), 2);
    assert_int_equal(evaluation_log_run(l, 200), 1);
    evaluation_log_close(l, NULL);
    l = start(0, 900); /* older than the ledger: not believed */
    assert_int_equal(evaluation_log_run(l, 899), 1);
    assert_int_equal(evaluation_log_run(l, 900), 0);
    evaluation_log_close(l, NULL);
}

/* Names that come late, again and again, need as many runs as steps that are later than a higher one, and no more. */
static void test_late_names(void **state)
{
    static const int64_t steps[] = { 2, 1, 4, 3, 6, 5, 8, 7, 10, 9, 20, 12, 30, 11, 25, 13 };
    static const int64_t runs[] = { 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 2, 1, 2 };
    char points[PATH_MAX + 16];
    struct evaluation_log *l;

    (void)state;
    snprintf(points, sizeof points, "%s/.points", eval);
    unlink(points); /* of the tests before */
    l = start(-1, -1);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct evaluation_log *again = start(-1, -1);

        for (size_t k = 0; k < i; k++)
            assert_int_equal(evaluation_log_seen(again, runs[k], steps[k], NULL), OK);
        assert_int_equal(evaluation_log_run(l, steps[i]), runs[i]);
        assert_int_equal(evaluation_log_run(again, steps[i]), runs[i]); /* a restart chooses the same */
        assert_int_equal(point(l, steps[i]), OK);
        assert_int_equal(evaluation_log_newest(l), runs[i]);
        assert_int_equal(evaluation_log_close(again, NULL), OK);
    }
    assert_int_equal(evaluation_log_close(l, NULL), OK);
}

/* Two that take turns with one open file: each goes on in its own. */
static void test_open_files(void **state)
{
    struct evaluation_log_files one = { .limit = 1 };
    struct evaluation_log *l, *other;
    char directory[PATH_MAX];

    (void)state;
    file_join(directory, sizeof directory, top, "eval_4", NULL);
    open_files = &one;
    l = start(0, -1);
    assert_int_equal(evaluation_log_open(&other, directory, evaluation_tags_find(NULL), &one, 0, -1, NULL), OK);
    for (int64_t step = 1; step <= 3; step++) {
        assert_int_equal(point(l, step), OK);
        assert_true(one.count == 1 && one.newest == l && one.oldest == l);
        assert_int_equal(point(other, step), OK);
        assert_true(one.count == 1 && one.newest == other && one.oldest == other);
    }
    assert_int_equal(each_file(eval, 0), 1);
    assert_int_equal(each_file(directory, 0), 1);
    assert_int_equal(evaluation_log_close(other, NULL), OK);
    assert_int_equal(one.count, 0);
    assert_int_equal(evaluation_log_close(l, NULL), OK);
    l = start(0, 3); /* what another process wrote stays as it is */
    open_files = NULL;
    assert_int_equal(point(l, 4), OK);
    assert_int_equal(evaluation_log_close(l, NULL), OK);
    assert_int_equal(each_file(eval, 1), 2);
    each_file(directory, 1);
    assert_int_equal(file_make_directories(eval, NULL), OK);
}

/* No room in the file system, by a limit on the size of files: the point is not lost and not doubled. */
static void test_failed_write(void **state)
{
    struct rlimit before, none;
    struct evaluation_log *l = start(3, -1);
    struct stat full, after, last;
    char directory[PATH_MAX], path[PATH_MAX] = "";
    struct dirent *entry;
    DIR *d;

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(point(l, 1), OK);
    assert_int_equal(evaluation_log_directory(eval, 3, directory, sizeof directory, NULL), OK);
    assert_non_null(d = opendir(directory));
    while ((entry = readdir(d)))
        if (*entry->d_name == 'e')
            assert_int_equal(file_join(path, sizeof path, directory, entry->d_name, NULL), OK);
    closedir(d);
    assert_int_equal(stat(path, &full), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t)full.st_size + 10;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(point(l, 2), ERR_IO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(point(l, 2), OK);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(point(l, 3), OK);
    assert_int_equal(stat(path, &last), 0);
    assert_int_equal(last.st_size - after.st_size, after.st_size - full.st_size); /* one point is as long as the next */
    assert_int_equal(evaluation_log_close(l, NULL), OK);
}

/* The only event file of EVAL. */
static void event_file(char path[PATH_MAX])
{
    DIR *d = opendir(eval);
    struct dirent *entry;

    assert_non_null(d);
    while ((entry = readdir(d)))
        if (*entry->d_name == 'e')
            assert_int_equal(file_join(path, PATH_MAX, eval, entry->d_name, NULL), OK);
    closedir(d);
}

static void test_intent(void **state)
{
    struct evaluation_metric items[] = { { (char[]){ "precision" }, 0.5 }, { (char[]){ "loss" }, 1 } };
    struct evaluation_metrics metrics = { items, 2, 2 };
    struct evaluation_point p = { 7, 1.5e9, &metrics, NULL, "{a line of the ledger}\n" };
    struct evaluation_log *l;
    char path[PATH_MAX], note[PATH_MAX];
    struct stat before, after, cut;

    (void)state;
    each_file(eval, 1);
    assert_int_equal(file_make_directories(eval, NULL), OK);
    l = start(0, -1);
    assert_int_equal(point(l, 5), OK);
    assert_null(evaluation_log_unrecorded(l));
    event_file(path);
    assert_int_equal(stat(path, &before), 0);
    assert_int_equal(evaluation_log_point(l, &p, NULL), OK);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(evaluation_log_close(l, NULL), OK);

    l = start(0, 5); /* killed before the line was in the ledger: the events are there */
    assert_string_equal(evaluation_log_unrecorded(l), p.line);
    assert_int_equal(evaluation_log_settle(l, NULL), 1);
    assert_int_equal(evaluation_log_run(l, 6), 1);
    assert_int_equal(stat(path, &cut), 0);
    assert_true(cut.st_size == after.st_size);
    /* And in the middle of their write: what is there of them is cut off. */
    assert_int_equal(truncate(path, after.st_size - 1), 0);
    assert_int_equal(evaluation_log_settle(l, NULL), 0);
    assert_int_equal(stat(path, &cut), 0);
    assert_true(cut.st_size == before.st_size);
    assert_int_equal(evaluation_log_settle(l, NULL), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(evaluation_log_settle(l, NULL), 0);
    evaluation_log_recorded(l);
    assert_null(evaluation_log_unrecorded(l));
    evaluation_log_close(l, NULL);
    l = start(0, 5);
    assert_null(evaluation_log_unrecorded(l));
    assert_int_equal(evaluation_log_run(l, 6), 1); /* its run and step stay */

    assert_int_equal(evaluation_log_point(l, &p, NULL), OK);
    evaluation_log_close(l, NULL);
    assert_int_equal(file_join(note, sizeof note, eval, ".points", NULL), OK);
    assert_int_equal(stat(note, &cut), 0);
    assert_int_equal(truncate(note, cut.st_size - 2), 0); /* killed while it was written: before the events */
    l = start(0, 5);
    assert_null(evaluation_log_unrecorded(l));
    evaluation_log_close(l, NULL);
}

static void test_tags(void **state)
{
    (void)state;
    assert_string_equal(evaluation_tags_find(NULL)->tags[2].tag, "loss");
    assert_string_equal(evaluation_tags_find("tutorial")->tags[0].tag, "Precision @ 1");
    assert_null(evaluation_tags_find("tutorial")->tags[1].tag);
    assert_null(evaluation_tags_find("nobody's"));
}

/* The tag of each metric with each preset; docs/man/evaluator.txt lists them. */
static void test_tag_names(void **state)
{
    static const char *const metrics[] = { "precision", "best_precision",  "loss", "cross_entropy", "mae",
                                           "best_mae",  "class_recall/cat" };
    static const struct {
        const char *preset, *tags[7];
    } cases[] = {
        /* NULL: not written */
        { NULL, { "precision", "best_precision", "loss", NULL, "mae", "best_mae", "class_recall/cat" } },
        { "homework", { "precision", "best_precision", NULL, NULL, "mae", "best_mae", "class_recall/cat" } },
        { "tutorial", { "Precision @ 1", NULL, NULL, NULL, "mae", "best_mae", "class_recall/cat" } },
        { "resnet", { "Precision", "Best Precision", NULL, NULL, "mae", "best_mae", "class_recall/cat" } },
        { "im2txt", { NULL, NULL, NULL, "Perplexity", "mae", "best_mae", "class_recall/cat" } },
        { "keras",
          { "evaluation_accuracy_vs_iterations", NULL, "evaluation_loss_vs_iterations", NULL,
            "evaluation_mae_vs_iterations", "best_mae", "class_recall/cat" } },
        { "estimator", { "accuracy", NULL, "loss", NULL, "mae", "best_mae", "class_recall/cat" } },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t k = 0; k < 7; k++) {
            char name[32], tag[EVALUATION_TAG_MAX] = "";
            const struct evaluation_metric metric = { name, 2 };
            const char *wanted = cases[i].tags[k];
            float value = 0;

            strcpy(name, metrics[k]);
            assert_int_equal(evaluation_tags_name(evaluation_tags_find(cases[i].preset), &metric, tag, &value),
                             wanted != NULL);
            if (wanted)
                assert_string_equal(tag, wanted);
            assert_true(!wanted || value == (strcmp(wanted, "Perplexity") ? 2 : expf(2)));
            assert_int_equal(evaluation_tags_name(evaluation_tags_plain(), &metric, tag, &value), 1);
            assert_string_equal(tag, name);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_files), cmocka_unit_test(test_runs), cmocka_unit_test(test_failed_write),
        cmocka_unit_test(test_intent),     cmocka_unit_test(test_tags), cmocka_unit_test(test_tag_names),
        cmocka_unit_test(test_late_names),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
