/*
 * tag_index.h - numbers for tags, 0, 1, 2, ... in order of appearance, so that what is known of a series can stand in
 * an array. Tags are strings of bytes and may hold NULs. One thread at a time.
 */
#ifndef EVENTLOG_FORMAT_TAG_INDEX_H
#define EVENTLOG_FORMAT_TAG_INDEX_H

#include <stddef.h>
#include <stdint.h>

struct tag_index_entry {
    char *text; /* length bytes, then a NUL */
    size_t length, value; /* value: the caller's, 0 at first */
    uint32_t hash;
};

struct tag_index {
    struct tag_index_entry *entries; /* count of them */
    size_t count, capacity;
    size_t *slots, slot_count; /* number + 1 by hash, open addressing, at most half full */
    size_t next;               /* the number that a log has next if its tags always come in the same order */
};

#define TAG_INDEX_EMPTY { NULL, 0, 0, NULL, 0, 0 }
#define TAG_INDEX_NONE ((size_t)-1)

void tag_index_release(struct tag_index *t);

/* The number of a tag, TAG_INDEX_NONE if it has none. Fastest where tags come in the same order again and again. */
size_t tag_index_find(struct tag_index *t, const char *tag, size_t n);

/* The same, but a new tag is copied and gets the next number; TAG_INDEX_NONE only without memory. */
size_t tag_index_add(struct tag_index *t, const char *tag, size_t n);

#endif
