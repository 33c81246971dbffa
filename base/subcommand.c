#include "base/subcommand.h"

#include "base/log.h"
#include "base/options.h"
#include "base/version.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

const struct subcommand *subcommand_find(const struct subcommands *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (!strcmp(s->table[i].name, name))
            return &s->table[i];
    return NULL;
}

static void print_help(const struct subcommands *s)
{
    size_t widest = 0;

    for (size_t i = 0; i < s->count; i++)
        widest = strlen(s->table[i].name) > widest ? strlen(s->table[i].name) : widest;
    printf("usage: %s %s\n\n", s->program, s->usage);
    options_print_paragraph(s->summary, stdout);
    printf("\ncommands:\n");
    for (size_t i = 0; i < s->count; i++)
        printf("  %-*s  %s\n", (int)widest, s->table[i].name, s->table[i].help);
    printf("\n  -h, --help     this text; '%s COMMAND --help' tells all about one\n      --version  name and version\n",
           s->program);
    printf("\nexamples:\n%s", s->examples);
}

static int unknown(const struct subcommands *s, const char *word)
{
    const char *names[128], *near;
    size_t count = s->count < 128 ? s->count : 128;
    struct log log;

    for (size_t i = 0; i < count; i++)
        names[i] = s->table[i].name;
    near = options_nearest(word, names, count);
    log_init(&log, s->program, 2);
    log_line(&log, "unknown command '%s'%s%s%s; '%s --help' lists them", word, near ? " (did you mean " : "",
             near ? near : "", near ? "?)" : "", s->program);
    return EXIT_USAGE;
}

int subcommand_main(const struct subcommands *s, int argc, char **argv)
{
    const struct subcommand *command;
    struct log log;

    signal(SIGPIPE, SIG_DFL); /* `eventlog export logs | head` ends without a word, also where it came ignored */
    if (argc < 2) {
        log_init(&log, s->program, 2);
        log_line(&log, "no command; '%s --help' lists them", s->program);
        return EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        print_help(s);
        return EXIT_DONE;
    }
    if (!strcmp(argv[1], "--version")) {
        printf("%s (evalboard) %s\n", s->program, EVALBOARD_VERSION);
        return EXIT_DONE;
    }
    if (!(command = subcommand_find(s, argv[1])))
        return unknown(s, argv[1]);
    return command->run(argc - 1, argv + 1);
}
