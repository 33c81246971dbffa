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

/* What reads a word as code: that of one of these options, which come before any other word. */
static const struct interpreter {
    const char *name; /* of the program, also with a version behind it, as in python3.13t */
    const char *code; /* letters of the options, of which several may be in one word, as in bash -lc */
    const char *with; /* letters of those with a value, in the same word or in the next one */
    enum { NEXT, AFTER_OPTIONS, ANYWHERE } where; /* the code; ANYWHERE: after options, which may follow other words */
    const char *last;                             /* letters of those behind which nothing is an option; NULL: none */
} interpreters[] = {
    { "sh", "c", "oO", AFTER_OPTIONS, NULL },
    { "bash", "c", "oO", AFTER_OPTIONS, NULL },
    { "rbash", "c", "oO", AFTER_OPTIONS, NULL },
    { "dash", "c", "o", AFTER_OPTIONS, NULL },
    { "ash", "c", "o", AFTER_OPTIONS, NULL },
    { "ksh", "c", "o", AFTER_OPTIONS, NULL },
    { "mksh", "c", "o", AFTER_OPTIONS, NULL },
    { "zsh", "c", "o", AFTER_OPTIONS, NULL },
    { "yash", "c", "o", AFTER_OPTIONS, NULL },
    { "csh", "c", "", AFTER_OPTIONS, NULL },
    { "tcsh", "c", "", AFTER_OPTIONS, NULL },
    { "fish", "cC", "dfo", NEXT, NULL },
    { "su", "c", "gGsw", ANYWHERE, NULL },
    { "runuser", "c", "gGsw", ANYWHERE, NULL },
    { "script", "c", "BIOTbot", ANYWHERE, NULL },
    { "flock", "c", "Ew", ANYWHERE, NULL },
    { "env", "S", "uC", NEXT, NULL },
    { "python", "c", "WX", NEXT, "m" },
    { "ipython", "c", "", NEXT, "m" },
    { "pypy", "c", "WX", NEXT, "m" },
    { "perl", "eE", "IMmxilDC", NEXT, NULL },
    { "ruby", "e", "IrECxKTW", NEXT, NULL },
    { "node", "ep", "r", NEXT, NULL },
    { "nodejs", "ep", "r", NEXT, NULL },
    { "php", "rBRE", "dcfzS", NEXT, NULL },
    { "lua", "e", "l", NEXT, NULL },
    { "luajit", "e", "lj", NEXT, NULL },
    { "julia", "eE", "JLpt", NEXT, NULL },
    { "Rscript", "e", "", NEXT, NULL },
};
static const char *const long_code[] = { "--command", "--eval", "--print", "--run", "--wrap", "--split-string" };

static int is_program(const char *word, const char *name)
{
    const char *base = strrchr(word, '/');
    const size_t n = strlen(name);

    base = base ? base + 1 : word;
    if (strncmp(base, name, n) != 0)
        return 0;
    base += n + strspn(base + n, ".0123456789");
    return !*base || (!strcmp(base, "t") && base[-1] >= '0' && base[-1] <= '9');
}

/* Among the letters of the option: 1: one for code; its text may be in the same word. -1: one behind which nothing is
 * an option. *value: one with a value that is the next word. */
static int has_code(const struct interpreter *i, const char *letters, int *value)
{
    int code = 0;

    *value = 0;
    for (const char *p = letters; *p; p++) {
        if (i->last && strchr(i->last, *p))
            return -1;
        code |= strchr(i->code, *p) != NULL;
        if (code && i->where == NEXT)
            return 1;
        if (strchr(i->with, *p)) {
            *value = !p[1];
            return code;
        }
    }
    return code;
}

/* The word that the program at words[0] reads as code, or the option that has code in it: *together. NULL: none. */
static char *const *code_of(char *const *words, int *together)
{
    const struct interpreter *found = NULL;
    int code = 0, value;

    for (size_t i = 0; !found && i < sizeof interpreters / sizeof *interpreters; i++)
        found = is_program(*words, interpreters[i].name) ? &interpreters[i] : NULL;
    for (char *const *word = found ? words + 1 : words; found && *word; word++) {
        *together = 0;
        if (!strcmp(*word, "--"))
            return code ? word + 1 : NULL;
        if ((**word != '-' && **word != '+') || !(*word)[1]) {
            if (code)
                return word;
            if (found->where != ANYWHERE)
                return NULL;
        } else if (!strncmp(*word, "--", 2)) {
            for (size_t i = 0; i < sizeof long_code / sizeof *long_code; i++)
                if (!strncmp(*word, long_code[i], strlen(long_code[i])))
                    return strchr(*word, '=') ? word : word + 1;
            if ((!strcmp(*word, "--rcfile") || !strcmp(*word, "--init-file")) && word[1])
                word++;
        } else {
            const int letters = has_code(found, *word + 1, &value);

            if (letters < 0)
                return NULL;
            code |= letters;
            *together = code && found->where == NEXT;
            if (*together)
                return word;
            word += value && word[1];
        }
    }
    return NULL;
}

/* 1: what runs the program in a later word. */
static int is_wrapper(const char *word)
{
    static const char *const names[] = { "env",   "nice", "ionice", "timeout", "nohup",   "setsid", "sudo",   "stdbuf",
                                         "xargs", "chrt", "time",   "taskset", "numactl", "srun",   "busybox" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (is_program(word, names[i]))
            return 1;
    return 0;
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

/* 1: it hands all of its words to a shell. */
static int is_shell_of_words(char *const *words, size_t i)
{
    static const char *const names[] = { "ssh", "eval", "watch", "sbatch" };

    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (is_program(words[i], names[k]) && (i == 0 || is_wrapper(words[0])))
            return 1;
    return 0;
}

static int check_code(char *const *words, const struct command_value *values, size_t count, struct error *e)
{
    for (size_t i = 0; words[i]; i++) {
        const int all = is_shell_of_words(words, i);
        int together = 0;
        char *const *code = all ? words + i + 1 : code_of(words + i, &together);

        for (int n = 0; code && *code && (all || n <= together); n++, code++) {
            const struct command_value *value = text_in(*code, values, count);

            if (value)
                return error_set(
                    e, ERR_ARG, "%s would read {%s} as code, so that a file's name could run; write \"$%s\"%s",
                    words[i], value->name, value->variable,
                    all ? " in a script of your own, which --exec runs" : " there, which it finds in its environment");
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
