#include "evaluator/score/command_words.h"

#include "base/buffer.h"
#include "base/program/options.h"

#include <stdlib.h>
#include <string.h>

void command_words_free(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        free(words[i]);
    free(words);
}

/* Reads one word at *text, without its quotes; *text moves past it. */
static int take_word(const char **text, struct buffer *word, struct error *e)
{
    const char *p = *text;
    char quote = 0;

    for (; *p && (quote || !strchr(" \t\n\r", *p)); p++) {
        if (quote && *p == quote) {
            quote = 0;
        } else if (!quote && (*p == '\'' || *p == '"')) {
            quote = *p;
        } else if (*p == '\\' && (!quote || (quote == '"' && (p[1] == '"' || p[1] == '\\')))) {
            if (!p[1])
                return error_set(e, ERR_ARG, "the command ends in a backslash");
            buffer_append_byte(word, *++p);
        } else {
            buffer_append_byte(word, *p);
        }
    }
    if (quote)
        return error_set(e, ERR_ARG, "a quote (%c) is not closed in the command", quote);
    *text = p;
    return buffer_ok(word) ? OK : error_memory(e, NULL, "for a word of the command");
}

int command_words_split(const char *text, char ***out, struct error *e)
{
    char **words = calloc(COMMAND_WORDS_MAX + 1, sizeof *words);
    struct buffer word = BUFFER_EMPTY;
    size_t count = 0;
    int rc = words ? OK : error_memory(e, NULL, "for the command");

    *out = NULL;
    while (rc == OK) {
        text += strspn(text, " \t\n\r");
        if (!*text)
            break;
        buffer_clear(&word);
        if (count == COMMAND_WORDS_MAX)
            rc = error_set(e, ERR_ARG, "the command has more than %d words", COMMAND_WORDS_MAX);
        else if ((rc = take_word(&text, &word, e)) == OK && !(words[count++] = strdup(buffer_text(&word))))
            rc = error_memory(e, NULL, "for the command");
    }
    if (rc == OK && !count)
        rc = error_set(e, ERR_ARG, "the command is empty");
    buffer_release(&word);
    if (rc == OK)
        *out = words;
    else
        command_words_free(words);
    return rc;
}

static const struct command_value *find(const struct command_value *values, size_t count, const char *name, size_t n)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(values[i].name) == n && !memcmp(values[i].name, name, n))
            return &values[i];
    return NULL;
}

static char *words_fill(const char *word, const struct command_value *values, size_t count)
{
    struct buffer out = BUFFER_EMPTY;
    char *copy;

    while (*word) {
        const char *end = *word == '{' ? strchr(word, '}') : NULL;
        const struct command_value *value = end ? find(values, count, word + 1, (size_t)(end - word) - 1) : NULL;

        if (value) {
            buffer_append_text(&out, value->value);
            word = end + 1;
        } else {
            buffer_append_byte(&out, *word++);
        }
    }
    copy = buffer_ok(&out) ? strdup(buffer_text(&out)) : NULL;
    buffer_release(&out);
    return copy;
}

int command_words_fill(char *const *words, const struct command_value *values, size_t count, char ***out,
                       struct error *e)
{
    size_t n = 0;
    char **filled;

    while (words[n])
        n++;
    *out = NULL;
    if (!(filled = calloc(n + 1, sizeof *filled)))
        return error_memory(e, NULL, "for the command");
    for (size_t i = 0; i < n; i++)
        if (!(filled[i] = words_fill(words[i], values, count))) {
            command_words_free(filled);
            return error_memory(e, NULL, "for the command");
        }
    *out = filled;
    return OK;
}

int command_words_check(char *const *words, const struct command_value *values, size_t count, struct error *e)
{
    const char *names[16];

    for (size_t i = 0; i < count && i < 16; i++)
        names[i] = values[i].name;
    for (; *words; words++)
        for (const char *p = strchr(*words, '{'); p; p = strchr(p + 1, '{')) {
            size_t n = strspn(p + 1, "abcdefghijklmnopqrstuvwxyz_");
            char word[32];
            const char *near;

            if (p[n + 1] != '}' || !n || n >= sizeof word || find(values, count, p + 1, n))
                continue;
            memcpy(word, p + 1, n);
            word[n] = '\0';
            near = options_nearest(word, names, count < 16 ? count : 16);
            if (near && *near == *word) /* {next} in awk is not a misspelled {index} */
                return error_set(e, ERR_ARG, "unknown {%s}; did you mean '{%s}'?", word, near);
        }
    return OK;
}
