#include "base/subcommand.h"

#include "base/log.h"

#include <signal.h>
#include <string.h>

const struct subcommand *subcommand_find(const struct options *o, const char *name)
{
    for (size_t i = 0; i < o->command_count; i++)
        if (!strcmp(o->commands[i].name, name))
            return &o->commands[i];
    return NULL;
}

static int unknown(const struct options *o, const char *word, struct error *e)
{
    const char *names[128], *near;
    size_t count = o->command_count < 128 ? o->command_count : 128;

    for (size_t i = 0; i < count; i++)
        names[i] = o->commands[i].name;
    near = options_nearest(word, names, count);
    return error_set(e, ERR_ARG, "unknown command '%s'%s%s%s; '%s --help' lists them", word,
                     near ? " (did you mean " : "", near ? near : "", near ? "?)" : "", o->program);
}

int subcommand_main(const struct options *o, int argc, char **argv)
{
    const struct subcommand *command = argc > 1 ? subcommand_find(o, argv[1]) : NULL;
    struct error e = { 0 };
    struct log log;
    int positional = 0, rc;

    signal(SIGPIPE, SIG_DFL); /* `eventlog export logs | head` ends without a word, also where it came ignored */
    if (command)
        return command->run(argc - 1, argv + 1);
    if (argc > 1 && !strcmp(argv[1], "help")) {
        char ask[] = "--help", *words[] = { argc > 2 ? argv[2] : argv[0], ask, NULL };

        if (argc > 2 && (command = subcommand_find(o, argv[2])))
            return command->run(2, words);
        rc = argc > 2 ? unknown(o, argv[2], &e) : options_parse(o, 2, words, &positional, &e);
    } else if (argc > 1 && argv[1][0] != '-') {
        rc = unknown(o, argv[1], &e);
    } else if ((rc = options_parse(o, argc < 2 ? argc : 2, argv, &positional, &e)) == OPTIONS_RUN) {
        rc = error_set(&e, ERR_ARG, "no command; '%s --help' lists them", o->program);
    }
    if (rc == OPTIONS_DONE)
        return EXIT_DONE;
    log_init(&log, o->program, 2);
    log_line(&log, "%s", e.message);
    return EXIT_USAGE;
}
