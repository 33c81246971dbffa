/* command.h - the subcommands of `trainer`; each gets the arguments from its own name on and returns the status. */
#ifndef TRAINER_TOOL_COMMAND_H
#define TRAINER_TOOL_COMMAND_H

/* All of them: ROW(the end of command_NAME(), name, what --help says of it). */
#define TRAINER_COMMANDS(ROW) \
    ROW(status, "status", "Show whether trainings are running, how far they are, and when they will be done") \
    ROW(compare, "compare", "Train with several strategies and numbers of ranks, and compare speed and precision") \
    ROW(plan, "plan", "Predict how fast each strategy trains on machines that one need not have") \
    ROW(models, "models", "List the built-in models, and what a model file may say") \
    ROW(describe, "describe", "Show the layers of a model, or write it as a model file")

#define DECLARE(function, name, help) int command_##function(int argc, char **argv);
TRAINER_COMMANDS(DECLARE)
#undef DECLARE

#endif
