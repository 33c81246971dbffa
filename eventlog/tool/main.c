/* The program: finds the subcommand. */
#include "base/program/subcommand.h"
#include "base/unfinished.h"
#include "eventlog/tool/command.h"

#define ROW(function, name, help) { name, help, command_##function },
static const struct subcommand commands[] = { EVENTLOG_COMMANDS(ROW) };

int main(int argc, char **argv)
{
    static const struct options eventlog = {
        .program = "eventlog",
        .usage = "COMMAND [OPTION...] PATH...",
        .summary = "Inspect, verify, repair, follow, rewrite and export TensorBoard event files. PATH is a log "
                   "directory, a run in it, one event file, a tar or zip file of these, or - for standard input. Files "
                   "may be compressed with gzip, zstd, xz or bzip2.",
        .examples = "  eventlog export logs -o points.csv           every point of every run\n"
                    "  eventlog compare mpi/eval ps/eval -o a.svg   two runs in one picture\n"
                    "  ssh host cat run/events* | eventlog stats -  without copying it\n",
        .commands = commands,
        .command_count = sizeof commands / sizeof *commands,
    };

    unfinished_remove_at_signals();
    return subcommand_main(&eventlog, argc, argv);
}
