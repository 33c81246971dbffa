/* command.h - the subcommands of `eventlog`; each gets the arguments from its own name on and returns the status. */
#ifndef EVENTLOG_TOOL_COMMAND_H
#define EVENTLOG_TOOL_COMMAND_H

int command_inspect(int argc, char **argv);
int command_export(int argc, char **argv);
int command_compare(int argc, char **argv);
int command_verify(int argc, char **argv);
int command_repair(int argc, char **argv);
int command_tail(int argc, char **argv);

#endif
