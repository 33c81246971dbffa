/*
 * server_options.h - the command line of eventlog-server: that of TensorBoard's own data server, which TensorBoard
 * passes to whatever TENSORBOARD_DATA_SERVER_BINARY names, and options of its own. Of an option that is repeated, the
 * last counts, so that --extra_data_server_flags can overrule what TensorBoard passes.
 */
#ifndef EVENTLOG_SERVER_SERVER_OPTIONS_H
#define EVENTLOG_SERVER_SERVER_OPTIONS_H

#include "base/error.h"
#include "base/program/options.h"
#include "eventlog/server/log_roots.h"
#include "eventlog/server/sample_hints.h"

#include <stddef.h>
#include <stdint.h>

struct server_options {
    const char *logdir, *host;
    unsigned port;
    double reload; /* seconds; < 0: once */
    int verbose;
    int die_after_stdin, status, merge, follow_links, notify, extremes, report;
    int64_t chart_points;               /* 0: no limit */
    const char *port_file, *error_file; /* NULL: none */
    struct sample_hints hints;
    struct log_root roots[1 + OPTION_LIST_MOST]; /* logdir, and what --also names */
    size_t root_count;
    /* private */
    char *names[OPTION_LIST_MOST];
};

/* Options that are read first, so that errors of others can be written where the caller of the program looks for them:
 * the value of --error-file, or NULL. */
const char *server_options_error_file(int argc, char **argv);

/* OPTIONS_RUN; OPTIONS_DONE: help or the version was printed; ERR_ARG; ERR_NOMEM. Texts are borrowed from argv. Then
 * server_options_release(). */
int server_options_read(struct server_options *o, int argc, char **argv, struct error *e);
void server_options_release(struct server_options *o);

/* OK; ERR_ARG if the log directory is the URL of something that cannot be read, or empty. Pure. */
int server_options_check_logdir(const char *logdir, struct error *e);

#endif
