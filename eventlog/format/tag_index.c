#include "eventlog/format/tag_index.h"

#include "base/crc32c.h"

#include <stdlib.h>
#include <string.h>

/* Room for two tags: a log of thousands of runs has as many indexes, most of them of few tags. */
enum { LEAST_SLOTS = 4 };

void tag_index_release(struct tag_index *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->entries[i].text);
    free(t->entries);
    free(t->slots);
    free(t->items);
    *t = (struct tag_index){ .item_size = t->item_size };
}

/* The slot with the tag's number, or the free slot for it; there is one, since half are free. */
static size_t place(const struct tag_index *t, const char *tag, size_t n, uint32_t hash)
{
    size_t k = hash & (t->slot_count - 1);

    for (; t->slots[k]; k = (k + 1) & (t->slot_count - 1)) {
        const struct tag_index_entry *entry = &t->entries[t->slots[k] - 1];

        if (entry->hash == hash && entry->length == n && !memcmp(entry->text, tag, n))
            break;
    }
    return k;
}

size_t tag_index_peek(const struct tag_index *t, const char *tag, size_t n)
{
    return t->slot_count ? t->slots[place(t, tag, n, crc32c(tag, n))] - 1 : TAG_INDEX_NONE;
}

size_t tag_index_search(struct tag_index *t, const char *tag, size_t n)
{
    const size_t number = tag_index_peek(t, tag, n);

    if (number != TAG_INDEX_NONE)
        t->next = number + 1 < t->count ? number + 1 : 0;
    return number;
}

static int grow(struct tag_index *t)
{
    size_t count = t->slot_count ? t->slot_count * 2 : LEAST_SLOTS, *slots = calloc(count, sizeof *slots);
    struct tag_index_entry *entries = slots ? realloc(t->entries, count / 2 * sizeof *entries) : NULL;
    void *items = NULL;

    if (entries) {
        t->entries = entries;
        items = t->item_size ? realloc(t->items, count / 2 * t->item_size) : t->entries;
    }
    if (!items) {
        free(slots);
        return -1;
    }
    t->items = t->item_size ? items : NULL;
    free(t->slots);
    t->capacity = count / 2;
    t->slots = slots;
    t->slot_count = count;
    for (size_t i = 0; i < t->count; i++)
        slots[place(t, entries[i].text, entries[i].length, entries[i].hash)] = i + 1;
    return 0;
}

size_t tag_index_add(struct tag_index *t, const char *tag, size_t n)
{
    size_t known = tag_index_find(t, tag, n);
    struct tag_index_entry *entry;

    if (known != TAG_INDEX_NONE)
        return known;
    if (t->count == t->capacity && grow(t) < 0)
        return TAG_INDEX_NONE;
    entry = &t->entries[t->count];
    if (!(entry->text = malloc(n + 1)))
        return TAG_INDEX_NONE;
    memcpy(entry->text, tag, n);
    entry->text[n] = '\0';
    entry->length = n;
    entry->value = 0;
    entry->hash = crc32c(tag, n);
    t->slots[place(t, tag, n, entry->hash)] = t->count + 1;
    if (t->item_size)
        memset((char *)t->items + t->count * t->item_size, 0, t->item_size);
    return t->count++;
}

void *tag_index_item(struct tag_index *t, const char *tag, size_t n)
{
    size_t number = tag_index_add(t, tag, n);

    return number == TAG_INDEX_NONE ? NULL : (char *)t->items + number * t->item_size;
}
