/* The program: finds the subcommand. */
#include "base/options.h"
#include "base/version.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/scan.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *help;
    int (*run)(int argc, char **argv);
} commands[] = {
    { "inspect", "what is in a log: runs, files and how they end, series, damage", command_inspect },
    { "export", "all points as csv, wide, json or jsonl", command_export },
    { "compare", "runs beside each other: a table, or the curves as an SVG picture", command_compare },
    { "verify", "what TensorBoard would drop, hide or stumble over: every record, every rule", command_verify },
    { "repair", "a damaged event file as a sound one", command_repair },
    { "tail", "the newest points, and with -f those that come", command_tail },
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void help(void)
{
    printf("usage: eventlog COMMAND [OPTION...] PATH...\n\n"
           "Reads TensorBoard event files. PATH is a log directory, a run in it, or one event file.\n\ncommands:\n");
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  %-10s %s\n", commands[i].name, commands[i].help);
    printf("\n  -h, --help     this text; 'eventlog COMMAND --help' tells all about one\n"
           "      --version  name and version\n"
           "\nexamples:\n"
           "  eventlog export logs -o points.csv           every point of every run\n"
           "  eventlog compare mpi/eval ps/eval -o a.svg   two runs in one picture\n");
}

static int unknown(const char *word)
{
    const char *names[COMMANDS], *near;

    for (size_t i = 0; i < COMMANDS; i++)
        names[i] = commands[i].name;
    near = options_nearest(word, names, COMMANDS);
    fprintf(stderr, "eventlog: unknown command '%s'%s%s%s; 'eventlog --help' lists them\n", word,
            near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_DFL); /* `eventlog export logs | head` ends without a word, also where it came ignored */
    if (argc < 2) {
        fprintf(stderr, "eventlog: no command; 'eventlog --help' lists them\n");
        return EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        help();
        return EXIT_DONE;
    }
    if (!strcmp(argv[1], "--version")) {
        printf("eventlog (evalboard) %s\n", EVALBOARD_VERSION);
        return EXIT_DONE;
    }
    for (size_t i = 0; i < COMMANDS; i++)
        if (!strcmp(argv[1], commands[i].name))
            return commands[i].run(argc - 1, argv + 1);
    return unknown(argv[1]);
}
