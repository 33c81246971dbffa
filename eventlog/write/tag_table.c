#include "eventlog/write/tag_table.h"

#include <stdlib.h>
#include <string.h>

/* Open addressing, at most half full. plugin lies behind the tag's NUL. */
enum { LEAST_CAPACITY = 16 };

/* Eight bytes at a time, the last ones overlapping: tags come from the program itself, so no one aims at collisions. */
static uint64_t hash_of(const char *tag, size_t n)
{
    const uint64_t odd = 0x9e3779b97f4a7c15u;
    uint64_t h = n * odd, word = 0;

    if (n < 8) {
        for (size_t i = 0; i < n; i++)
            word = word << 8 | (unsigned char)tag[i];
    } else {
        for (size_t i = 0; i + 8 < n; i += 8) {
            memcpy(&word, tag + i, 8);
            h = (h ^ word) * odd;
            h ^= h >> 32;
        }
        memcpy(&word, tag + n - 8, 8);
    }
    h = (h ^ word) * odd;
    return h ^ h >> 29;
}

/* Where tag stands, or the free entry where it would. */
static struct tag_entry *place(struct tag_entry *entries, size_t capacity, const char *tag, size_t n, uint64_t hash)
{
    size_t i = (size_t)hash & (capacity - 1);

    while (entries[i].tag &&
           (entries[i].hash != hash || entries[i].length != n || memcmp(entries[i].tag, tag, n) != 0))
        i = (i + 1) & (capacity - 1);
    return entries + i;
}

void tag_table_release(struct tag_table *t)
{
    for (size_t i = 0; i < t->capacity; i++)
        free(t->entries[i].tag);
    free(t->entries);
    memset(t, 0, sizeof *t);
}

struct tag_entry *tag_table_entry(const struct tag_table *t, const char *tag, size_t n)
{
    struct tag_entry *entry = t->capacity ? place(t->entries, t->capacity, tag, n, hash_of(tag, n)) : NULL;

    return entry && entry->tag ? entry : NULL;
}

static int grow(struct tag_table *t)
{
    size_t capacity = t->capacity ? t->capacity * 2 : LEAST_CAPACITY;
    struct tag_entry *entries = calloc(capacity, sizeof *entries);

    if (!entries)
        return -1;
    for (size_t i = 0; i < t->capacity; i++) {
        const struct tag_entry *old = &t->entries[i];

        if (old->tag)
            *place(entries, capacity, old->tag, old->length, old->hash) = *old;
    }
    free(t->entries);
    t->entries = entries;
    t->capacity = capacity;
    return 0;
}

int tag_table_add(struct tag_table *t, const char *tag, const char *plugin)
{
    size_t length = strlen(tag), plugin_length = strlen(plugin) + 1;
    struct tag_entry entry = { .hash = hash_of(tag, length), .length = length };

    if (t->count >= t->capacity / 2 && grow(t) < 0)
        return -1;
    if (!(entry.tag = malloc(length + 1 + plugin_length)))
        return -1;
    memcpy(entry.tag, tag, length + 1);
    memcpy(entry.tag + length + 1, plugin, plugin_length);
    entry.plugin = entry.tag + length + 1;
    *place(t->entries, t->capacity, tag, length, entry.hash) = entry;
    t->count++;
    return 0;
}
