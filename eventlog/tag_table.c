#include "eventlog/tag_table.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Open addressing, at most half full; an entry is free while its tag is NULL. plugin lies behind the tag's NUL. */
struct tag_entry {
    uint64_t hash;
    char *tag, *plugin;
};

enum { LEAST_CAPACITY = 16 };

/* FNV-1a, 64 bits: tags come from the program itself, so no one aims at collisions. */
static uint64_t hash_of(const char *tag)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (; *tag; tag++)
        h = (h ^ (unsigned char)*tag) * 0x100000001b3u;
    return h;
}

/* Where tag stands, or the free entry where it would. */
static struct tag_entry *place(struct tag_entry *entries, size_t capacity, const char *tag, uint64_t hash)
{
    size_t i = (size_t)hash & (capacity - 1);

    while (entries[i].tag && (entries[i].hash != hash || strcmp(entries[i].tag, tag) != 0))
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

const char *tag_table_find(const struct tag_table *t, const char *tag)
{
    return t->capacity ? place(t->entries, t->capacity, tag, hash_of(tag))->plugin : NULL;
}

static int grow(struct tag_table *t)
{
    size_t capacity = t->capacity ? t->capacity * 2 : LEAST_CAPACITY;
    struct tag_entry *entries = calloc(capacity, sizeof *entries);

    if (!entries)
        return -1;
    for (size_t i = 0; i < t->capacity; i++)
        if (t->entries[i].tag)
            *place(entries, capacity, t->entries[i].tag, t->entries[i].hash) = t->entries[i];
    free(t->entries);
    t->entries = entries;
    t->capacity = capacity;
    return 0;
}

int tag_table_add(struct tag_table *t, const char *tag, const char *plugin)
{
    size_t length = strlen(tag) + 1, plugin_length = strlen(plugin) + 1;
    struct tag_entry entry = { hash_of(tag), NULL, NULL };

    if (t->count >= t->capacity / 2 && grow(t) < 0)
        return -1;
    if (!(entry.tag = malloc(length + plugin_length)))
        return -1;
    entry.plugin = entry.tag + length;
    memcpy(entry.tag, tag, length);
    memcpy(entry.plugin, plugin, plugin_length);
    *place(t->entries, t->capacity, tag, entry.hash) = entry;
    t->count++;
    return 0;
}
