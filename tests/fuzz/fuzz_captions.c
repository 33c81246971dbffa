/* Any bytes as annotations of captions, and as a vocabulary: what is taken is whole and within its own bounds. */
#include "dataset/captions/caption_set.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_captions(const char *text, size_t size)
{
    struct caption_file f;
    struct error e = { 0 };
    const int rc = caption_file_parse(&f, "file", text, size, &e);

    if ((rc < 0) != (e.message[0] != '\0') || (rc < 0 && (f.images || f.captions || f.count)))
        abort();
    for (size_t i = 0; i < f.image_count; i++)
        if (!*f.images[i].file_name || strchr(f.images[i].file_name, '/'))
            abort();
    for (size_t i = 0; i < f.count; i++)
        if (f.captions[i].image >= f.image_count || (i && f.captions[i].image < f.captions[i - 1].image) ||
            strlen(f.captions[i].text) > size)
            abort();
    caption_file_release(&f);
}

static void check_words(const char *text, size_t size)
{
    struct word_list l;
    struct error e = { 0 };
    const int rc = word_list_parse(&l, "file", text, size, &e);

    if ((rc < 0) != (e.message[0] != '\0') || (rc < 0 && (l.words || l.count)))
        abort();
    for (int32_t k = 0; k < l.count; k++)
        if (word_list_find(&l, (struct word){ l.words[k], strlen(l.words[k]) }) != k)
            abort();
    if (rc == OK && (strcmp(l.words[l.start], WORD_LIST_START) != 0 || strcmp(l.words[l.end], WORD_LIST_END) != 0 ||
                     word_list_find(&l, (struct word){ "not one", 7 }) != l.unknown))
        abort();
    word_list_release(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *text = malloc(size + !size);

    if (!text)
        return 0;
    memcpy(text, bytes, size);
    check_captions(text, size);
    check_words(text, size);
    free(text);
    return 0;
}
