/* The program: finds the subcommand. */
#include "base/program/subcommand.h"
#include "base/unfinished.h"
#include "dataset/tool/command.h"

#define ROW(function, name, help) { name, help, command_##function },
static const struct subcommand commands[] = { DATASET_COMMANDS(ROW) };

int main(int argc, char **argv)
{
    static const struct options dataset = {
        .program = "dataset",
        .usage = "COMMAND [OPTION...] PATH...",
        .summary = "Prepare data sets for trainer and evaluator: vocabularies, and what a frozen model makes of images."
                   " A directory of captions is laid out as COCO is distributed: "
                   "DIR/annotations/captions_train*.json and captions_val*.json, and the images of each in a folder "
                   "beside.",
        .examples = "  dataset vocabulary captions\n"
                    "  dataset encode captions --model lenet --checkpoint ckpt/model.ckpt-1000 --tiles 2\n"
                    "  trainer --model show_and_tell --data captions --data-dir captions --max-steps 1000\n",
        .commands = commands,
        .command_count = sizeof commands / sizeof *commands,
    };

    unfinished_remove_at_signals();
    return subcommand_main(&dataset, argc, argv);
}
