#include "base/program/options_describe.h"

#include "base/json.h"
#include "base/version.h"

#include <string.h>

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
