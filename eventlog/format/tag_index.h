/*
 * tag_index.h - numbers for tags, 0, 1, 2, ... in order of appearance, so that what is known of a series can be kept in
 * an array: the caller's own, or the items of the index. Tags are strings of bytes and may hold NULs. One thread at a
 * time.
 */
#ifndef EVENTLOG_FORMAT_TAG_INDEX_H
#define EVENTLOG_FORMAT_TAG_INDEX_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct tag_index_entry {
    char *text;           /* length bytes, then a NUL */
    size_t length, value; /* value: the caller's, 0 at first */
    uint32_t hash;
};

struct tag_index {
    struct tag_index_entry *entries; /* count of them */
    size_t count, capacity;
    size_t *slots, slot_count; /* number + 1 by hash; open addressing, at most half full */
    size_t next;               /* the number expected next if tags always come in the same order */
    size_t item_size;          /* set before the first tag; 0: no items */
    void *items;               /* count of them, by number; a new one is all zero */
};

#define TAG_INDEX_EMPTY \
    { \
        .entries = NULL \
    }
#define TAG_INDEX_OF(type) \
    { \
        .item_size = sizeof(type) \
    }
#define TAG_INDEX_NONE ((size_t)-1)

/* Leaves the index empty and ready for use. */
void tag_index_release(struct tag_index *t);

/* The number of a tag, or TAG_INDEX_NONE, by its hash; it need not be the one expected next. tag_index_peek() changes
 * nothing, and so is for several threads. */
size_t tag_index_peek(const struct tag_index *t, const char *tag, size_t n);
size_t tag_index_search(struct tag_index *t, const char *tag, size_t n);

/* The same. A training logs the same tags in the same order at each step: trying the tag that came next the last time
 * walks memory from front to back; by hashes alone, 100,000 tags are spread all over it. */
static inline size_t tag_index_find(struct tag_index *t, const char *tag, size_t n)
{
    const size_t number = t->next;

    if (number >= t->count || t->entries[number].length != n || memcmp(t->entries[number].text, tag, n) != 0)
        return tag_index_search(t, tag, n);
    t->next = number + 1 < t->count ? number + 1 : 0;
    return number;
}

/* The same, but a new tag is copied and gets the next number; TAG_INDEX_NONE only if memory runs out. */
size_t tag_index_add(struct tag_index *t, const char *tag, size_t n);

/* The same for the tag's item, borrowed until a tag is added; NULL only without memory. */
void *tag_index_item(struct tag_index *t, const char *tag, size_t n);

#endif
