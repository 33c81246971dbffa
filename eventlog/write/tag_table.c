#include "eventlog/write/tag_table.h"

#include <string.h>

void tag_table_release(struct tag_table *t)
{
    tag_index_release(&t->tags);
    tag_index_release(&t->plugins);
}

struct tag_entry *tag_table_entry(struct tag_table *t, const char *tag, size_t n)
{
    size_t number = tag_index_find(&t->tags, tag, n);

    return number == TAG_INDEX_NONE ? NULL : (struct tag_entry *)t->tags.items + number;
}

struct tag_entry *tag_table_add(struct tag_table *t, const char *tag, const char *plugin)
{
    size_t number = tag_index_add(&t->plugins, plugin, strlen(plugin));
    struct tag_entry *entry = number == TAG_INDEX_NONE ? NULL : tag_index_item(&t->tags, tag, strlen(tag));

    if (entry)
        entry->plugin = t->plugins.entries[number].text;
    return entry;
}
