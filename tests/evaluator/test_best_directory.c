/* EVAL/best/: what is in it after the best changes, when originals go, change or are elsewhere, and whatever moment a
 * process is killed at: the killed one is stopped before each of its system calls in turn. */
#include "evaluator/record/evaluation_best.h"

#include "base/buffer.h"
#include "base/file.h"
#include "checkpoint/directory/checkpoint_directory.h"
#include "checkpoint/directory/state_file.h"
#include "checkpoint/tensor_bundle.h"
#include "evaluator/files/content_digest.h"
#include "evaluator/files/file_tree.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/killed_at.h"

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
    struct best_checkpoint c = { .directory = ckpt, .checkpoint = checkpoint_identity_of(name, 0) };
    struct tensor_bundle_writer *w;
    struct tensor_bundle *b;

    assert_int_equal(tensor_bundle_writer_open(&w, NULL, path_of(ckpt, name), NULL), OK);
    assert_int_equal(tensor_bundle_writer_add(w, "v", TENSOR_FLOAT, 0, NULL, &value, sizeof value, NULL), OK);
    assert_int_equal(tensor_bundle_writer_finish(w, NULL), OK);
    assert_int_equal(tensor_bundle_open(&b, path_of(ckpt, name), NULL), OK);
    c.checkpoint.digest = tensor_bundle_digest(b);
    tensor_bundle_close(b);
    return c;
}

static uint64_t digest_of(const char *name)
{
    struct content content;
    uint64_t digest;

    assert_int_equal(content_read(path_of(ckpt, name), &content, NULL), OK);
    digest = content_digest(&content);
    content_release(&content);
    return digest;
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

/* How many files are in it beside the list of them. */
static int entries(const char *directory)
{
    DIR *d = opendir(directory);
    struct dirent *entry;
    int n = -2;

    assert_non_null(d);
    while ((entry = readdir(d)))
        n += strcmp(entry->d_name, ".evaluator") != 0;
    closedir(d);
    return n;
}

static struct best_directory *open_best(void)
{
    struct best_directory *b;

    assert_int_equal(best_directory_open(&b, best, NULL), OK);
    return b;
}

static int promote(struct best_directory *b, const struct best_checkpoint *c, struct error *e)
{
    return best_directory_promote(b, c, 1, 0, e);
}

static void test_changes(void **state)
{
    struct best_directory *b = open_best();
    const struct best_checkpoint c1 = write_bundle("model.ckpt-1", 1), c2 = write_bundle("model.ckpt-2", 2);
    const struct best_checkpoint c3 = write_bundle("model.ckpt-3", 3);
    struct best_checkpoint again;
    struct stat original, kept;

    (void)state;
    assert_int_equal(best_directory_recover(b, NULL, 0, NULL), OK);
    best_directory_reserve(b, &c1);
    assert_int_equal(promote(b, &c1, NULL), OK);
    assert_true(value_of_best() == 1 && entries(best) == 3);
    assert_int_equal(stat(path_of(ckpt, "model.ckpt-1.index"), &original), 0);
    assert_int_equal(stat(path_of(best, "model.ckpt-1.index"), &kept), 0);
    assert_true(original.st_ino == kept.st_ino); /* a link, no copy */
    best_directory_reserve(b, &c2);              /* two at a time; the originals go meanwhile */
    best_directory_reserve(b, &c3);
    remove_original("model.ckpt-1");
    remove_original("model.ckpt-2");
    remove_original("model.ckpt-3");
    best_directory_drop(b, &c2);
    assert_true(value_of_best() == 1);
    assert_int_equal(promote(b, &c3, NULL), OK);
    assert_true(value_of_best() == 3 && entries(best) == 3);
    best_directory_drop(b, &c3);
    again = write_bundle("model.ckpt-3", 33); /* the same name with other values */
    best_directory_reserve(b, &again);
    assert_true(value_of_best() == 3);
    assert_int_equal(promote(b, &again, NULL), OK);
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
    assert_int_equal(promote(b, &c1, NULL), OK); /* without a reservation */
    remove_original("model.ckpt-2");
    best_directory_reserve(b, &c2);
    assert_int_equal(promote(b, &c2, &e), ERR_IO);
    assert_int_equal(e.system, ENOENT);
    assert_non_null(strstr(e.message, "model.ckpt-2"));
    write_bundle("model.ckpt-2", 22);
    assert_int_equal(promote(b, &c2, &e), ERR_CORRUPT);
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
    assert_int_equal(promote(b, &c1, NULL), OK);
    best_directory_reserve(b, &c2);
    best_directory_reserve(b, &c4);
    assert_int_equal(best_directory_recover(b, &c1, 1, NULL), OK); /* never evaluated to the end */
    assert_true(value_of_best() == 1 && entries(best) == 3);
    best_directory_reserve(b, &c2);
    remove_original("model.ckpt-2");
    assert_int_equal(best_directory_recover(b, &c2, 1, NULL), OK); /* in the ledger, but not installed */
    assert_true(value_of_best() == 2 && entries(best) == 3);
    assert_int_equal(best_directory_recover(b, &c4, 1, NULL), OK); /* not even reserved, but still there */
    assert_true(value_of_best() == 4 && entries(best) == 3);
    assert_int_equal(best_directory_recover(b, &c2, 1, &e), ERR_IO);
    assert_true(value_of_best() == 4 && entries(best) == 3);
    assert_int_equal(best_directory_recover(b, NULL, 0, NULL), OK);
    assert_true(value_of_best() == 4);
    unlink(path_of(best, "model.ckpt-4.data-00000-of-00001")); /* somebody's broom */
    assert_int_equal(best_directory_recover(b, &c4, 1, NULL), OK);
    assert_true(value_of_best() == 4);
    best_directory_close(b);
}

static void test_files_and_directories(void **state)
{
    struct best_directory *b = open_best();
    struct best_checkpoint file = { .directory = ckpt, .checkpoint = { .name = "model-7.safetensors" } };
    struct best_checkpoint tree = { .directory = ckpt, .checkpoint = { .name = "checkpoint-8" } };
    struct best_checkpoint linked = { .directory = ckpt, .checkpoint = { .name = "checkpoint-9" } };
    struct stat st;
    char deep[ROOM];

    (void)state;
    assert_int_equal(file_replace(NULL, path_of(ckpt, file.checkpoint.name), "seven", 5, NULL), OK);
    snprintf(deep, sizeof deep, "%s/%s/a/b", ckpt, tree.checkpoint.name);
    assert_int_equal(file_make_directories(deep, NULL), OK);
    assert_int_equal(file_replace(NULL, path_of(deep, "weights"), "eight", 5, NULL), OK);
    assert_int_equal(mkfifo(path_of(deep, "fifo"), 0666), 0); /* left out, and nobody waits for a writer */
    assert_int_equal(symlink("/", path_of(deep, "link")), 0);
    assert_int_equal(symlink("nowhere", path_of(deep, "broken")), 0);
    assert_int_equal(symlink("weights", path_of(deep, "alias")), 0); /* as in a cache of a model hub: the file counts */
    file.checkpoint.digest = digest_of(file.checkpoint.name);
    tree.checkpoint.digest = digest_of(tree.checkpoint.name);
    best_directory_reserve(b, &file);
    assert_int_equal(promote(b, &file, NULL), OK);
    assert_int_equal(access(path_of(best, "model-7.safetensors"), F_OK), 0);
    best_directory_reserve(b, &tree);
    assert_int_equal(promote(b, &tree, NULL), OK);
    assert_int_equal(access(path_of(best, "checkpoint-8/a/b/weights"), F_OK), 0);
    assert_int_equal(access(path_of(best, "checkpoint-8/a/b/fifo"), F_OK), -1);
    assert_int_equal(access(path_of(best, "checkpoint-8/a/b/link"), F_OK), -1);
    assert_true(lstat(path_of(best, "checkpoint-8/a/b/alias"), &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 5);
    assert_true(access(path_of(best, "model-7.safetensors"), F_OK) < 0 && entries(best) == 2);
    assert_int_equal(promote(b, &tree, NULL), OK); /* over itself */
    assert_true(access(path_of(best, "checkpoint-8/a/b/weights"), F_OK) == 0 && entries(best) == 2);
    assert_int_equal(symlink(tree.checkpoint.name, path_of(ckpt, linked.checkpoint.name)),
                     0); /* a directory that stands elsewhere */
    linked.checkpoint.digest = digest_of(linked.checkpoint.name);
    assert_int_equal(promote(b, &linked, NULL), OK);
    assert_int_equal(file_tree_remove(path_of(ckpt, tree.checkpoint.name), NULL), OK);
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
    assert_int_equal(promote(b, &c, NULL), OK);
    assert_true(value_of_best() == 5 && entries(best) == 3);
    best_directory_close(b);
    assert_int_equal(file_tree_remove(best, NULL), OK);
    memcpy(best, before, sizeof best);
}

struct promotion {
    struct best_directory *directory;
    const struct best_checkpoint *wanted;
    size_t count, new;
};

static int promote_in_child(void *context)
{
    const struct promotion *p = context;

    return best_directory_promote(p->directory, p->wanted, p->count, p->new, NULL);
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

            assert_int_equal(promote(b, &before, NULL), OK);
            c = write_bundle(same ? "model.ckpt-1" : "model.ckpt-2", 2);
            best_directory_reserve(b, &c);
            remove_original("model.ckpt-1");
            remove_original("model.ckpt-2");
            over = killed_at(promote_in_child, &(struct promotion){ b, &c, 1, 0 }, calls);
            value = value_of_best();
            assert_true(over ? value == 2 : value == 1 || value == 2 || (same && value == 0));
            best_directory_close(b);
            b = open_best();
            assert_int_equal(best_directory_recover(b, &c, 1, NULL), OK);
            assert_true(value_of_best() == 2 && entries(best) == 3);
            best_directory_close(b);
            assert_true(calls < 2000);
        }
}

/* The values of all that `checkpoint` names, the best one last: "2 3 1". Each must be whole. */
static const char *values_of_best(void)
{
    static char out[64];
    struct buffer text = BUFFER_EMPTY;
    struct state_file s;

    out[0] = '\0';
    if (access(path_of(best, "checkpoint"), F_OK) < 0)
        return out;
    assert_int_equal(file_read(path_of(best, "checkpoint"), 4096, &text, NULL), OK);
    assert_int_equal(state_file_parse(buffer_text(&text), text.length, &s, NULL), OK);
    assert_string_equal(s.newest, s.paths[s.count - 1]);
    for (size_t i = 0; i < s.count; i++) {
        struct tensor_bundle *b;
        float value;

        assert_int_equal(tensor_bundle_open(&b, path_of(best, s.paths[i]), NULL), OK);
        assert_int_equal(tensor_bundle_read_float(b, tensor_bundle_find(b, "v"), &value, 1, NULL), OK);
        tensor_bundle_close(b);
        snprintf(out + strlen(out), sizeof out - strlen(out), "%s%g", i ? " " : "", (double)value);
    }
    state_file_release(&s);
    buffer_release(&text);
    return out;
}

static void test_several(void **state)
{
    struct best_directory *b = open_best();
    struct best_checkpoint c[4], wanted[3], again;
    struct error e = { 0 };

    (void)state;
    c[0] = write_bundle("model.ckpt-1", 1);
    c[1] = write_bundle("model.ckpt-2", 2);
    c[2] = write_bundle("model.ckpt-3", 3);
    c[3] = write_bundle("model.ckpt-4", 4);
    assert_int_equal(best_directory_promote(b, &c[0], 1, 0, NULL), OK);
    assert_int_equal(best_directory_promote(b, (wanted[0] = c[1], wanted[1] = c[0], wanted), 2, 0, NULL), OK);
    assert_string_equal(values_of_best(), "1 2");
    assert_int_equal(best_directory_promote(b, (wanted[2] = c[2], wanted), 3, 2, NULL), OK); /* the worst of three */
    assert_string_equal(values_of_best(), "3 1 2");
    assert_int_equal(entries(best), 7);
    wanted[0] = c[3], wanted[1] = c[1], wanted[2] = c[0];
    assert_int_equal(best_directory_promote(b, wanted, 3, 0, NULL), OK); /* a new best one; 3 goes */
    assert_string_equal(values_of_best(), "1 2 4");
    assert_int_equal(entries(best), 7);
    remove_original("model.ckpt-1");
    again = wanted[2] = write_bundle("model.ckpt-1", 11); /* the same name with other values */
    best_directory_reserve(b, &again);
    assert_int_equal(best_directory_promote(b, wanted, 3, 2, NULL), OK);
    assert_string_equal(values_of_best(), "11 2 4");
    /* Fewer are wanted, and then more than can be had. */
    assert_int_equal(best_directory_recover(b, wanted, 1, NULL), OK);
    assert_string_equal(values_of_best(), "4");
    remove_original("model.ckpt-2");
    assert_int_equal(best_directory_recover(b, wanted, 3, &e), OK);
    assert_string_equal(values_of_best(), "11 4");
    assert_int_equal(entries(best), 5);
    wanted[0] = c[1];
    assert_int_equal(best_directory_recover(b, wanted, 3, &e), ERR_IO); /* the best one must be had */
    assert_string_equal(values_of_best(), "11 4");
    best_directory_close(b);
}

/* One name for all of them, as last.ckpt: each is kept under its own, as a copy. */
static void test_one_name(void **state)
{
    struct best_directory *b = open_best();
    struct best_checkpoint wanted[2] = {
        { .directory = ckpt, .checkpoint = { .name = "last.ckpt" }, .kept = "20-last.ckpt" },
        { .directory = ckpt, .checkpoint = { .name = "last.ckpt" }, .kept = "10-last.ckpt" }
    };
    struct error e = { 0 };
    struct stat here, there;

    (void)state;
    for (int i = 2; i-- > 0;) {
        assert_int_equal(file_replace(NULL, path_of(ckpt, "last.ckpt"), i ? "ten" : "twenty", i ? 3 : 6, NULL), OK);
        wanted[i].checkpoint.digest = digest_of("last.ckpt");
        wanted[i].volatile_name = 1;
        assert_int_equal(best_directory_promote(b, wanted + i, 2 - (size_t)i, 0, NULL), OK);
    }
    assert_int_equal(stat(path_of(best, "10-last.ckpt"), &there), 0);
    assert_int_equal(there.st_size, 3);
    assert_int_equal(stat(path_of(best, "20-last.ckpt"), &there), 0);
    assert_int_equal(stat(path_of(ckpt, "last.ckpt"), &here), 0);
    assert_true(there.st_size == 6 && here.st_ino != there.st_ino && entries(best) == 3);
    assert_int_equal(file_replace(NULL, path_of(ckpt, "last.ckpt"), "thirty", 6, NULL), OK);
    wanted[1].kept = "15-last.ckpt"; /* what it says is not there any more */
    assert_int_equal(best_directory_promote(b, wanted, 2, 1, &e), ERR_CORRUPT);
    assert_int_equal(entries(best), 3);
    best_directory_close(b);
}

/* A new one among three that are kept, the best one or not, of a new name or one that is there: `checkpoint` never leads
 * to half of one, and recovery gives the three that are wanted. */
static void test_killed_among_several(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++)
        for (int calls = 0, over = 0; !over; calls++) {
            struct best_directory *b = open_best();
            struct best_checkpoint old[3] = { write_bundle("m-1", 1), write_bundle("m-2", 2), write_bundle("m-3", 3) };
            struct best_checkpoint wanted[3] = { old[0], old[1], old[2] };
            const size_t new = way % 2 ? 0 : 2;
            char after[16];

            assert_int_equal(best_directory_recover(b, old, 3, NULL), OK);
            assert_string_equal(values_of_best(), "3 2 1");
            wanted[new] = write_bundle(way < 2 ? "m-4" : new ? "m-3" : "m-1", 4);
            best_directory_reserve(b, &wanted[new]);
            for (int i = 1; i <= 4; i++)
                remove_original((char[]){ 'm', '-', (char)('0' + i), 0 });
            snprintf(after, sizeof after, "%s", new ? "4 2 1" : "3 2 4");
            over = killed_at(promote_in_child, &(struct promotion){ b, wanted, 3, new }, calls);
            assert_true(!over || !strcmp(values_of_best(), after));
            values_of_best();
            best_directory_close(b);
            b = open_best();
            assert_int_equal(best_directory_recover(b, wanted, 3, NULL), OK);
            assert_string_equal(values_of_best(), after);
            assert_int_equal(entries(best), 7);
            best_directory_close(b);
            assert_int_equal(file_tree_remove(best, NULL), OK);
            assert_true(calls < 2000);
        }
}

static int move(const char *from, const char *name, const char *to, const char *new_name)
{
    char path[2 * ROOM];

    snprintf(path, sizeof path, "%s/%s", from, name);
    return rename(path, path_of(to, new_name));
}

static void refused(const char *name)
{
    struct best_directory *b;
    struct error e = { 0 };

    assert_int_equal(best_directory_open(&b, best, &e), ERR_ARG);
    assert_null(b);
    assert_non_null(strstr(e.message, name));
}

/* What somebody else has put there is never deleted: it is refused, and left alone if it comes later. */
static void test_files_of_others(void **state)
{
    const struct best_checkpoint c1 = write_bundle("model.ckpt-1", 1), c2 = write_bundle("model.ckpt-2", 2);
    struct best_directory *b;
    struct error e = { 0 };

    (void)state;
    assert_int_equal(mkdir(path_of(best, "mydir"), 0777), 0);
    assert_int_equal(file_replace(NULL, path_of(best, "mydir/notes"), "mine", 4, NULL), OK);
    refused("best/mydir: was not made by --keep-best");
    assert_int_equal(file_replace(NULL, path_of(best, "final-model.pt"), "mine", 4, NULL), OK);
    refused("best/final-model.pt");
    assert_true(access(path_of(best, "mydir/notes"), F_OK) == 0 && entries(best) == 2);
    assert_int_equal(file_tree_remove(path_of(best, "mydir"), NULL), OK);
    assert_int_equal(move(best, "final-model.pt", best, "checkpoint"), 0);
    refused("best/checkpoint");
    assert_int_equal(unlink(path_of(best, "checkpoint")), 0);

    b = open_best();
    assert_int_equal(file_replace(NULL, path_of(best, "model.ckpt-2.index"), "mine", 4, NULL), OK);
    assert_int_equal(promote(b, &c1, NULL), OK);
    assert_int_equal(promote(b, &c2, &e), ERR_ARG); /* it would stand in the place of the other */
    assert_non_null(strstr(e.message, "best/model.ckpt-2.index"));
    assert_true(value_of_best() == 1 && entries(best) == 4);
    assert_int_equal(move(best, "model.ckpt-2.index", best, "model.ckpt-1.index.old"), 0);
    assert_int_equal(promote(b, &c2, NULL), OK);
    assert_true(value_of_best() == 2 && entries(best) == 4); /* the first has gone, theirs has not */
    best_directory_close(b);
    refused("best/model.ckpt-1.index.old");
    assert_int_equal(unlink(path_of(best, "model.ckpt-1.index.old")), 0);
    best_directory_close(open_best());
    assert_int_equal(file_replace(NULL, path_of(best, "model.ckpt-1.index"), "mine", 4, NULL), OK);
    refused("best/model.ckpt-1.index"); /* a name that was the evaluator's once */
}

/* The same behind a link; and the list itself is read from no other place. */
static void test_links(void **state)
{
    char elsewhere[ROOM];
    struct best_directory *b;
    const struct best_checkpoint c = write_bundle("model.ckpt-1", 1);

    (void)state;
    snprintf(elsewhere, sizeof elsewhere, "%s/models", top);
    assert_int_equal(rename(best, elsewhere), 0);
    assert_int_equal(symlink(elsewhere, best), 0);
    b = open_best();
    assert_int_equal(promote(b, &c, NULL), OK);
    best_directory_close(b);
    assert_true(value_of_best() == 1 && entries(elsewhere) == 3);
    assert_int_equal(file_replace(NULL, path_of(elsewhere, "weights.pt"), "mine", 4, NULL), OK);
    refused("best/weights.pt");
    assert_int_equal(entries(elsewhere), 4);
    assert_int_equal(move(elsewhere, ".evaluator", top, "list"), 0);
    assert_int_equal(symlink("../list", path_of(elsewhere, ".evaluator")), 0);
    refused("best/.evaluator: is a symbolic link");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_changes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_gone_and_replaced, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_recover, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_files_and_directories, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_other_file_system, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_files_of_others, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_links, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_killed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_several, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_name, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_killed_among_several, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
