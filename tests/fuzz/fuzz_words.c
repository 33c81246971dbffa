/* Any bytes as a text: its words, within their lines, and their numbers. */
#include "dataset/vocabulary.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *text = malloc(size + !size);
    struct vocabulary *v = NULL;
    struct error e = { 0 };
    size_t at = 0, before = 0;
    struct word w;
    int rc = 1;

    if (text && vocabulary_new(&v, NULL) == OK) {
        memcpy(text, bytes, size);
        while (rc > 0 && (rc = words_next(text, size, &at, &w, &e)) > 0) {
            /* A word is the last thing read, none is empty, and no word has a blank. */
            if (at <= before || w.length == 0 || w.text + w.length != text + at || memchr(w.text, ' ', w.length) ||
                memchr(w.text, '\n', w.length))
                abort();
            before = at;
            if (vocabulary_count(v, w, NULL) < 0)
                rc = 0;
        }
        if (rc < 0 && (!e.message[0] || at >= size))
            abort();
        for (int32_t used = vocabulary_choose(v, 20), k = VOCABULARY_FIRST; k < used; k++)
            if (vocabulary_find(v, vocabulary_word(v, k)) != k)
                abort();
        for (size_t line = 0, end; line < size; line = end)
            if ((end = words_skip_lines(text, size, line, 1)) <= line)
                abort();
    }
    vocabulary_free(v);
    free(text);
    return 0;
}
