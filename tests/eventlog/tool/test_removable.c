/* Which runs can be deleted, what keeps them, and what is left when others interfere or it is killed at any moment. */
#include "eventlog/tool/rewrite/removable.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "tests/killed_at.h"
#include "tests/eventlog/remove_tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[64];
static struct log no_log = { .fd = -1 };

static const char *in(const char *name)
{
    static char paths[4][512];
    static int turn;

    turn = (turn + 1) % 4;
    snprintf(paths[turn], sizeof paths[turn], "%s/%s", directory, name);
    return paths[turn];
}

static void put_bytes(const char *name, int flags, const void *bytes, size_t n)
{
    int fd = open(in(name), O_WRONLY | O_CREAT | flags, 0666);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    close(fd);
}

static void put(const char *name, int flags, const char *text)
{
    put_bytes(name, flags, text, strlen(text));
}

/* The beginning of an event file. */
static void put_events(const char *name, const char *text)
{
    char bytes[64] = { 0 };

    put_le64(bytes, strlen(text));
    put_le32(bytes + 8, crc32c_mask(crc32c(bytes, 8)));
    memcpy(bytes + 12, text, strlen(text));
    put_bytes(name, 0, bytes, 12 + strlen(text));
}

/* logs/a/b: two event files; logs/c: one, a note and a script; logs: one; a link to a run outside, and one to an event file. */
static int setup(void **state)
{
    (void)state;
    strcpy(directory, "/tmp/test_removable.XXXXXX");
    if (!mkdtemp(directory))
        return -1;
    for (const char *const *d = (const char *const[]){ "logs", "logs/a", "logs/a/b", "logs/c", "out", NULL }; *d; d++)
        assert_int_equal(mkdir(in(*d), 0777), 0);
    put_events("logs/a/b/1.tfevents", "first");
    put_events("logs/a/b/2.tfevents", "second");
    put_events("logs/c/1.tfevents", "third");
    put("logs/c/note", 0, "kept");
    put("logs/c/tfevents.py", 0, "#!/usr/bin/python3\n");
    put_events("logs/1.tfevents", "fourth");
    put_events("out/1.tfevents", "outside");
    assert_int_equal(symlink(in("out"), in("logs/link")), 0);
    assert_int_equal(symlink(in("out/1.tfevents"), in("logs/c/2.tfevents")), 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return remove_tree(directory);
}

static struct removable list(void)
{
    struct removable r = { 0 };
    struct error e = { 0 };
    char path[128];

    snprintf(path, sizeof path, "%s", in("logs"));
    if (removable_list(&r, path, 0, &no_log, &e) != OK)
        fail_msg("%s", e.message);
    return r;
}

static struct removable_run *find(const struct removable *r, const char *name)
{
    for (size_t i = 0; i < r->count; i++)
        if (!strcmp(r->runs[i].name, name))
            return &r->runs[i];
    return NULL;
}

static int there(const char *name)
{
    return access(in(name), F_OK) == 0;
}

static void test_list_and_delete(void **state)
{
    struct removable r = list();
    struct removable_run *run = find(&r, "a/b");
    struct error e = { 0 };
    int unknown = 0;

    (void)state;
    assert_int_equal(r.count, 3);
    assert_int_equal(r.links, 2);
    assert_int_equal(r.others, 1);
    assert_int_equal(r.failed, 0);
    assert_non_null(run);
    assert_int_equal(run->count, 2);
    assert_int_equal(run->bytes, 2 * 12 + 11);
    assert_string_equal(run->files[1].name, "2.tfevents");
    assert_true(run->changed > 1e9);
    assert_non_null(find(&r, "."));
    for (size_t i = 0; i < r.count; i++) {
        assert_int_equal(removable_check(&r.runs[i], &unknown, &e), OK);
        assert_int_equal(removable_delete(&r.runs[i], &e), OK);
    }
    assert_int_equal(unknown, 0);
    /* Nothing but event files, and the directories that they alone were in. */
    assert_false(there("logs/a"));
    assert_false(there("logs/c/1.tfevents"));
    assert_false(there("logs/1.tfevents"));
    assert_true(there("logs/c/note"));
    assert_true(there("logs/c/tfevents.py"));
    assert_true(there("logs/c/2.tfevents"));
    assert_true(there("out/1.tfevents"));
    removable_release(&r);

    char file[128];
    snprintf(file, sizeof file, "%s", in("out/1.tfevents"));
    assert_int_equal(removable_list(&r, file, 0, &no_log, &e), ERR_ARG);
    snprintf(file, sizeof file, "%s", in("none"));
    assert_int_equal(removable_list(&r, file, 0, &no_log, &e), ERR_IO);
}

/* ---- what keeps a run ------------------------------------------------------------------------------------------ */

static int held = -1;

static void appended(void)
{
    put("logs/a/b/1.tfevents", O_APPEND, "more");
}
static void cut(void)
{
    assert_int_equal(truncate(in("logs/a/b/2.tfevents"), 1), 0);
}
static void new_file(void)
{
    put_events("logs/a/b/3.tfevents", "third");
}
static void new_empty_file(void)
{
    put("logs/a/b/3.tfevents", 0, "");
}
static void gone(void)
{
    assert_int_equal(unlink(in("logs/a/b/2.tfevents")), 0);
}
static void opened(void)
{
    held = open(in("logs/a/b/2.tfevents"), O_WRONLY | O_APPEND);
}

static void locked(void)
{
    held = open(in("logs/a/b/2.tfevents"), O_RDONLY);
    assert_int_equal(flock(held, LOCK_EX), 0);
}

static void replaced(void)
{
    put_events("new", "second");
    assert_int_equal(rename(in("new"), in("logs/a/b/2.tfevents")), 0);
}

static void made_a_link(void)
{
    assert_int_equal(rename(in("logs/a/b/2.tfevents"), in("moved")), 0);
    assert_int_equal(symlink(in("moved"), in("logs/a/b/2.tfevents")), 0);
}

static void directory_made_a_link(void)
{
    assert_int_equal(rename(in("logs/a/b"), in("moved")), 0);
    assert_int_equal(symlink(in("moved"), in("logs/a/b")), 0);
}

static void another_directory(void)
{
    assert_int_equal(rename(in("logs/a/b"), in("moved")), 0);
    assert_int_equal(rename(in("out"), in("logs/a/b")), 0);
}

static const struct {
    const char *name;
    void (*change)(void);
    const char *word;
} changes[] = {
    { "appended", appended, "has changed" },
    { "cut", cut, "has changed" },
    { "a new file", new_file, "has come" },
    { "a new empty file", new_empty_file, "has come" },
    { "gone", gone, "cannot be opened" },
    { "open for writing", opened, "is being written" },
    { "locked", locked, "is being written" },
    { "replaced", replaced, "has changed" },
    { "made a link", made_a_link, "cannot be opened" },
    { "directory made a link", directory_made_a_link, "cannot be entered" },
    { "another directory", another_directory, "another directory" },
};

static void test_changes_keep_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        struct removable r = list();
        struct error e = { 0 };
        int unknown = 0, files = 0;

        changes[i].change();
        for (int k = 0; k < 2; k++) {
            int rc = k ? removable_delete(find(&r, "a/b"), &e) : removable_check(find(&r, "a/b"), &unknown, &e);

            if (rc != ERR_ARG || !strstr(e.message, changes[i].word) || !strstr(e.message, "run a/b: "))
                fail_msg("%s: %d, %s", changes[i].name, rc, e.message);
        }
        for (const char *const *f = (const char *const[]){ "logs/a/b/1.tfevents", "moved/1.tfevents", NULL }; *f; f++)
            files += there(*f);
        assert_true(files >= 1);
        if (held >= 0)
            close(held);
        held = -1;
        removable_release(&r);
        assert_int_equal(teardown(NULL), 0);
        assert_int_equal(setup(NULL), 0);
    }
}

/* ---- while it works -------------------------------------------------------------------------------------------- */

static int delete_one(void *run)
{
    return removable_delete(run, NULL);
}

static int delete_some(void *run)
{
    removable_delete(run, NULL);
    return 0;
}

/* A way to interfere with the deletion of logs/a/b; whether it was possible. And whether nothing of it was lost. */
struct interference {
    const char *name;
    int (*begin)(void);
    int (*is_whole)(void);
};

static int replace(void)
{
    put_events("new", "newcomer");
    return rename(in("new"), in("logs/a/b/1.tfevents")) == 0;
}

static int newcomer_is_there(void)
{
    struct stat st;

    return stat(in("logs/a/b/1.tfevents"), &st) == 0 && st.st_size == 12 + 8;
}

/* Not while the other one looks at it: then it would wait. */
static int open_for_writing(void)
{
    held = open(in("logs/a/b/1.tfevents"), O_WRONLY | O_APPEND | O_NONBLOCK);
    return held >= 0;
}

static int opened_is_there(void)
{
    struct stat st;

    assert_int_equal(fstat(held, &st), 0);
    close(held);
    held = -1;
    return st.st_nlink == 1 && there("logs/a/b/1.tfevents");
}

static const struct interference interferences[] = {
    { "replaced", replace, newcomer_is_there },
    { "open for writing", open_for_writing, opened_is_there },
};

/* At whatever moment: what was not there when it was listed is not deleted, nor what somebody opens for writing. */
static void test_interference(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof interferences / sizeof *interferences; i++) {
        const struct interference *other = &interferences[i];
        int over = 0, possible = 0;

        for (int calls = 0; !over; calls++) {
            struct removable r = list();
            pid_t child = stopped_at(delete_some, find(&r, "a/b"), calls);
            int begun = child && access(in("logs/a/b"), F_OK) == 0 && other->begin(), status;

            over = !child;
            possible += begun;
            if (child) {
                assert_int_equal(ptrace(PTRACE_DETACH, child, NULL, NULL), 0);
                assert_int_equal(waitpid(child, &status, 0), child);
                assert_true(WIFEXITED(status));
            }
            if (begun && !other->is_whole())
                fail_msg("%s before system call %d: lost", other->name, calls);
            removable_release(&r);
            assert_int_equal(teardown(NULL), 0);
            assert_int_equal(setup(NULL), 0);
            assert_in_range(calls, 0, 300);
        }
        assert_in_range(possible, 10, 300);
    }
}

static void test_killed(void **state)
{
    int over = 0, halves = 0;

    (void)state;
    for (int calls = 0; !over; calls++) {
        struct removable r = list();
        struct removable_run *run = find(&r, "a/b");

        over = killed_at(delete_one, run, calls);
        /* What is left is the beginning of the run, and all that is none of it. */
        assert_true(there("logs/a/b/1.tfevents") || !there("logs/a/b/2.tfevents"));
        assert_true(there("logs/a/b/1.tfevents") || !there("logs/a/b/2.tfevents.prune"));
        halves += there("logs/a/b/1.tfevents") && !there("logs/a/b/2.tfevents");
        assert_true(there("logs/c/1.tfevents") && there("logs/1.tfevents") && there("out/1.tfevents"));
        removable_release(&r);
        r = list();
        if ((run = find(&r, "a/b")))
            assert_int_equal(removable_delete(run, NULL), OK);
        removable_release(&r);
        r = list();
        assert_null(find(&r, "a/b"));
        removable_release(&r);
        assert_int_equal(teardown(NULL), 0);
        assert_int_equal(setup(NULL), 0);
        assert_in_range(calls, 0, 300);
    }
    assert_true(halves > 0);
}

/* What goes wrong with the last file leaves all of them. */
static void test_cannot_be_deleted(void **state)
{
    const char *name = "logs/a/b/2.tfevents.prune";
    char too_long[300] = "logs/a/b/";
    struct error e = { 0 };
    struct removable r;

    (void)state;
    put(name, 0, "a note");
    r = list();
    assert_int_equal(removable_delete(find(&r, "a/b"), &e), ERR_IO);
    assert_non_null(strstr(e.message, "2.tfevents.prune is in the way"));
    assert_true(there("logs/a/b/1.tfevents") && there("logs/a/b/2.tfevents"));
    removable_release(&r);
    assert_int_equal(unlink(in(name)), 0);

    memset(too_long + strlen(too_long), '9', 246);
    strcat(too_long, ".tfevents");
    put_events(too_long, "third");
    r = list();
    assert_int_equal(removable_delete(find(&r, "a/b"), &e), ERR_IO);
    assert_non_null(strstr(e.message, "its name is too long"));
    assert_true(there("logs/a/b/1.tfevents") && there("logs/a/b/2.tfevents") && there(too_long));
    removable_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_list_and_delete, setup, teardown),
        cmocka_unit_test_setup_teardown(test_changes_keep_it, setup, teardown),
        cmocka_unit_test_setup_teardown(test_interference, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cannot_be_deleted, setup, teardown),
        cmocka_unit_test_setup_teardown(test_killed, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
