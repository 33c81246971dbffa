/*
 * tag_table.h - which tags a file has already, and the plugin that each belongs to. One thread at a time. It is asked
 * at every call of the writer, so its hash is a few multiplications; where tags come out of files, tag_index.h is
 * right.
 */
#ifndef EVENTLOG_WRITE_TAG_TABLE_H
#define EVENTLOG_WRITE_TAG_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct tag_entry { /* free while tag is NULL */
    uint64_t hash;
    size_t length;
    char *tag;          /* length bytes and a NUL */
    const char *plugin; /* that it was added with */
    uint64_t file;      /* the caller's: number of the last file that has the tag's metadata; 0 at first */
};

struct tag_table {
    struct tag_entry *entries; /* capacity of them, a power of two, or NULL while empty */
    size_t count, capacity;
};

#define TAG_TABLE_EMPTY { NULL, 0, 0 }

void tag_table_release(struct tag_table *t);

/* The entry of the tag of n bytes, borrowed until the next add; NULL when the table does not have it. */
struct tag_entry *tag_table_entry(const struct tag_table *t, const char *tag, size_t n);

/* Adds a tag that is not in it; both texts are copied. 0, or -1 without memory: then the table is as before. */
int tag_table_add(struct tag_table *t, const char *tag, const char *plugin);

#endif
