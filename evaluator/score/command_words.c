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

/* What reads a word as code: that after one of these options, which come before any other word. */
static const struct interpreter {
    const char *name; /* of the program, also with a version behind it, as in python3.13 */
    const char *code; /* letters of the options, of which several may be in one word, as in bash -lc */
    const char *with; /* letters of those with a word of their own */
} interpreters[] = {
    { "sh", "c", "o" },         { "bash", "c", "oO" },    { "dash", "c", "o" },    { "ash", "c", "o" },
    { "ksh", "c", "o" },        { "mksh", "c", "o" },     { "zsh", "c", "o" },     { "yash", "c", "o" },
    { "fish", "cC", "dfo" },    { "csh", "c", "" },       { "tcsh", "c", "" },     { "su", "c", "gGsw" },
    { "runuser", "c", "gGsw" }, { "script", "c", "Bbo" }, { "python", "c", "WX" }, { "pypy", "c", "WX" },
    { "perl", "eE", "I" },      { "ruby", "e", "Ir" },    { "node", "ep", "r" },   { "php", "r", "dc" },
    { "lua", "e", "l" },        { "julia", "eE", "J" },   { "Rscript", "e", "" },
};

static int is_program(const char *word, const char *name)
{
    const char *base = strrchr(word, '/');
    const size_t n = strlen(name);

    base = base ? base + 1 : word;
    return !strncmp(base, name, n) && !base[n + strspn(base + n, ".0123456789")];
}

/* The option by which the program at words[0] is given code, in it or in the word behind. NULL: none. */
static char *const *code_of(char *const *words)
{
    const struct interpreter *found = NULL;

    for (size_t i = 0; !found && i < sizeof interpreters / sizeof *interpreters; i++)
        found = is_program(*words, interpreters[i].name) ? &interpreters[i] : NULL;
    for (char *const *word = found ? words + 1 : words; found && *word; word++) {
        /* su and runuser take names between their options */
        const int option = (**word == '-' || **word == '+') && (*word)[1];

        if (!option && strcmp(found->name, "su") != 0 && strcmp(found->name, "runuser") != 0)
            return NULL;
        if (option && !strncmp(*word, "--", 2)) {
            if (!strncmp(*word, "--command", 9) || !strncmp(*word, "--eval", 6))
                return word;
        } else if (option && strpbrk(*word + 1, found->code)) {
            return word;
        } else if (option && strchr(found->with, (*word)[strlen(*word) - 1]) && word[1]) {
            word++;
        }
    }
    return NULL;
}

/* The first {name} with a variable. NULL: none. */
static const struct command_value *text_in(const char *word, const struct command_value *values, size_t count)
{
    for (const char *p = strchr(word, '{'); p; p = strchr(p + 1, '{')) {
        const size_t n = strspn(p + 1, "abcdefghijklmnopqrstuvwxyz_");
        const struct command_value *value = p[n + 1] == '}' ? find(values, count, p + 1, n) : NULL;

        if (value && value->variable)
            return value;
    }
    return NULL;
}

static int check_code(char *const *words, const struct command_value *values, size_t count, struct error *e)
{
    for (char *const *program = words; *program; program++) {
        const int remote = is_program(*program, "ssh") || is_program(*program, "eval");
        char *const *code = remote ? program + 1 : code_of(program);

        for (int n = 0; code && *code && (remote || n < 2); n++, code++) {
            const struct command_value *value = text_in(*code, values, count);

            if (value)
                return error_set(e, ERR_ARG,
                                 "%s would read {%s} as code, so that a file's name could run; write \"$%s\"%s",
                                 *program, value->name, value->variable,
                                 remote ? " in a script of your own, which --exec runs"
                                        : " there, which it finds in its environment");
        }
    }
    return OK;
}

int command_words_check(char *const *words, const struct command_value *values, size_t count, struct error *e)
{
    const char *names[16];
    char *const *const all = words;

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
    return check_code(all, values, count, e);
}
