/* The text of a command: what splits can be filled, and words without a placeholder come out as they went in. */
#include "evaluator/score/command_words.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct command_value values[] = { { "checkpoint", "{step}", "EVALUATOR_CHECKPOINT" },
                                                   { "step", "5", NULL } };
    char *text = malloc(size + 1), **words = NULL, **filled = NULL;

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (command_words_split(text, &words, NULL) == OK) {
        command_words_check(words, values, 2, NULL);
        if (command_words_fill(words, values, 2, &filled, NULL) != OK)
            abort();
        for (size_t i = 0; words[i]; i++)
            if (!strchr(words[i], '{') && strcmp(words[i], filled[i]))
                abort();
    }
    command_words_free(words);
    command_words_free(filled);
    free(text);
    return 0;
}
