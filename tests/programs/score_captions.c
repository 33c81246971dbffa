/*
 * score_captions - reads told captions and those of people from standard input, and prints BLEU-1 to BLEU-4 and the share
 * of exact matches. A line is a told caption, and behind each '|' one of people: words are numbers with blanks between
 * them.
 */
#include "evaluator/score/captioning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 1 << 16, WORDS = 4096, SENTENCES = 64 };

static void score_line(struct caption_score *s, char *line)
{
    static int32_t words[WORDS];
    struct caption_words sentences[SENTENCES] = { { words, 0 } };
    size_t count = 1, used = 0;

    for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n")) {
        if (!strcmp(word, "|")) {
            if (count == SENTENCES)
                exit(2);
            sentences[count++] = (struct caption_words){ words + used, 0 };
            continue;
        }
        if (used == WORDS)
            exit(2);
        words[used++] = (int32_t)atoi(word);
        sentences[count - 1].count++;
    }
    caption_score_add(s, sentences[0], sentences + 1, count - 1);
}

int main(void)
{
    static char line[LINE];
    struct caption_score s = { 0 };

    while (fgets(line, sizeof line, stdin))
        score_line(&s, line);
    for (int n = 1; n <= CAPTION_SCORE_GRAMS; n++)
        printf("bleu_%d %.17g\n", n, caption_score_bleu(&s, n));
    printf("exact_match %.17g\n", caption_score_exact(&s));
    return 0;
}
