/*
 * rewrite_command.h - the engine of the commands that make logs into other logs. A command supplies its options,
 * decides what becomes of each value, and says what was done. All else happens here: finding the runs, writing a file's
 * records to one of the same name, in one directory, one per part, or in place, and putting all new files into place
 * together.
 */
#ifndef EVENTLOG_TOOL_REWRITE_REWRITE_COMMAND_H
#define EVENTLOG_TOOL_REWRITE_REWRITE_COMMAND_H

#include "base/program/options.h"
#include "eventlog/format/tag_index.h"
#include "eventlog/rewrite/log_rewrite.h"
#include "eventlog/tool/rewrite/rewrite.h"

/* a log that values go to */
struct rewrite_part {
    char *name;                  /* its directory below DIR; NULL: it is DIR, or in place */
    uint64_t values;             /* of the runs that have been read */
    struct log_rewrite *records; /* of the current file for a part without a name, else of the run */
    struct rewrite_file *out;    /* the current file */
    uint64_t before;             /* values when it began */
};

struct rewrite_value {
    const struct event *event;
    struct tag_index_entry *tag; /* its value is the command's */
    size_t number;               /* of the tag, in rewrite.tags */
    int is_new;                  /* the first value with that tag since rewrite.tags was empty */
    size_t part;                 /* the part in question */
};

/* context is handed to all functions */
struct rewrite_command {
    const struct options *options;
    void *context;
    int group_files;            /* as log_group_files() */
    struct rewrite_part *parts; /* NULL: one, without a name */
    size_t part_count;

    /* These may be NULL. Of argv[1] to argv[count], those before argv[*first] are not paths; */
    int (*arguments)(void *context, int count, char **argv, int *first, struct error *e);
    int (*check)(void *context, struct error *e); /* looks at the options, and may fill in the command; */
    int (*begin_run)(void *context, const struct log_run *run, struct error *e);
    void (*end_run)(void *context); /* also after an error. */
    /* What becomes of a value: as log_rewrite_choose. */
    int (*choose)(void *context, const struct rewrite_value *value, struct log_rewrite_choice *choice, struct error *e);
    /* 1 if the part gets an event that is no summary; NULL: all do. */
    int (*keeps)(void *context, const struct event *event, size_t part);

    /* Instead of `choose`: does everything with one file of a run; or with all runs, and calls no function above. */
    int (*file)(void *context, const struct log_run *run, size_t file, struct error *e);
    int (*all)(void *context, struct error *e);

    /* Says what was done, by rewrite_print(). 1 if there was something to do. */
    int (*tell)(void *context);
};

/* The whole command: returns the status. w is the context's, all zero but for its options, tags.item_size and
 * scan.passes. */
int rewrite_command_run(struct rewrite *w, const struct rewrite_command *c, int argc, char **argv);

#endif
