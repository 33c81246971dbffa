#include "eventlog/server/server_options.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

enum { PORT_DEFAULT = 6806, PORT_MOST = 65535 };

/* What the table fills in as text. */
struct texts {
    const char *port, *reload, *samples;
    int checksum;
    struct option_list also;
};

static int find_option(const char *word, const char *name, const char **value)
{
    size_t n = strlen(name);

    if (strncmp(word, "--", 2) != 0 || strncmp(word + 2, name, n) != 0 || (word[n + 2] && word[n + 2] != '='))
        return 0;
    *value = word[n + 2] ? word + n + 3 : NULL;
    return 1;
}

const char *server_options_error_file(int argc, char **argv)
{
    const char *file = NULL, *value;

    for (int i = 1; i < argc; i++)
        if (find_option(argv[i], "error-file", &value))
            file = value ? value : i + 1 < argc ? argv[i + 1] : NULL;
    return file && *file ? file : NULL;
}

/* A whole number as the peer reads it: digits after an optional '+'. 1, or 0: not one, or above `most`. */
static int read_number(const char *text, uint64_t most, uint64_t *out)
{
    text += *text == '+';
    *out = 0;
    if (!*text)
        return 0;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || *out > most)
            return 0;
        *out = *out * 10 + (uint64_t)(*text - '0');
    }
    return *out <= most;
}

int server_options_check_logdir(const char *logdir, struct error *e)
{
    const char *end = strstr(logdir, "://");
    size_t n = end ? (size_t)(end - logdir) : 0;

    if (!*logdir)
        return error_set(e, ERR_ARG, "empty --logdir");
    if (!n || !((logdir[0] | 0x20) >= 'a' && (logdir[0] | 0x20) <= 'z'))
        return OK;
    for (size_t i = 0; i < n; i++) {
        char c = logdir[i], lower = (char)(c | 0x20);

        if (!((lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.'))
            return OK;
    }
    if (n == 2 && !memcmp(logdir, "gs", 2))
        return error_set(e, ERR_ARG, "this data server does not read gs:// (TensorBoard's own loaders do)");
    return error_set(e, ERR_ARG, "unknown protocol \"%.*s\" in logdir %s", (int)n, logdir, logdir);
}

static int add_roots(struct server_options *o, const struct option_list *also, struct error *e)
{
    if (o->logdir)
        o->roots[o->root_count++] = (struct log_root){ o->logdir, NULL };
    for (size_t i = 0; i < also->count; i++) {
        const char *equals = strchr(also->items[i], '=');

        if (!equals || equals == also->items[i] || !equals[1])
            return error_set(e, ERR_ARG, "--also: '%s' is not NAME=DIR", also->items[i]);
        for (size_t k = 0; k < i; k++)
            if (strncmp(also->items[k], also->items[i], (size_t)(equals - also->items[i]) + 1) == 0)
                return error_set(e, ERR_ARG, "--also: '%s' has the name of '%s'; give each its own", also->items[i],
                                 also->items[k]);
        if (!(o->names[i] = strndup(also->items[i], (size_t)(equals - also->items[i]))))
            return error_memory(e, NULL, "for --also");
        o->roots[o->root_count++] = (struct log_root){ equals + 1, o->names[i] };
    }
    return OK;
}

/* What the texts say. */
static int understand(struct server_options *o, const struct texts *t, int positional, char **argv, struct error *e)
{
    uint64_t number = PORT_DEFAULT;

    if (positional)
        return error_set(e, ERR_ARG, "'%s' is not an option; the log directory is --logdir DIR", argv[1]);
    if (!o->logdir && !t->also.count)
        return error_set(e, ERR_ARG, "which log? --logdir DIR is required");
    if (t->port && !read_number(t->port, PORT_MOST, &number))
        return error_set(e, ERR_ARG, "--port: '%s' is not a number from 0 to 65535", t->port);
    o->port = (unsigned)number;
    if ((o->port_file && !*o->port_file) || (o->error_file && !*o->error_file) || !*o->host)
        return error_set(e, ERR_ARG, "--%s: needs a value",
                         !*o->host                        ? "host"
                         : o->port_file && !*o->port_file ? "port-file"
                                                          : "error-file");
    number = 5;
    if (strcmp(t->reload, "once") != 0 && !read_number(t->reload, 1000000000, &number))
        return error_set(e, ERR_ARG, "--reload: '%s' is neither whole seconds nor 'once'", t->reload);
    o->reload = strcmp(t->reload, "once") != 0 ? (double)number : -1;
    if (sample_hints_read(&o->hints, t->samples, e) != OK)
        return ERR_ARG;
    return add_roots(o, &t->also, e);
}

/* "-vv" as "-v" "-v". The words stay in *out, which ends with NULL. */
static int split_letters(int argc, char **argv, char ***out, int *count)
{
    static char letter[] = "-v";
    size_t most = 1;

    for (int i = 0; i < argc; i++)
        most += strlen(argv[i]) + 1;
    if (!(*out = malloc(most * sizeof **out)))
        return 0;
    *count = 0;
    for (int i = 0; i < argc; i++) {
        size_t n = strspn(argv[i] + (argv[i][0] == '-'), "v");

        if (argv[i][0] != '-' || n < 2 || argv[i][n + 1])
            (*out)[(*count)++] = argv[i];
        else
            for (size_t k = 0; k < n; k++)
                (*out)[(*count)++] = letter;
    }
    (*out)[*count] = NULL;
    return 1;
}

int server_options_read(struct server_options *o, int argc, char **argv, struct error *e)
{
    struct texts t = { .reload = "5", .samples = "" };
    int verbose = 0, positional = 0, count, rc;
    char **words;
    struct option table[] = {
        { OPTION_HEADING, .help = "What TensorBoard passes" },
        { OPTION_TEXT, .name = "logdir", .value = &o->logdir, .argument = "DIR",
          .help = "Show the runs of this log directory. It may appear later." },
        { OPTION_TEXT, .name = "reload", .value = &t.reload, .argument = "SECONDS",
          .help = "Look for changes that are not notified every SECONDS (5), or read everything 'once'." },
        { OPTION_TEXT, .name = "samples-per-plugin", .value = &t.samples, .argument = "PLUGIN=N,...",
          .help = "Give at most N points of a series of that plugin, or 'all'. All points are kept in any case; "
                  "TensorBoard asks for as many as its own --samples_per_plugin says." },
        { OPTION_TEXT, .name = "host", .value = &o->host, .argument = "HOST",
          .help = "Listen on this host's addresses (localhost). Whoever reaches them can read the logs." },
        { OPTION_TEXT, .name = "port", .value = &t.port, .argument = "N",
          .help = "Listen on this port (6806); 0: any free one." },
        { OPTION_TEXT, .name = "port-file", .value = &o->port_file, .argument = "FILE",
          .help = "Write the port to FILE when listening." },
        { OPTION_TEXT, .name = "error-file", .value = &o->error_file, .argument = "FILE",
          .help = "Write the error to FILE if starting fails." },
        { OPTION_FLAG, .name = "die-after-stdin", .value = &o->die_after_stdin,
          .help = "End when standard input ends." },
        { OPTION_FLAG, .letter = 'v', .name = "verbose", .value = &verbose, .help = "Tell more. May be repeated." },
        { OPTION_FLAG, .name = "checksum", .value = &t.checksum, .help = "Verify checksums (always done)." },
        { OPTION_HEADING, .help = "More" },
        { OPTION_LIST, .name = "also", .value = &t.also, .argument = "NAME=DIR",
          .help = "Show the runs of DIR, too, as NAME/RUN. May be repeated." },
        { OPTION_FLAG, .name = "extremes", .value = &o->extremes,
          .help = "Thin out curves so that each stretch keeps its lowest and highest point, instead of by chance." },
        { OPTION_INT, .name = "chart-points", .value = &o->chart_points, .argument = "N", .maximum = 1000000000,
          .help =
              "Thin out curves so that those of an answer, which is a chart, have at most N points together, but not "
              "below 200 of each (no limit)." },
        { OPTION_FLAG, .name = "merge", .value = &o->merge,
          .help = "Merge files of one run that were written at the same time, by step (default). With --no-merge a "
                  "file replaces what comes before it from its first step on, as in TensorBoard's own data server." },
        { OPTION_FLAG, .name = "follow-links", .value = &o->follow_links,
          .help = "Follow symbolic links that lead out of the log directory." },
        { OPTION_FLAG, .name = "notify", .value = &o->notify,
          .help = "Read what is written as soon as the system notifies of it (default); --no-notify: only every "
                  "--reload seconds." },
        { OPTION_FLAG, .name = "report", .value = &o->report,
          .help = "Show what could not be read as a text, in a run 'eventlog-server'." },
        { OPTION_FLAG, .name = "status", .value = &o->status,
          .help = "Tell every second on a terminal, while it loads, how much has been read." },
    };
    const struct options options = {
        .program = "eventlog-server",
        .usage = "--logdir DIR [OPTION...]",
        .summary = "Serve a log directory to TensorBoard, which starts it itself if the environment variable "
                   "TENSORBOARD_DATA_SERVER_BINARY names it, or connects to it with --grpc_data_provider. Every point "
                   "is kept; damaged records are left out, and what follows them is read.",
        .examples = "  TENSORBOARD_DATA_SERVER_BINARY=$(command -v eventlog-server) tensorboard --logdir runs\n"
                    "  eventlog-server --logdir runs --port 6806 &\n"
                    "  tensorboard --grpc_data_provider=localhost:6806\n",
        .table = table,
        .count = sizeof table / sizeof *table,
    };

    *o = (struct server_options){ .host = "localhost", .merge = 1, .notify = 1 };
    if (!split_letters(argc, argv, &words, &count))
        return error_memory(e, NULL, "for the command line");
    rc = options_parse(&options, count, words, &positional, e);
    if (rc == OPTIONS_RUN)
        rc = understand(o, &t, positional, words, e);
    for (size_t i = 0; i < options.count; i++)
        if (table[i].value == &verbose)
            o->verbose = table[i].given;
    free(words);
    return rc;
}

void server_options_release(struct server_options *o)
{
    for (size_t i = 0; i < OPTION_LIST_MOST; i++)
        free(o->names[i]);
    sample_hints_release(&o->hints);
}
