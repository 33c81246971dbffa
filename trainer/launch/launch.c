#include "trainer/launch/launch.h"

#include "base/file.h"

#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- restart rule ------------------------------------------------------------------------------------------------ */

enum { DONE = 0, USAGE = 2, CANNOT_RUN = 127, BY_SIGNAL = 128 };

static int wanted(const struct restart_facts *f)
{
    if (f->asked || f->status == DONE || f->status == USAGE || f->status == CANNOT_RUN ||
        f->status == BY_SIGNAL + SIGINT || f->status == BY_SIGNAL + SIGTERM)
        return 0;
    if (f->status > BY_SIGNAL || !f->state)
        return 1;
    return strcmp(f->state->state, "finished") != 0 && !(!strcmp(f->state->state, "stopped") && f->state->signal[0]);
}

enum restart_verdict restart_rule(const struct restart_facts *f)
{
    if (!wanted(f))
        return RESTART_NOT_WANTED;
    if (f->done > 0 && !f->progress)
        return RESTART_NO_PROGRESS;
    return f->done < f->most ? RESTART_AGAIN : RESTART_ENOUGH;
}

/* ---- launch ------------------------------------------------------------------------------------------------------ */

enum { FILE_MOST = 1 << 20 }; /* bytes */

const char *const launch_option_names[LAUNCH_NAMES] = { "resource-info", "dry-run", "restarts" };

size_t launch_rows(struct option *rows, struct launch_options *o)
{
    const struct option table[LAUNCH_ROWS] = {
        { OPTION_HEADING, .help = "How to start the ranks, instead of with mpirun:" },
        { OPTION_TEXT, .name = "resource-info", .value = &o->resource_info, .argument = "FILE",
          .help = "Start the training with mpirun on the hosts listed in FILE, one per line, each with its devices: "
                  "HOST:0,1 has two workers, HOST has one. With --run-option ps each host also has a server, unless "
                  "--servers or --servers-per-host says otherwise." },
        { OPTION_FLAG, .name = "dry-run", .value = &o->dry_run,
          .help = "Print the command that --resource-info would run, and end." },
        { OPTION_INT, .name = "restarts", .value = &o->restarts, .argument = "N", .minimum = 0, .maximum = 1e9,
          .help =
              "Start the training again from its newest checkpoint when a rank has failed, up to N times, unless it "
              "made no checkpoint since the last start. Default: 0." },
    };

    memcpy(rows, table, sizeof table);
    return LAUNCH_ROWS;
}

/* What tells that a launcher has started this process; NULL: none has. */
static const char *launcher(void)
{
    static const char *const variables[][2] = {
        { "OMPI_COMM_WORLD_SIZE", "mpirun" }, { "SLURM_JOB_ID", "Slurm" },        { "PMIX_RANK", "another launcher" },
        { "PMI_RANK", "another launcher" },   { "PMI_SIZE", "another launcher" },
    };

    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (getenv(variables[i][0]))
            return variables[i][1];
    return NULL;
}

int launch_may(const char *option, struct error *e)
{
    const char *what = launcher();

    if (!what)
        return OK;
    return error_set(e, ERR_ARG,
                     "--%s starts the ranks itself, but %s has started this program and chosen the hosts; leave the "
                     "option out",
                     option, what);
}

int launch_hosts(struct resource_info *out, const char *path, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    int rc;

    if ((rc = file_read(path, FILE_MOST, &text, e)) == OK)
        rc = resource_info_parse(out, buffer_text(&text), text.length, path, e);
    buffer_release(&text);
    return rc < 0 ? error_prefix(e, "--resource-info") : OK;
}

int launch_open(struct launch *l, const struct launch_options *o, int argc, char **argv, struct error *e)
{
    const ssize_t n = readlink("/proc/self/exe", l->program, sizeof l->program - 1);

    memset(&l->hosts, 0, sizeof l->hosts);
    l->words = NULL;
    l->given = argv + 1;
    l->given_count = (size_t)argc - 1;
    if (n <= 0 || !getcwd(l->directory, sizeof l->directory))
        return error_system(e, "cannot find this program and its directory");
    l->program[n] = '\0';
    return o->resource_info ? launch_hosts(&l->hosts, o->resource_info, e) : OK;
}

void launch_release(struct launch *l)
{
    resource_info_release(&l->hosts);
    free(l->words);
    l->words = NULL;
}

static const char *environment(const char *name)
{
    return getenv(name);
}

enum mpirun_kind launch_mpirun(void)
{
    char version[4096] = "";
    FILE *mpirun;

    if (!getpwuid(getuid()))
        setenv("HOME", "/", 0); /* with neither Open MPI 4.1's crashes */
    mpirun = popen("mpirun --version </dev/null 2>/dev/null", "re");

    if (mpirun) {
        version[fread(version, 1, sizeof version - 1, mpirun)] = '\0';
        pclose(mpirun);
    }
    return mpirun_kind(version);
}

int launch_compose(struct launch *l, int servers, const char *const *added, struct error *e)
{
    size_t more = 0, count = 0;
    const char **options;
    int rc = OK;

    while (added[more])
        more++;
    if (!(options = calloc(1 + l->given_count + more + 1, sizeof *options)))
        return error_memory(e, NULL, "to start the training");
    options[count++] = l->program;
    for (size_t i = 0; i < l->given_count; i++)
        options[count++] = l->given[i];
    for (size_t i = 0; i < more; i++)
        options[count++] = added[i];
    free(l->words);
    l->words = NULL;
    if (l->hosts.count == 0) {
        l->words = options;
        return OK;
    }
    l->mpirun = launch_mpirun();
    const struct mpirun_job job = { l->mpirun,    &l->hosts,   servers,   l->program,
                                    l->directory, options + 1, count - 1, environment };
    rc = mpirun_line(&l->words, &job, e);
    free(options);
    return rc;
}

int launch_print(const struct launch *l, struct error *e)
{
    struct buffer line = BUFFER_EMPTY;
    int rc = OK;

    mpirun_line_quoted(&line, l->words);
    if (!buffer_ok(&line))
        rc = error_memory(e, NULL, "for the line of mpirun");
    else if (printf("%s\n", buffer_text(&line)) < 0 || fflush(stdout) != 0)
        rc = error_system(e, "standard output");
    buffer_release(&line);
    return rc;
}

/* Open MPI's mpirun keeps files there, and says a page where it cannot. */
static int check_temporary(const struct launch *l, struct error *e)
{
    static const char *const variables[] = { "TMP", "TEMP", "TMPDIR" };
    const char *directory = "/tmp";

    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (getenv(variables[i]))
            directory = getenv(variables[i]);
    return l->mpirun == MPIRUN_HYDRA || access(directory, W_OK | X_OK) == 0
               ? OK
               : error_system(e, "--resource-info: mpirun needs a directory for its files; set TMPDIR to one: %s",
                              directory);
}

int launch_check(const struct launch *l, struct error *e)
{
    char file[PATH_MAX];

    if (l->hosts.count && file_find_program("mpirun", file))
        return check_temporary(l, e);
    return l->hosts.count
               ? error_set(e, ERR_ARG,
                           "--resource-info: no mpirun in PATH; install that of the MPI that the trainer was "
                           "built with (Debian: openmpi-bin or mpich), or add its bin directory to PATH")
               : OK;
}

int launch_become(const struct launch *l, struct error *e)
{
    const union { /* exec does not write to them */
        const char **given;
        char *const *taken;
    } words = { l->words };

    execvp(words.taken[0], words.taken);
    return error_system(e, "run %s", l->words[0]);
}
