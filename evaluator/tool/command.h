/* command.h - the subcommands of `evaluator`; each gets the arguments from its own name on and returns the status. */
#ifndef EVALUATOR_TOOL_COMMAND_H
#define EVALUATOR_TOOL_COMMAND_H

/* All of them: ROW(the end of command_NAME(), name, what --help says of it). */
#define EVALUATOR_COMMANDS(ROW) \
    ROW(status, "status", "Show what evaluators are doing, how far they are, and what failed") \
    ROW(replay, "replay", "Write the event files again, from the ledger")

#define DECLARE(function, name, help) int command_##function(int argc, char **argv);
EVALUATOR_COMMANDS(DECLARE)
#undef DECLARE

#endif
