/* Directories of a kind below one: which are visited, in which order, and what an error does. */
#include "base/directory_walk.h"

#include "base/error.h"
#include "base/file.h"
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct seen {
    const char *top;
    char names[256]; /* below top, each with a blank behind */
};

/* Whatever ends in "x" is of the kind, but for the top, which ends as mkdtemp() likes; and "badx" goes wrong. */
static int visit(void *context, const char *directory)
{
    struct seen *s = context;
    const char *name = file_base_name(directory);
    size_t used = strlen(s->names);

    snprintf(s->names + used, sizeof s->names - used, "%s ", directory + strlen(s->top));
    if (!strcmp(name, "badx"))
        return ERR_IO;
    return strcmp(directory, s->top) && name[strlen(name) - 1] == 'x';
}

static void test_walk(void **state)
{
    static const char *const made[] = { "r10x", "r2x", "r2x/belowx", "a", "a/deepx", ".hiddenx", "badx" };
    char top[] = "/tmp/walk.XXXXXX", path[64], link[64];
    struct seen s = { .top = top, .names = "" };

    (void)state;
    assert_non_null(mkdtemp(top));
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        snprintf(path, sizeof path, "%s/%s", top, made[i]);
        assert_int_equal(file_make_directories(path, NULL), OK);
    }
    snprintf(path, sizeof path, "%s/filex", top);
    assert_int_equal(file_replace(NULL, path, "", 0, NULL), OK);
    snprintf(link, sizeof link, "%s/linkx", top);
    assert_int_equal(symlink("r2x", link), 0);
    assert_int_equal(directory_walk(top, visit, &s), ERR_IO);
    assert_string_equal(s.names, " /a /a/deepx /badx /r2x /r10x ");
    s = (struct seen){ .top = top, .names = "" };
    assert_int_equal(directory_walk(link, visit, &s), OK); /* given by name a link is as good */
    assert_string_equal(s.names, "/linkx ");
    s = (struct seen){ .top = top, .names = "" };
    assert_int_equal(directory_walk("/tmp/nowhere/at/all", visit, &s), OK);
    unlink(path);
    unlink(link);
    for (size_t i = sizeof made / sizeof *made; i-- > 0;) {
        snprintf(path, sizeof path, "%s/%s", top, made[i]);
        rmdir(path);
    }
    assert_int_equal(rmdir(top), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_walk) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
