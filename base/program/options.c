#include "base/program/options.h"

#include "base/buffer.h"
#include "base/json.h"
#include "base/number.h"
#include "base/program/terminal.h"
#include "base/text.h"
#include "base/version.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>

static size_t minimum_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

const char *options_nearest(const char *word, const char *const *names, size_t count)
{
    const char *best = NULL;
    size_t distance = strlen(word) / 2 + 2;

    for (size_t i = 0; i < count; i++) {
        size_t d = names[i] ? text_distance(word, names[i]) : (size_t)-1;

        if (d < distance) {
            distance = d;
            best = names[i];
        }
    }
    return best;
}

static struct option *find(const struct options *o, const char *name, size_t n)
{
    for (size_t i = 0; i < o->count; i++)
        if (o->table[i].name && strlen(o->table[i].name) == n && !memcmp(o->table[i].name, name, n))
            return &o->table[i];
    return NULL;
}

int option_list_add(struct option_list *list, const char *word)
{
    if (list->count == OPTION_LIST_MOST)
        return 0;
    list->items[list->count++] = word;
    return 1;
}

int option_list_matches(const struct option_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (!fnmatch(list->items[i], name, 0))
            return 1;
    return 0;
}

int options_given(const struct options *o, const char *name)
{
    const struct option *row = find(o, name, strlen(name));

    return row && row->given;
}

int options_is_choice(const char *choices, const char *word, size_t n)
{
    while (*choices) {
        size_t length = strcspn(choices, "|");

        if (length == n && !memcmp(choices, word, n))
            return 1;
        choices += length + (choices[length] == '|');
    }
    return 0;
}

const char *options_choices(const char *const *names, char *out, size_t size)
{
    size_t used = 0;

    *out = '\0';
    for (size_t i = 0; names[i] && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", i ? "|" : "", names[i]);
    return out;
}

/* The choice nearest to the word, in `near`; empty if none is near. */
static void nearest_choice(const char *choices, const char *word, char *near, size_t room)
{
    char text[512];
    const char *names[32], *found;
    char *rest = text;
    size_t count = 0;

    near[0] = '\0';
    if (strlen(choices) >= sizeof text)
        return;
    strcpy(text, choices);
    while (rest && count < 32) {
        names[count++] = rest;
        if ((rest = strchr(rest, '|')))
            *rest++ = '\0';
    }
    if ((found = options_nearest(word, names, count)))
        snprintf(near, room, "%s", found);
}

/* Parses one of the row's choices; for OPTION_CHOICES several, separated by commas. */
static int check_choices(const struct option *row, const char *text, struct error *e)
{
    char word[64], near[64];

    do {
        size_t n = row->kind == OPTION_CHOICES ? strcspn(text, ",") : strlen(text);

        if (row->kind == OPTION_CHOICE_OR_PATH && strpbrk(text, "/."))
            return OK;
        if (!options_is_choice(row->choices, text, n)) {
            snprintf(word, sizeof word, "%.*s", (int)minimum_of(n, sizeof word - 1), text);
            nearest_choice(row->choices, word, near, sizeof near);
            return error_set(e, ERR_ARG, "--%s: '%s' is not one of %s%s%s%s", row->name, word, row->choices,
                             *near ? " (did you mean " : "", near, *near ? "?)" : "");
        }
        text += n;
    } while (*text++ == ',');
    return OK;
}

static int set_value(struct option *row, const char *text, struct error *e)
{
    int bounded = row->minimum != 0 || row->maximum != 0;
    int64_t integer;
    double number;

    switch (row->kind) {
    case OPTION_TEXT: *(const char **)row->value = text; return OK;
    case OPTION_CHOICE:
    case OPTION_CHOICE_OR_PATH:
    case OPTION_CHOICES:
        if (check_choices(row, text, e) != OK)
            return ERR_ARG;
        *(const char **)row->value = text;
        return OK;
    case OPTION_COUNT:
    case OPTION_INT:
        if (!number_parse_int(text, &integer))
            return error_set(e, ERR_ARG, "--%s: '%s' is not a whole number", row->name, text);
        if (bounded && ((double)integer < row->minimum || (double)integer > row->maximum))
            return error_set(e, ERR_ARG, "--%s: %s is not between %.0f and %.0f", row->name, text, row->minimum,
                             row->maximum);
        *(int64_t *)row->value = integer;
        return OK;
    case OPTION_DOUBLE:
        if (!number_parse_double(text, &number) || isnan(number))
            return error_set(e, ERR_ARG, "--%s: '%s' is not a number", row->name, text);
        if (bounded && (number < row->minimum || number > row->maximum))
            return error_set(e, ERR_ARG, "--%s: %s is not between %g and %g", row->name, text, row->minimum,
                             row->maximum);
        *(double *)row->value = number;
        return OK;
    case OPTION_LIST:
        return option_list_add(row->value, text)
                   ? OK
                   : error_set(e, ERR_ARG, "--%s: given more than %d times", row->name, OPTION_LIST_MOST);
    default: return error_set(e, ERR_ARG, "--%s takes no value", row->name);
    }
}

static int unknown(const struct options *o, const char *name, size_t n, struct error *e)
{
    const char *names[130], *near;
    char word[64];
    size_t count = 0;

    names[count++] = "help";
    names[count++] = "version";
    for (size_t i = 0; i < o->count && count < 130; i++)
        if (o->table[i].name)
            names[count++] = o->table[i].name;
    snprintf(word, sizeof word, "%.*s", (int)minimum_of(n, 60), name);
    near = options_nearest(word, names, count);
    return error_set(e, ERR_ARG, "unknown option --%s%s%s%s; '%s --help' lists them", word,
                     near ? " (did you mean --" : "", near ? near : "", near ? "?)" : "", o->program);
}

/* A choice in capitals, as --run-option MPI, is the one in small letters. */
static void fold_choice(const struct option *row, char *text)
{
    const size_t n = strlen(text);
    char small[64];

    if (row->kind != OPTION_CHOICE || n >= sizeof small || options_is_choice(row->choices, text, n))
        return;
    for (size_t i = 0; i <= n; i++)
        small[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] - 'A' + 'a') : text[i];
    if (options_is_choice(row->choices, small, n))
        memcpy(text, small, n);
}

static int parse_long(const struct options *o, char *name, int argc, char **argv, int *i, struct error *e)
{
    size_t n = strcspn(name, "=");
    char *value = name[n] == '=' ? name + n + 1 : NULL;
    struct option *row = find(o, name, n);
    int64_t count;
    int on = 1;

    if (!row && n > 3 && !strncmp(name, "no-", 3)) {
        row = find(o, name + 3, n - 3);
        if (row && row->kind != OPTION_FLAG && row->kind != OPTION_COUNT)
            row = NULL;
        on = 0;
    }
    if (!row)
        return unknown(o, name, n, e);
    row->given++;
    if (row->kind == OPTION_FLAG || !on) {
        if (value)
            return error_set(e, ERR_ARG, "--%s%s takes no value", on ? "" : "no-", row->name);
        if (row->kind == OPTION_FLAG)
            *(int *)row->value = on;
        else
            *(int64_t *)row->value = 0;
        return OK;
    }
    if (row->kind == OPTION_COUNT && !value && (*i + 1 >= argc || !number_parse_int(argv[*i + 1], &count))) {
        *(int64_t *)row->value = 1;
        return OK;
    }
    if (!value) {
        if (*i + 1 >= argc)
            return error_set(e, ERR_ARG, "--%s needs a value (%s)", row->name, row->argument);
        value = argv[++*i];
    }
    fold_choice(row, value);
    return set_value(row, value, e);
}

static int parse_letter(const struct options *o, const char *argument, int argc, char **argv, int *i, struct error *e)
{
    for (size_t k = 0; k < o->count; k++) {
        struct option *row = &o->table[k];

        if (row->letter != argument[1] || !row->letter)
            continue;
        row->given++;
        if (row->kind == OPTION_FLAG) {
            *(int *)row->value = 1;
            return argument[2] ? error_set(e, ERR_ARG, "-%c takes no value", row->letter) : OK;
        }
        if (argument[2])
            return set_value(row, argument + 2, e);
        if (*i + 1 >= argc)
            return error_set(e, ERR_ARG, "-%c needs a value (%s)", row->letter, row->argument);
        return set_value(row, argv[++*i], e);
    }
    return error_set(e, ERR_ARG, "unknown option -%c; '%s --help' lists them", argument[1], o->program);
}

/* What other programs call it. NULL: none of these. */
static const char *usual_name(const char *word)
{
    static const struct {
        const char *word, *command;
    } words[] = {
        { "check", "verify" }, { "validate", "verify" }, { "diff", "compare" },      { "cmp", "compare" },
        { "ls", "inspect" },   { "list", "inspect" },    { "show", "inspect" },      { "info", "inspect" },
        { "fix", "repair" },   { "rm", "prune" },        { "delete", "prune" },      { "clean", "prune" },
        { "follow", "tail" },  { "draw", "plot" },       { "graph", "plot" },        { "summary", "stats" },
        { "dump", "export" },  { "join", "merge" },      { "rename", "rename-tag" }, { "start", "serve" },
    };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i].word, word))
            return words[i].command;
    return NULL;
}

int options_unknown_command(const struct options *o, const char *word, struct error *e)
{
    const char *names[128] = { "help" }, *near = NULL, *usual = usual_name(word);
    size_t count = 1;

    /* "trainer train", "evaluator eval": what a program does that needs no command */
    if (strlen(word) > 3 && !strncmp(o->program, word, strlen(word)) && strncmp(o->usage, "COMMAND", 7) != 0)
        return error_set(e, ERR_ARG, "unknown command '%s'; %s does this without a command, so leave it out", word,
                         o->program);
    for (size_t i = 0; i < o->command_count && count < 128; i++) {
        names[count++] = o->commands[i].name;
        if (usual && !strcmp(usual, o->commands[i].name))
            near = usual;
    }
    near = near ? near : options_nearest(word, names, count);
    return error_set(e, ERR_ARG, "unknown command '%s'%s%s%s; '%s --help' lists them", word,
                     near ? " (did you mean " : "", near ? near : "", near ? "?)" : "", o->program);
}

/* ---- as JSON ----------------------------------------------------------------------------------------------------- */

/* Memory for a few hundred bytes may be missing; the output is then not JSON, which its reader notices. */
static void put(struct buffer *b, FILE *out)
{
    fwrite(buffer_text(b), 1, b->length, out);
    buffer_clear(b);
}

static void member(struct buffer *b, const char *name, const char *text)
{
    json_text(b, name);
    buffer_append_byte(b, ':');
    json_text(b, text);
}

static void describe_choices(struct buffer *b, const char *choices)
{
    int first = 1;

    while (choices && *choices) {
        size_t n = strcspn(choices, "|");

        if (!first)
            buffer_append_byte(b, ',');
        json_span(b, choices, n, 0);
        choices += n + (choices[n] == '|');
        first = 0;
    }
}

static void describe_option(struct buffer *b, const struct option *row)
{
    static const char *const kinds[] = {
        [OPTION_HEADING] = "heading",
        [OPTION_FLAG] = "flag",
        [OPTION_TEXT] = "text",
        [OPTION_INT] = "int",
        [OPTION_DOUBLE] = "double",
        [OPTION_CHOICE] = "choice",
        [OPTION_CHOICE_OR_PATH] = "choice-or-path",
        [OPTION_CHOICES] = "choices",
        [OPTION_LIST] = "list",
        [OPTION_COUNT] = "count",
    };
    char letter[2] = { row->letter, '\0' };

    buffer_append_byte(b, '{');
    member(b, "kind", kinds[row->kind]);
    buffer_append_byte(b, ',');
    member(b, "help", row->help);
    if (row->kind != OPTION_HEADING) {
        buffer_append_byte(b, ',');
        member(b, "letter", row->letter ? letter : NULL);
        buffer_append_byte(b, ',');
        member(b, "name", row->name);
        buffer_append_byte(b, ',');
        member(b, "argument", row->kind == OPTION_FLAG ? NULL : row->argument);
        buffer_append_text(b, ",\"choices\":[");
        describe_choices(b, row->choices);
        buffer_append_byte(b, ']');
    }
    buffer_append_byte(b, '}');
}

static void describe_command(struct buffer *b, const struct subcommand *command, FILE *out)
{
    char name[64], ask[] = "--describe", *argv[] = { name, ask, NULL };

    snprintf(name, sizeof name, "%s", command->name);
    buffer_append_byte(b, '{');
    member(b, "name", command->name);
    buffer_append_byte(b, ',');
    member(b, "help", command->help);
    buffer_append_text(b, ",\"command\":");
    put(b, out);
    command->run(2, argv);
    buffer_append_byte(b, '}');
}

void options_describe(const struct options *o, FILE *out)
{
    const struct {
        const char *name, *text;
    } members[] = {
        { "program", o->program }, { "version", EVALBOARD_VERSION }, { "usage", o->usage },
        { "summary", o->summary }, { "examples", o->examples },
    };
    struct buffer b = BUFFER_EMPTY;

    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        buffer_append_byte(&b, i ? ',' : '{');
        member(&b, members[i].name, members[i].text);
    }
    buffer_append_text(&b, ",\"options\":[");
    for (size_t i = 0; i < o->count; i++) {
        if (i)
            buffer_append_byte(&b, ',');
        describe_option(&b, &o->table[i]);
    }
    buffer_append_text(&b, "],\"commands\":[");
    for (size_t i = 0; i < o->command_count; i++) {
        if (i)
            buffer_append_byte(&b, ',');
        describe_command(&b, &o->commands[i], out);
    }
    buffer_append_text(&b, "]}\n");
    put(&b, out);
    buffer_release(&b);
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

int options_parse(const struct options *o, int argc, char **argv, int *positional, struct error *e)
{
    int kept = 0, ended = 0, rc = OK;

    for (size_t i = 0; i < o->count; i++)
        if (!o->table[i].value && o->values)
            o->table[i].value = (char *)o->values + o->table[i].offset;
    if (argc == 2 && !strcmp(argv[1], "--describe")) {
        options_describe(o, stdout);
        return OPTIONS_DONE;
    }
    for (int i = 1; i < argc; i++) {
        const char *argument = argv[i];

        if (ended || argument[0] != '-' || !argument[1]) {
            argv[++kept] = argv[i];
        } else if (!strcmp(argument, "--")) {
            ended = 1;
        } else if (!strcmp(argument, "--help") || (!strcmp(argument, "-h"))) {
            options_print_help(o, stdout);
            return OPTIONS_DONE;
        } else if (!strcmp(argument, "--version") || !strcmp(argument, "-V")) {
            printf("%s (evalboard) %s\n", o->program, EVALBOARD_VERSION);
            return OPTIONS_DONE;
        } else {
            rc = argument[1] == '-' ? parse_long(o, argv[i] + 2, argc, argv, &i, e)
                                    : parse_letter(o, argument, argc, argv, &i, e);
        }
        if (rc != OK)
            return rc;
    }
    *positional = kept;
    if (kept && o->command_count)
        return options_unknown_command(o, argv[1], e);
    if ((size_t)kept < o->least || (o->most && (size_t)kept > o->most))
        return error_set(e, ERR_ARG, "%s run '%s --help' for help", o->wanted, o->program);
    return OPTIONS_RUN;
}

/* The row of an argument that begins with '-', and how many words the option takes there: itself, and its value. */
static const struct option *option_at(const struct options *o, char **argv, int i, int argc, int *words)
{
    const char *name = argv[i] + 2;
    const size_t n = strcspn(name, "=");
    const struct option *row = argv[i][1] == '-' ? find(o, name, n) : NULL;
    const int no = !row && !strncmp(name, "no-", 3);
    int64_t number;

    if (argv[i][1] != '-') {
        for (size_t k = 0; k < o->count && !row; k++)
            if (o->table[k].letter == argv[i][1])
                row = &o->table[k];
        *words = row && row->kind != OPTION_FLAG && !argv[i][2] ? 2 : 1;
        return row;
    }
    if (no)
        row = find(o, name + 3, n - 3);
    *words = !row || no || name[n] || row->kind == OPTION_FLAG ||
                     (row->kind == OPTION_COUNT && (i + 1 >= argc || !number_parse_int(argv[i + 1], &number)))
                 ? 1
                 : 2;
    return row;
}

static int is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(name, names[i]))
            return 1;
    return 0;
}

int options_remove(const struct options *o, int argc, char **argv, const char *const *names, size_t count)
{
    int kept = 1, words = 1;

    for (int i = 1; i < argc; i += words) {
        const struct option *row = NULL;

        words = argc - i;
        if (strcmp(argv[i], "--") != 0) { /* after which all is positional */
            words = 1;
            if (argv[i][0] == '-' && argv[i][1])
                row = option_at(o, argv, i, argc, &words);
        }
        for (int k = 0; k < words && !(row && is_among(row->name, names, count)); k++)
            argv[kept++] = argv[i + k];
    }
    argv[kept] = NULL;
    return kept;
}

/* The layout of --help: lines of at most `width` columns, help from column `indent` on. */
struct layout {
    FILE *out;
    size_t width, indent;
};

static struct layout layout_of(FILE *out)
{
    enum { WIDTH = 80, WIDEST = 100, INDENT = 34, INDENT_NARROW = 8, NARROW = 72 };
    int columns = terminal_columns(fileno(out));
    size_t width = columns ? minimum_of((size_t)columns, WIDEST) : WIDTH;

    return (struct layout){ out, width, width < NARROW ? INDENT_NARROW : INDENT };
}

/* Writes text in lines, each indented by `indent` blanks; the first starts at column `at`. */
static void wrap(const struct layout *l, const char *text, size_t at, size_t indent)
{
    struct buffer b = BUFFER_EMPTY;

    text_append_wrapped(&b, text, at, indent, l->width);
    fprintf(l->out, "%s\n", buffer_text(&b));
    buffer_release(&b);
}

static void print_commands(const struct options *o, const struct layout *l)
{
    size_t widest = 0;

    for (size_t i = 0; i < o->command_count; i++)
        widest = strlen(o->commands[i].name) > widest ? strlen(o->commands[i].name) : widest;
    fprintf(l->out, "\ncommands (run '%s COMMAND --help' for help on one):\n", o->program);
    for (size_t i = 0; i < o->command_count; i++) {
        fprintf(l->out, "  %-*s  ", (int)widest, o->commands[i].name);
        wrap(l, o->commands[i].help, widest + 4, widest + 4);
    }
}

/* An option's head, "  -o, --output FILE", and its help beside or below. Choices too long for a line are wrapped at
 * their bars. */
static void print_option(const struct layout *l, const char *head, const char *help)
{
    size_t n = strlen(head);

    fputs(head, l->out);
    if (n + 1 >= l->indent) {
        putc('\n', l->out);
        n = 0;
    }
    fprintf(l->out, "%*s", (int)(l->indent - n), "");
    wrap(l, help, l->indent, l->indent);
}

static void print_row(const struct layout *l, const struct option *row)
{
    char values[512], head[512], *value = values;
    size_t n = (size_t)snprintf(head, sizeof head, "  %c%c%s--%s", row->letter ? '-' : ' ',
                                row->letter ? row->letter : ' ', row->letter ? ", " : "  ", row->name);

    snprintf(values, sizeof values, "%s%s%s", row->kind == OPTION_COUNT ? "[" : "",
             row->choices    ? row->choices
             : row->argument ? row->argument
                             : "",
             row->kind == OPTION_COUNT            ? "]"
             : row->kind == OPTION_CHOICES        ? "[,...]"
             : row->kind == OPTION_CHOICE_OR_PATH ? "|FILE"
                                                  : "");
    if (row->kind == OPTION_FLAG) {
        print_option(l, head, row->help);
        return;
    }
    head[n++] = ' ';
    while (n + strlen(value) > l->width && strchr(value, '|')) { /* as many choices as fit on the line */
        size_t room = l->width > n ? l->width - n : 0, piece = 0;

        while (value[piece + strcspn(value + piece, "|")] && piece + strcspn(value + piece, "|") + 1 <= room)
            piece += strcspn(value + piece, "|") + 1;
        piece = piece ? piece : strcspn(value, "|") + 1;
        fprintf(l->out, "%.*s%.*s\n", (int)n, head, (int)piece, value);
        value += piece;
        n = (size_t)snprintf(head, sizeof head, "%*s", 8, "");
    }
    snprintf(head + n, sizeof head - n, "%s", value);
    print_option(l, head, row->help);
}

/* How much of a command (n > 0 bytes, not starting with a blank) fits on a line: all if it fits `room`, else up to the
 * last fitting blank outside quotes, or the first one; rather before an option than between it and its value. */
static size_t command_piece(const char *command, size_t n, size_t room)
{
    size_t piece = 0, option = 0;
    char quote = '\0';

    for (size_t i = 0; i < n; i++) {
        if (quote ? command[i] == quote : command[i] == '\'' || command[i] == '"')
            quote = quote ? '\0' : command[i];
        if (command[i] == ' ' && !quote && (!piece || i <= room))
            piece = i;
        if (piece == i && i && i <= room && command[i + 1] == '-')
            option = i;
    }
    return n <= room + 2 || !piece ? n : option ? option : piece; /* the last line needs no " \" */
}

/* Writes one line of the examples, " COMMAND" or " COMMAND what it does". If that is too wide, the description comes
 * first as a comment, and the command continues on further lines, with shell continuations. */
static void print_example(const struct layout *l, const char *line, size_t n)
{
    size_t blanks = strspn(line, " "), indent = blanks;
    const char *at = line + blanks, *remark = memmem(at, n - blanks, "   ", 3);
    const char *end = remark ? remark : line + n;

    if (n <= l->width) {
        fprintf(l->out, "%.*s\n", (int)n, line);
        return;
    }
    if (remark) {
        char text[256];

        snprintf(text, sizeof text, "%.*s", (int)(line + n - remark), remark);
        fputs("  # ", l->out);
        wrap(l, text + strspn(text, " "), 4, 4);
    }
    while (at < end) {
        size_t piece = command_piece(at, (size_t)(end - at), l->width - indent - 2);

        fprintf(l->out, "%*s%.*s%s\n", (int)indent, "", (int)piece, at, at + piece < end ? " \\" : "");
        at += piece;
        at += at < end;
        indent = 6;
    }
}

static void print_examples(const struct layout *l, const char *lines)
{
    fputs("\nexamples:\n", l->out);
    while (*lines) {
        size_t n = strcspn(lines, "\n");

        if (n > strspn(lines, " "))
            print_example(l, lines, n);
        lines += n + (lines[n] == '\n');
    }
}

void options_print_help(const struct options *o, FILE *out)
{
    const struct layout l = layout_of(out);
    size_t at = (size_t)fprintf(out, "usage: %s ", o->program);

    wrap(&l, o->usage, at, at < l.width / 2 ? at : 4);
    putc('\n', out);
    wrap(&l, o->summary, 0, 0);
    if (o->command_count)
        print_commands(o, &l);
    if (o->count && o->table[0].kind != OPTION_HEADING)
        putc('\n', out);
    for (size_t i = 0; i < o->count; i++)
        if (o->table[i].kind == OPTION_HEADING) {
            putc('\n', out);
            wrap(&l, o->table[i].help, 0, 0);
        } else {
            print_row(&l, &o->table[i]);
        }
    putc('\n', out);
    print_option(&l, "  -h, --help", "Show this text");
    print_option(&l, "  -V, --version", "Show name and version");
    if (o->examples)
        print_examples(&l, o->examples);
}
