#include "base/program/subcommand.h"

#include "base/program/log.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const struct subcommand *find(const struct options *o, const char *name)
{
    for (size_t i = 0; i < o->command_count; i++)
        if (!strcmp(o->commands[i].name, name))
            return &o->commands[i];
    return NULL;
}

/* `help` and `help COMMAND`. */
static int help(const struct options *o, const char *name)
{
    const struct subcommand *command = name ? find(o, name) : NULL;
    struct error e = { 0 };
    struct log log;

    if (command) {
        char ask[] = "--help", word[64], *words[] = { word, ask, NULL };

        snprintf(word, sizeof word, "%s", command->name);
        return command->run(2, words);
    }
    if (!name) {
        options_print_help(o, stdout);
        return EXIT_DONE;
    }
    options_unknown_command(o, name, &e);
    log_init(&log, o->program, 2);
    log_line(&log, "%s", e.message);
    return EXIT_USAGE;
}

int subcommand_run(const struct options *o, int argc, char **argv, int *status)
{
    const struct subcommand *command = argc > 1 ? find(o, argv[1]) : NULL;

    if (command)
        *status = command->run(argc - 1, argv + 1);
    else if (argc > 1 && !strcmp(argv[1], "help"))
        *status = help(o, argv[2]);
    else
        return 0;
    return 1;
}

int subcommand_main(const struct options *o, int argc, char **argv)
{
    struct error e = { 0 };
    struct log log;
    int positional = 0, status, rc;

    signal(SIGPIPE, SIG_DFL); /* `eventlog export logs | head` ends silently, even if SIGPIPE was ignored */
    signal(SIGXFSZ, SIG_IGN); /* makes a write past the file size limit fail, like a full disk */
    if (subcommand_run(o, argc, argv, &status))
        return status;
    if ((rc = options_parse(o, argc, argv, &positional, &e)) == OPTIONS_DONE)
        return EXIT_DONE;
    if (rc == OPTIONS_RUN)
        error_set(&e, ERR_ARG, "no command; '%s --help' lists them", o->program);
    log_init(&log, o->program, 2);
    log_line(&log, "%s", e.message);
    return EXIT_USAGE;
}
