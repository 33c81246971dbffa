/*
 * tag_table.h - which tags a run has already, and the plugin that each belongs to. One thread at a time. It is asked at
 * every call of the writer: fastest where tags come in the same order again and again.
 */
#ifndef EVENTLOG_WRITE_TAG_TABLE_H
#define EVENTLOG_WRITE_TAG_TABLE_H

#include "eventlog/format/tag_index.h"

#include <stddef.h>
#include <stdint.h>

struct tag_entry {
    const char *plugin; /* that it was added with; the table's */
    uint64_t file;      /* the caller's: number of the last file that has the tag's metadata; 0 at first */
};

struct tag_table {
    struct tag_index tags; /* items: struct tag_entry */
    struct tag_index plugins;
};

#define TAG_TABLE_EMPTY \
    { \
        TAG_INDEX_OF(struct tag_entry), TAG_INDEX_EMPTY \
    }

void tag_table_release(struct tag_table *t);

/* The entry of the tag of n bytes, borrowed until the next add; NULL when the table does not have it. */
struct tag_entry *tag_table_entry(struct tag_table *t, const char *tag, size_t n);

/* Adds a tag that is not in it; both texts are copied. Its entry, or NULL without memory. */
struct tag_entry *tag_table_add(struct tag_table *t, const char *tag, const char *plugin);

#endif
