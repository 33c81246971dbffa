/* command.h - the subcommands of `eventlog`; each gets the arguments from its own name on and returns the status. */
#ifndef EVENTLOG_TOOL_COMMAND_H
#define EVENTLOG_TOOL_COMMAND_H

/* All commands: ROW(the end of command_NAME(), name, its line in --help). A new command is one row here. */
#define EVENTLOG_COMMANDS(ROW) \
    ROW(inspect, "inspect", "Show runs, files and how they end, series and damage") \
    ROW(export, "export", "Write points as CSV, JSON, a database and more, also for TensorBoard and Prometheus") \
    ROW(stats, "stats", "Print statistics of each series: first, last, minimum, maximum, mean; find diverged runs") \
    ROW(tags, "tags", "List series with their plugins, names and descriptions") \
    ROW(hparams, "hparams", "Print the hyperparameters of runs, optionally with metrics") \
    ROW(compare, "compare", "Compare runs in a table, or draw their curves as a picture") \
    ROW(plot, "plot", "Draw curves in the terminal, or as a picture") \
    ROW(verify, "verify", "Check every record and report what TensorBoard would drop, hide or stumble over") \
    ROW(repair, "repair", "Repair a damaged event file") \
    ROW(tail, "tail", "Print the newest points; with -f, keep printing new ones") \
    ROW(watch, "watch", "Show runs, their states, curves and newest values on a live page in the terminal") \
    ROW(serve, "serve", "Start TensorBoard on a log directory, with every point, and end it on Ctrl-C") \
    ROW(write, "write", "Write points, texts and images to a log, from the command line, CSV or JSON lines") \
    ROW(merge, "merge", "Merge event files or runs, sorted by step") \
    ROW(rename_tag, "rename-tag", "Rename tags in a log") \
    ROW(drop_tag, "drop-tag", "Drop series from a log") \
    ROW(downsample, "downsample", "Thin out the series of a log") \
    ROW(split, "split", "Split a log by tags, steps, sessions, runs or size") \
    ROW(prune, "prune", "Delete old, short or surplus runs, or list them")

#define DECLARE(function, name, help) int command_##function(int argc, char **argv);
EVENTLOG_COMMANDS(DECLARE)
#undef DECLARE

#endif
