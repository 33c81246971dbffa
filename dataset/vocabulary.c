#include "dataset/vocabulary.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS_FIRST = 1 << 12 };

struct entry {
    struct word word;
    uint64_t hash, count;
    int32_t number;
};

struct vocabulary {
    struct entry *entries; /* in the order in which they came, then of their numbers */
    size_t count, room;
    uint32_t *slots; /* (slot_count) a hash table: index of an entry plus 1; 0: free */
    size_t slot_count;
    int32_t used; /* numbers */
};

int vocabulary_new(struct vocabulary **out, struct error *e)
{
    struct vocabulary *v = calloc(1, sizeof *v);

    if (v)
        v->slots = calloc(v->slot_count = SLOTS_FIRST, sizeof *v->slots);
    if (!v || !v->slots) {
        vocabulary_free(v);
        return error_memory(e, NULL, "for a vocabulary");
    }
    *out = v;
    return OK;
}

void vocabulary_free(struct vocabulary *v)
{
    if (!v)
        return;
    free(v->entries);
    free(v->slots);
    free(v);
}

/* FNV-1a */
static uint64_t add_hash(uint64_t h, struct word w)
{
    for (size_t i = 0; i < w.length; i++)
        h = (h ^ (unsigned char)w.text[i]) * 0x100000001b3u;
    return h;
}

static uint64_t hash_of(struct word w)
{
    return add_hash(0xcbf29ce484222325u, w);
}

/* The slot of the word, or the free one where it belongs. */
static uint32_t *slot_of(const struct vocabulary *v, struct word w, uint64_t hash)
{
    size_t i = (size_t)(hash ^ hash >> 32) & (v->slot_count - 1);

    for (;; i = (i + 1) & (v->slot_count - 1)) {
        const struct entry *x = v->slots[i] ? &v->entries[v->slots[i] - 1] : NULL;

        if (!x || (x->hash == hash && x->word.length == w.length && !memcmp(x->word.text, w.text, w.length)))
            return &v->slots[i];
    }
}

static void fill_slots(struct vocabulary *v)
{
    memset(v->slots, 0, v->slot_count * sizeof *v->slots);
    for (size_t k = 0; k < v->count; k++)
        *slot_of(v, v->entries[k].word, v->entries[k].hash) = (uint32_t)k + 1;
}

/* Room for another word, and less than half of the slots in use. */
static int grow(struct vocabulary *v)
{
    if (v->count == v->room) {
        const size_t room = v->room ? 2 * v->room : SLOTS_FIRST;
        struct entry *entries = room < UINT32_MAX ? realloc(v->entries, room * sizeof *entries) : NULL;

        if (!entries)
            return 0;
        v->entries = entries;
        v->room = room;
    }
    if (2 * v->count >= v->slot_count) {
        uint32_t *slots = calloc(2 * v->slot_count, sizeof *slots);

        if (!slots)
            return 0;
        free(v->slots);
        v->slots = slots;
        v->slot_count *= 2;
        fill_slots(v);
    }
    return 1;
}

int vocabulary_count(struct vocabulary *v, struct word w, struct error *e)
{
    const uint64_t hash = hash_of(w);
    uint32_t *slot;

    if (!grow(v))
        return error_memory(e, NULL, "for a vocabulary of %zu words", v->count);
    slot = slot_of(v, w, hash);
    if (!*slot) {
        v->entries[v->count] = (struct entry){ w, hash, 0, VOCABULARY_UNKNOWN };
        *slot = (uint32_t)++v->count;
    }
    v->entries[*slot - 1].count++;
    return OK;
}

static int is_unknown(struct word w)
{
    return w.length == strlen(WORDS_UNKNOWN) && !memcmp(w.text, WORDS_UNKNOWN, w.length);
}

static int compare_bytes(struct word a, struct word b)
{
    const int order = memcmp(a.text, b.text, a.length < b.length ? a.length : b.length);

    return order ? order : (a.length > b.length) - (a.length < b.length);
}

/* The unknown word last: it has a number already. */
static int most_frequent_first(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (is_unknown(x->word) || is_unknown(y->word))
        return is_unknown(x->word) - is_unknown(y->word);
    return x->count != y->count ? (x->count < y->count ? 1 : -1) : compare_bytes(x->word, y->word);
}

int32_t vocabulary_choose(struct vocabulary *v, int32_t size)
{
    if (v->count)
        qsort(v->entries, v->count, sizeof *v->entries, most_frequent_first);
    fill_slots(v);
    v->used = VOCABULARY_FIRST;
    for (size_t k = 0; k < v->count && v->used < size && !is_unknown(v->entries[k].word); k++)
        v->entries[k].number = v->used++;
    return v->used;
}

int32_t vocabulary_find(const struct vocabulary *v, struct word w)
{
    const uint32_t slot = *slot_of(v, w, hash_of(w));

    return slot ? v->entries[slot - 1].number : VOCABULARY_UNKNOWN;
}

struct word vocabulary_word(const struct vocabulary *v, int32_t number)
{
    static const struct word first[] = { { WORDS_UNKNOWN, sizeof WORDS_UNKNOWN - 1 }, { "<end>", 5 } };

    return number < VOCABULARY_FIRST ? first[number] : v->entries[number - VOCABULARY_FIRST].word;
}

uint64_t vocabulary_frequency(const struct vocabulary *v, int32_t number)
{
    return v->entries[number - VOCABULARY_FIRST].count;
}

uint64_t vocabulary_hash(const struct vocabulary *v)
{
    uint64_t h = hash_of((struct word){ "", 0 });

    for (int32_t k = 0; k < v->used; k++)
        h = add_hash(add_hash(h, vocabulary_word(v, k)), (struct word){ "\n", 1 });
    return h ? h : 1;
}
