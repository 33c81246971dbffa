/* The program: finds the subcommand. */
#include "base/program/subcommand.h"
#include "base/unfinished.h"
#include "checkpoint/tool/command.h"

#define ROW(function, name, help) { name, help, command_##function },
static const struct subcommand commands[] = { CHECKPOINT_COMMANDS(ROW) };

int main(int argc, char **argv)
{
    static const struct options checkpoint = {
        .program = "checkpoint",
        .usage = "COMMAND [OPTION...] PATH...",
        .summary = "Inspect, verify, compare and convert TensorFlow V2 checkpoints and safetensors files. PATH is the "
                   "prefix of a checkpoint (ckpt/model.ckpt-700), a directory (its newest complete checkpoint is "
                   "used), or a file (model.safetensors, or model.safetensors.index.json for all parts that it names).",
        .examples = "  checkpoint inspect ckpt                                show the newest checkpoint\n"
                    "  checkpoint compare mpi/model.ckpt-700 ps/model.ckpt-700 --tolerance 1e-5\n"
                    "  checkpoint convert ckpt model.safetensors\n",
        .commands = commands,
        .command_count = sizeof commands / sizeof *commands,
    };

    unfinished_remove_at_signals();
    return subcommand_main(&checkpoint, argc, argv);
}
