#include "dataset/captions/word_list.h"

#include "base/buffer.h"
#include "base/file.h"

#include <stdlib.h>
#include <string.h>

static int compare_words(const char *a, size_t a_length, const char *b, size_t b_length)
{
    const int order = memcmp(a, b, a_length < b_length ? a_length : b_length);

    return order ? order : (a_length > b_length) - (a_length < b_length);
}

/* qsort has no context: an entry has its word with it. */
struct entry {
    const char *word;
    int32_t number;
};

static int by_word(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    const int order = strcmp(x->word, y->word);

    return order ? order : (x->number > y->number) - (x->number < y->number);
}

static size_t count_lines(const char *text, size_t n)
{
    size_t lines = 1;

    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    return lines;
}

/* Makes a word of each line: the bytes before its first blank. */
static int take_lines(struct word_list *l, const char *name, size_t n, struct error *e)
{
    for (size_t at = 0; at < n;) {
        const size_t line = strcspn(l->text + at, "\n"), word = strcspn(l->text + at, " \t\r\n");

        if (at + line < n && l->text[at + line] == '\0')
            return error_set(e, ERR_CORRUPT, "%s: line %d: has a NUL byte; it is no vocabulary", name, l->count + 1);
        if (word == 0)
            return error_set(e, ERR_CORRUPT, "%s: line %d: begins with no word; wanted \"WORD COUNT\"", name,
                             l->count + 1);
        if (l->count == WORD_LIST_WORDS_MAX)
            return error_set(e, ERR_CORRUPT, "%s: has more than %d words", name, WORD_LIST_WORDS_MAX);
        l->text[at + line] = l->text[at + word] = '\0';
        l->words[l->count++] = l->text + at;
        at += line + 1;
    }
    return OK;
}

static int sort(struct word_list *l, const char *name, struct error *e)
{
    struct entry *entries = calloc((size_t)l->count + 1, sizeof *entries);
    int rc = OK;

    if (!entries)
        return error_memory(e, name, "for its words");
    for (int32_t i = 0; i < l->count; i++)
        entries[i] = (struct entry){ l->words[i], i };
    qsort(entries, (size_t)l->count, sizeof *entries, by_word);
    for (int32_t i = 0; i < l->count && rc == OK; i++) {
        l->order[i] = entries[i].number;
        if (i && !strcmp(entries[i].word, entries[i - 1].word))
            rc = error_set(e, ERR_CORRUPT, "%s: line %d: the word '%.60s' is in line %d, too", name,
                           entries[i].number + 1, entries[i].word, entries[i - 1].number + 1);
    }
    free(entries);
    return rc;
}

/* -1: it is not in the list. */
static int32_t find(const struct word_list *l, const char *text, size_t length)
{
    int32_t low = 0, high = l->count;

    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        const char *word = l->words[l->order[middle]];
        const int order = compare_words(text, length, word, strlen(word));

        if (order == 0)
            return l->order[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}

static int find_special(struct word_list *l, const char *name, const char *word, int32_t *number, struct error *e)
{
    if ((*number = find(l, word, strlen(word))) >= 0)
        return OK;
    return error_set(e, ERR_CORRUPT,
                     "%s: has no line for %s, which %s a sentence; 'dataset vocabulary' makes such a file", name, word,
                     !strcmp(word, WORD_LIST_START) ? "begins" : "ends");
}

/* FNV-1a of the words, each with a newline. */
static uint64_t hash_words(const struct word_list *l)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (int32_t i = 0; i < l->count; i++) {
        for (const char *c = l->words[i]; *c; c++)
            h = (h ^ (unsigned char)*c) * 0x100000001b3u;
        h = (h ^ '\n') * 0x100000001b3u;
    }
    return h ? h : 1;
}

int word_list_parse(struct word_list *out, const char *name, const char *text, size_t n, struct error *e)
{
    const size_t lines = count_lines(text, n);
    int rc;

    *out = (struct word_list){ 0 };
    out->words = calloc(lines + 1, sizeof *out->words);
    out->order = calloc(lines + 1, sizeof *out->order);
    out->text = malloc(n + 1);
    if (!out->words || !out->order || !out->text) {
        rc = error_memory(e, name, "for its words");
        goto done;
    }
    memcpy(out->text, text, n);
    out->text[n] = '\0';
    if ((rc = take_lines(out, name, n, e)) < 0 || (rc = sort(out, name, e)) < 0 ||
        (rc = find_special(out, name, WORD_LIST_START, &out->start, e)) < 0 ||
        (rc = find_special(out, name, WORD_LIST_END, &out->end, e)) < 0)
        goto done;
    if ((out->unknown = find(out, WORD_LIST_UNKNOWN, sizeof WORD_LIST_UNKNOWN - 1)) < 0) {
        out->words[out->unknown = out->count] = WORD_LIST_UNKNOWN;
        out->count++;
        rc = sort(out, name, e);
    }
    out->hash = hash_words(out);
done:
    if (rc < 0)
        word_list_release(out);
    return rc;
}

int word_list_read(struct word_list *out, const char *path, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    int rc = file_read(path, WORD_LIST_BYTES_MAX, &text, e);

    *out = (struct word_list){ 0 };
    if (rc == OK)
        rc = word_list_parse(out, path, buffer_text(&text), text.length, e);
    buffer_release(&text);
    return rc;
}

void word_list_release(struct word_list *l)
{
    free(l->words);
    free(l->order);
    free(l->text);
    *l = (struct word_list){ 0 };
}

int32_t word_list_find(const struct word_list *l, struct word w)
{
    const int32_t number = find(l, w.text, w.length);

    return number < 0 ? l->unknown : number;
}
