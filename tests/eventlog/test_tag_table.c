/* Ten thousand tags: each found with its own plugin, none else. */
#include "eventlog/write/event_writer.h"

#include "tests/check.h"

#include <stdio.h>
#include <string.h>

static const char *plugin_of(struct tag_table *t, const char *tag)
{
    const struct tag_entry *entry = tag_table_entry(t, tag, strlen(tag));

    return entry ? entry->plugin : NULL;
}

static void test_many(void **state)
{
    static const char *const plugins[] = { "text", "images", "audio" };
    struct tag_table t = TAG_TABLE_EMPTY;
    char tag[32];
    (void)state;

    assert_null(plugin_of(&t, "tag 0"));
    for (int i = 0; i < 10000; i++) {
        snprintf(tag, sizeof tag, "tag %d", i);
        assert_null(plugin_of(&t, tag));
        assert_string_equal(tag_table_add(&t, tag, plugins[i % 3])->plugin, plugins[i % 3]);
        assert_int_equal(t.tags.count, i + 1);
        assert_int_equal(t.plugins.count, i < 3 ? i + 1 : 3);
    }
    for (int i = 0; i < 10000; i++) {
        snprintf(tag, sizeof tag, "tag %d", i);
        assert_string_equal(plugin_of(&t, tag), plugins[i % 3]);
    }
    assert_null(plugin_of(&t, ""));
    assert_null(plugin_of(&t, "tag"));
    tag_table_release(&t);
    assert_null(plugin_of(&t, "tag 0"));
    tag_table_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_many) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
