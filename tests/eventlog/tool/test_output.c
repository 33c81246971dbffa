/* A file that a command writes: it has no name, of its own or another, until it is whole. */
#include "eventlog/tool/output.h"

#include "tests/check.h"
#include "tests/eventlog/remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[64], path[128];
static int nameless; /* this file system has files without names; on others the temporary one is seen */

static int setup(void **state)
{
    int fd;
    (void)state;

    strcpy(directory, "/tmp/test_output.XXXXXX");
    if (!mkdtemp(directory))
        return -1;
    nameless = (fd = open(directory, O_TMPFILE | O_WRONLY, 0666)) >= 0;
    close(fd);
    snprintf(path, sizeof path, "%s/out.txt", directory);
    return 0;
}

static int empty(void **state)
{
    (void)state;
    return empty_tree(directory);
}

static int teardown(void **state)
{
    return empty(state) || rmdir(directory);
}

static int names(void)
{
    DIR *d = opendir(directory);
    int count = -2; /* "." and ".." */

    assert_non_null(d);
    while (readdir(d))
        count++;
    closedir(d);
    return count;
}

static void put(const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(close(fd), 0);
}

static void expect(const char *text)
{
    int fd = open(path, O_RDONLY);
    char bytes[16] = "";

    assert_true(fd >= 0);
    assert_int_equal(read(fd, bytes, sizeof bytes - 1), strlen(text));
    assert_string_equal(bytes, text);
    close(fd);
    assert_int_equal(names(), 1);
}

static struct output *write_some(int force)
{
    struct error e = { 0 };
    struct output *o;

    if (output_open(&o, path, force, &e) != OK)
        fail_msg("%s", e.message);
    output_text(o, "new");
    return o;
}

static void test_appears_whole(void **state)
{
    mode_t mask = umask(027);
    struct output *o = write_some(0);
    struct error e = { 0 };
    struct stat st;
    (void)state;

    assert_int_equal(names(), !nameless); /* what is killed here leaves nothing */
    assert_int_equal(output_close(o, 1, &e), OK);
    umask(mask);
    expect("new");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    o = write_some(1);
    assert_int_equal(names(), 1 + !nameless);
    assert_int_equal(output_close(o, 0, NULL), OK);
    expect("new");
}

static void test_overwrites_only_when_told(void **state)
{
    struct output *o = write_some(0);
    struct error e = { 0 };
    (void)state;

    put("other"); /* meanwhile */
    if (nameless) {
        assert_int_equal(output_close(o, 1, &e), ERR_ARG);
        assert_non_null(strstr(e.message, "out.txt: already exists; use -f"));
    } else {
        output_close(o, 0, NULL);
    }
    expect("other");
    assert_int_equal(output_open(&o, path, 0, &e), ERR_ARG);
    o = write_some(1);
    assert_int_equal(output_close(o, 1, &e), OK);
    expect("new");
}

/* Who writes to it by itself asks for a name. */
static void test_named(void **state)
{
    struct output *o = write_some(0);
    struct error e = { 0 };
    (void)state;

    assert_int_equal(access(output_temporary(o), F_OK), 0);
    assert_int_equal(names(), 1);
    assert_int_equal(output_close(o, 0, NULL), OK);
    assert_int_equal(names(), 0);
    o = write_some(0);
    assert_non_null(output_temporary(o));
    assert_int_equal(output_close(o, 1, &e), OK);
    expect("new");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_appears_whole, empty),
        cmocka_unit_test_teardown(test_overwrites_only_when_told, empty),
        cmocka_unit_test_teardown(test_named, empty),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
