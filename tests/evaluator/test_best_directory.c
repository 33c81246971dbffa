/* EVAL/best/: what is in it after the best changes, when originals go, change or are elsewhere, and whatever moment a
 * process is killed at: the killed one is stopped before each of its system calls in turn. */
#include "evaluator/best_directory.h"

#include "base/file.h"
#include "checkpoint/checkpoint_directory.h"
#include "checkpoint/tensor_bundle.h"
#include "evaluator/file_tree.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/evaluator/killed_at.h"

enum { ROOM = PATH_MAX + 300 };
static char top[PATH_MAX], ckpt[PATH_MAX], best[PATH_MAX];

static int set_up(void **state)
{
    (void)state;
    snprintf(top, sizeof top, "%s/best.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(top) || file_join(ckpt, sizeof ckpt, top, "ckpt", NULL) ||
        file_join(best, sizeof best, top, "eval/best", NULL))
        return -1;
    return file_make_directories(ckpt, NULL) || file_make_directories(best, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    return file_tree_remove(top, NULL);
}

static const char *path_of(const char *directory, const char *name)
{
    static char path[2 * ROOM];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

/* A bundle of one variable with that value. */
static struct best_checkpoint write_bundle(const char *name, float value)
{
    struct best_checkpoint c = { ckpt, name, 0 };
    struct tensor_bundle_writer *w;
    struct tensor_bundle *b;

    assert_int_equal(tensor_bundle_writer_open(&w, NULL, path_of(ckpt, name), NULL), OK);
    assert_int_equal(tensor_bundle_writer_add(w, "v", TENSOR_FLOAT, 0, NULL, &value, sizeof value, NULL), OK);
    assert_int_equal(tensor_bundle_writer_finish(w, NULL), OK);
    assert_int_equal(tensor_bundle_open(&b, path_of(ckpt, name), NULL), OK);
    c.digest = tensor_bundle_digest(b);
    tensor_bundle_close(b);
    return c;
}

static void remove_original(const char *name)
{
    char file[NAME_MAX];

    snprintf(file, sizeof file, "%s.index", name);
    unlink(path_of(ckpt, file));
    snprintf(file, sizeof file, "%s.data-00000-of-00001", name);
    unlink(path_of(ckpt, file));
}

/* What the state file of best/ leads to: 0 for nothing, else the whole checkpoint's value. Half of one fails. */
static float value_of_best(void)
{
    char name[256];
    struct tensor_bundle *b;
    struct error e;
    float value = 0;

    if (access(path_of(best, "checkpoint"), F_OK) < 0)
        return 0;
    assert_int_equal(checkpoint_directory_newest(best, name, sizeof name, &e), 1);
    assert_int_equal(tensor_bundle_open(&b, path_of(best, name), &e), OK);
    assert_int_equal(tensor_bundle_read_float(b, tensor_bundle_find(b, "v"), &value, 1, &e), OK);
    tensor_bundle_close(b);
    return value;
}

static int entries(const char *directory)
{
    DIR *d = opendir(directory);
    int n = -2;

    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static struct best_directory *open_best(void)
{
    struct best_directory *b;

    assert_int_equal(best_directory_open(&b, best, NULL), OK);
    return b;
}

static void test_changes(void **state)
{
    struct best_directory *b = open_best();
    const struct best_checkpoint c1 = write_bundle("model.ckpt-1", 1), c2 = write_bundle("model.ckpt-2", 2);
    const struct best_checkpoint c3 = write_bundle("model.ckpt-3", 3);
    struct best_checkpoint again;
    struct stat original, kept;

    (void)state;
    assert_int_equal(best_directory_recover(b, NULL, NULL), OK);
    best_directory_reserve(b, &c1);
    assert_int_equal(best_directory_promote(b, &c1, NULL), OK);
    assert_true(value_of_best() == 1 && entries(best) == 3);
    assert_int_equal(stat(path_of(ckpt, "model.ckpt-1.index"), &original), 0);
    assert_int_equal(stat(path_of(best, "model.ckpt-1.index"), &kept), 0);
    assert_true(original.st_ino == kept.st_ino); /* a link, no copy */
    best_directory_reserve(b, &c2); /* two at a time; the originals go meanwhile */
    best_directory_reserve(b, &c3);
    remove_original("model.ckpt-1");
    remove_original("model.ckpt-2");
    remove_original("model.ckpt-3");
    best_directory_drop(b, &c2);
    assert_true(value_of_best() == 1);
    assert_int_equal(best_directory_promote(b, &c3, NULL), OK);
    assert_true(value_of_best() == 3 && entries(best) == 3);
    best_directory_drop(b, &c3);
    again = write_bundle("model.ckpt-3", 33); /* the same name with other values */
    best_directory_reserve(b, &again);
    assert_true(value_of_best() == 3);
    assert_int_equal(best_directory_promote(b, &again, NULL), OK);
    assert_true(value_of_best() == 33 && entries(best) == 3);
    best_directory_close(b);
    best_directory_close(NULL);
}

static void test_gone_and_replaced(void **state)
{
    struct best_directory *b = open_best();
    const struct best_checkpoint c1 = write_bundle("model.ckpt-1", 1), c2 = write_bundle("model.ckpt-2", 2);
    struct error e = { 0 };

    (void)state;
    assert_int_equal(best_directory_promote(b, &c1, NULL), OK); /* without a reservation */
    remove_original("model.ckpt-2");
    best_directory_reserve(b, &c2);
    assert_int_equal(best_directory_promote(b, &c2, &e), ERR_IO);
    assert_int_equal(e.system, ENOENT);
    assert_non_null(strstr(e.message, "model.ckpt-2"));
    write_bundle("model.ckpt-2", 22);
    assert_int_equal(best_directory_promote(b, &c2, &e), ERR_CORRUPT);
    assert_non_null(strstr(e.message, "replaced"));
    assert_true(value_of_best() == 1 && entries(best) == 3);
    best_directory_close(b);
}

/* What no longer stands where the evaluator looks, or is on another file system (where there is one to try). */
static void test_recover(void **state)
{
    struct best_directory *b = open_best();
    const struct best_checkpoint c1 = write_bundle("model.ckpt-1", 1), c2 = write_bundle("model.ckpt-2", 2);
    const struct best_checkpoint c4 = write_bundle("model.ckpt-4", 4);
    struct error e = { 0 };

    (void)state;
    assert_int_equal(best_directory_promote(b, &c1, NULL), OK);
    best_directory_reserve(b, &c2);
    best_directory_reserve(b, &c4);
    assert_int_equal(best_directory_recover(b, &c1, NULL), OK); /* never evaluated to the end */
    assert_true(value_of_best() == 1 && entries(best) == 3);
    best_directory_reserve(b, &c2);
    remove_original("model.ckpt-2");
    assert_int_equal(best_directory_recover(b, &c2, NULL), OK); /* in the ledger, but not installed */
    assert_true(value_of_best() == 2 && entries(best) == 3);
    assert_int_equal(best_directory_recover(b, &c4, NULL), OK); /* not even reserved, but still there */
    assert_true(value_of_best() == 4 && entries(best) == 3);
    assert_int_equal(best_directory_recover(b, &c2, &e), ERR_IO);
    assert_true(value_of_best() == 4 && entries(best) == 3);
    assert_int_equal(best_directory_recover(b, NULL, NULL), OK);
    assert_true(value_of_best() == 4);
    unlink(path_of(best, "model.ckpt-4.data-00000-of-00001")); /* somebody's broom */
    assert_int_equal(best_directory_recover(b, &c4, NULL), OK);
    assert_true(value_of_best() == 4);
    best_directory_close(b);
}

static void test_files_and_directories(void **state)
{
    struct best_directory *b = open_best();
    const struct best_checkpoint file = { ckpt, "model-7.safetensors", 7 }, tree = { ckpt, "checkpoint-8", 8 };
    const struct best_checkpoint linked = { ckpt, "checkpoint-9", 9 };
    struct stat st;
    char deep[ROOM];

    (void)state;
    assert_int_equal(file_replace(NULL, path_of(ckpt, file.name), "seven", 5, NULL), OK);
    snprintf(deep, sizeof deep, "%s/%s/a/b", ckpt, tree.name);
    assert_int_equal(file_make_directories(deep, NULL), OK);
    assert_int_equal(file_replace(NULL, path_of(deep, "weights"), "eight", 5, NULL), OK);
    assert_int_equal(mkfifo(path_of(deep, "fifo"), 0666), 0); /* left out, and nobody waits for a writer */
    assert_int_equal(symlink("/", path_of(deep, "link")), 0);
    assert_int_equal(symlink("nowhere", path_of(deep, "broken")), 0);
    assert_int_equal(symlink("weights", path_of(deep, "alias")), 0); /* as in a cache of a model hub: the file counts */
    best_directory_reserve(b, &file);
    assert_int_equal(best_directory_promote(b, &file, NULL), OK);
    assert_int_equal(access(path_of(best, "model-7.safetensors"), F_OK), 0);
    best_directory_reserve(b, &tree);
    assert_int_equal(best_directory_promote(b, &tree, NULL), OK);
    assert_int_equal(access(path_of(best, "checkpoint-8/a/b/weights"), F_OK), 0);
    assert_int_equal(access(path_of(best, "checkpoint-8/a/b/fifo"), F_OK), -1);
    assert_int_equal(access(path_of(best, "checkpoint-8/a/b/link"), F_OK), -1);
    assert_true(lstat(path_of(best, "checkpoint-8/a/b/alias"), &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 5);
    assert_true(access(path_of(best, "model-7.safetensors"), F_OK) < 0 && entries(best) == 2);
    assert_int_equal(best_directory_promote(b, &tree, NULL), OK); /* over itself */
    assert_true(access(path_of(best, "checkpoint-8/a/b/weights"), F_OK) == 0 && entries(best) == 2);
    assert_int_equal(symlink(tree.name, path_of(ckpt, linked.name)), 0); /* a directory that stands elsewhere */
    assert_int_equal(best_directory_promote(b, &linked, NULL), OK);
    assert_int_equal(file_tree_remove(path_of(ckpt, tree.name), NULL), OK);
    assert_true(access(path_of(best, "checkpoint-9/a/b/weights"), F_OK) == 0 && entries(best) == 2);
    best_directory_close(b);
}

/* Copies, where links cannot be made. */
static void test_other_file_system(void **state)
{
    char elsewhere[] = "/dev/shm/best.XXXXXX";
    const struct best_checkpoint c = write_bundle("model.ckpt-5", 5);
    struct stat here, there;
    struct best_directory *b;
    char before[PATH_MAX];

    (void)state;
    if (!mkdtemp(elsewhere))
        skip();
    if (stat(elsewhere, &there) < 0 || stat(ckpt, &here) < 0 || here.st_dev == there.st_dev) {
        rmdir(elsewhere);
        skip();
    }
    memcpy(before, best, sizeof before);
    snprintf(best, sizeof best, "%s", elsewhere);
    b = open_best();
    best_directory_reserve(b, &c);
    assert_int_equal(entries(best), 0); /* nothing is copied before it is the best */
    assert_int_equal(best_directory_promote(b, &c, NULL), OK);
    assert_true(value_of_best() == 5 && entries(best) == 3);
    best_directory_close(b);
    assert_int_equal(file_tree_remove(best, NULL), OK);
    memcpy(best, before, sizeof best);
}

struct promotion {
    struct best_directory *directory;
    const struct best_checkpoint *checkpoint;
};

static int promote(void *context)
{
    const struct promotion *p = context;

    return best_directory_promote(p->directory, p->checkpoint, NULL);
}

/* From one best to the next, also of the same name: after each kill `checkpoint` leads to the old one or the new one
 * (to nothing only where the name is the same), and recovery to the new one, though its original is gone. */
static void test_killed(void **state)
{
    (void)state;
    for (int same = 0; same < 2; same++)
        for (int calls = 0, over = 0; !over; calls++) {
            struct best_directory *b = open_best();
            struct best_checkpoint before = write_bundle("model.ckpt-1", 1), c;
            float value;

            assert_int_equal(best_directory_promote(b, &before, NULL), OK);
            c = write_bundle(same ? "model.ckpt-1" : "model.ckpt-2", 2);
            best_directory_reserve(b, &c);
            remove_original("model.ckpt-1");
            remove_original("model.ckpt-2");
            over = killed_at(promote, &(struct promotion){ b, &c }, calls);
            value = value_of_best();
            assert_true(over ? value == 2 : value == 1 || value == 2 || (same && value == 0));
            best_directory_close(b);
            b = open_best();
            assert_int_equal(best_directory_recover(b, &c, NULL), OK);
            assert_true(value_of_best() == 2 && entries(best) == 3);
            best_directory_close(b);
            assert_true(calls < 2000);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_changes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_gone_and_replaced, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_recover, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_files_and_directories, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_other_file_system, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_killed, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
