/* The program: finds the subcommand. */
#include "base/options.h"
#include "base/version.h"
#include "checkpoint/tool/command.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *help;
    int (*run)(int argc, char **argv);
} commands[] = {
    { "inspect", "tensors with type, shape, place and statistics; or the checkpoints of a directory", command_inspect },
    { "verify", "every CRC, length and place; exit 1 with findings", command_verify },
    { "compare", "two checkpoints tensor by tensor; exit 1 when they differ", command_compare },
    { "convert", "the same tensors as bundle, safetensors file or .npy files", command_convert },
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void help(void)
{
    printf("usage: checkpoint COMMAND [OPTION...] PATH...\n\n"
           "Reads TensorFlow V2 checkpoints and safetensors files. PATH is a prefix (ckpt/model.ckpt-700), a\n"
           "directory (its newest checkpoint), or a file (model.safetensors).\n\ncommands:\n");
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  %-10s %s\n", commands[i].name, commands[i].help);
    printf("\n  -h, --help     this text; 'checkpoint COMMAND --help' tells all about one\n"
           "      --version  name and version\n"
           "\nexamples:\n"
           "  checkpoint inspect ckpt                                what is in the newest checkpoint\n"
           "  checkpoint compare mpi/model.ckpt-700 ps/model.ckpt-700 --tolerance 1e-5\n"
           "  checkpoint convert ckpt model.safetensors\n");
}

static int unknown(const char *word)
{
    const char *names[COMMANDS], *near;

    for (size_t i = 0; i < COMMANDS; i++)
        names[i] = commands[i].name;
    near = options_nearest(word, names, COMMANDS);
    fprintf(stderr, "checkpoint: unknown command '%s'%s%s%s; 'checkpoint --help' lists them\n", word,
            near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_DFL); /* `checkpoint inspect ckpt | head` ends without a word, also where it came ignored */
    if (argc < 2) {
        fprintf(stderr, "checkpoint: no command; 'checkpoint --help' lists them\n");
        return EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        help();
        return EXIT_DONE;
    }
    if (!strcmp(argv[1], "--version")) {
        printf("checkpoint (evalboard) %s\n", EVALBOARD_VERSION);
        return EXIT_DONE;
    }
    for (size_t i = 0; i < COMMANDS; i++)
        if (!strcmp(argv[1], commands[i].name))
            return commands[i].run(argc - 1, argv + 1);
    return unknown(argv[1]);
}
