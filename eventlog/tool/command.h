/* command.h - the subcommands of `eventlog`; each gets the arguments from its own name on and returns the status. */
#ifndef EVENTLOG_TOOL_COMMAND_H
#define EVENTLOG_TOOL_COMMAND_H

/* All of them: ROW(the end of command_NAME(), name, what --help says of it). A new command is one row here. */
#define EVENTLOG_COMMANDS(ROW) \
    ROW(inspect, "inspect", "what is in a log: runs, files and how they end, series, damage") \
    ROW(export, "export", "all points as csv, json, a table, a database; also for TensorBoard or Prometheus") \
    ROW(stats, "stats", "figures of every series: first, last, least and greatest with their steps, mean") \
    ROW(tags, "tags", "the series of a log, their plugins, names and descriptions") \
    ROW(hparams, "hparams", "the hyperparameters of the runs, long or as a table with metrics") \
    ROW(compare, "compare", "runs beside each other: a table, or the curves as an SVG picture") \
    ROW(plot, "plot", "curves in the terminal, or as an SVG picture") \
    ROW(verify, "verify", "what TensorBoard would drop, hide or stumble over: every record, every rule") \
    ROW(repair, "repair", "a damaged event file as a sound one") \
    ROW(tail, "tail", "the newest points, and with -f those that come") \
    ROW(write, "write", "points, texts and pictures from the shell, a CSV file or JSON lines into a log") \
    ROW(merge, "merge", "several event files or runs as one, in order of steps") \
    ROW(rename_tag, "rename-tag", "a log with other tags") \
    ROW(drop_tag, "drop-tag", "a log without some of its series") \
    ROW(downsample, "downsample", "a log with fewer values of each series") \
    ROW(split, "split", "a log as several, by tags, steps, sessions, runs or size") \
    ROW(prune, "prune", "delete old, short or surplus runs; only lists them unless told to delete") \
    ROW(archive, "archive", "finished logs in one compressed file") \
    ROW(cat, "cat", "what is in an archive: lists, checks, restores")

#define DECLARE(function, name, help) int command_##function(int argc, char **argv);
EVENTLOG_COMMANDS(DECLARE)
#undef DECLARE

#endif
