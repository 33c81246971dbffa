#include "trainer/launch/mpirun_line.h"

#include <stdlib.h>
#include <string.h>

/* What changes results or whether a program starts at all. Open MPI forwards OMPI_* itself, MPICH everything. */
static const char *const forwarded[] = { "LD_LIBRARY_PATH", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS" };
/* The user's own list, beside which mpirun takes no -x. */
static const char own_list[] = "OMPI_MCA_mca_base_env_list";
/* Seconds of silence, seconds between probes, probes. */
static const char *const keepalive[] = { "5", "2", "3" };

enum { FORWARDED = sizeof forwarded / sizeof *forwarded, KEEPALIVE = sizeof keepalive / sizeof *keepalive };
enum { WORDS_MOST = 16 + 3 * KEEPALIVE + 2 * FORWARDED }; /* without the program's options */

/* How each kind of mpirun calls what a line needs. parameter NULL: it has none for that, and forwards all variables. */
static const struct dialect {
    const char *places[3]; /* before the hosts; NULL at the end */
    const char *bind, *directory, *parameter, *keepalive_variable, *keepalive[KEEPALIVE];
} dialects[] = {
#define OPEN_MPI(parameter, variable, component) \
    { \
        { "--map-by", "seq", "--host" }, "--bind-to", "--wdir", parameter, variable component "_keepalive_time", \
        { \
            component "_keepalive_time", component "_keepalive_intvl", component "_keepalive_probes" \
        } \
    }
    [MPIRUN_OPEN_MPI_4] = OPEN_MPI("--mca", "OMPI_MCA_", "oob_tcp"),
    [MPIRUN_OPEN_MPI_5] = OPEN_MPI("--prtemca", "PRTE_MCA_", "oob_tcp"),
    [MPIRUN_OPEN_MPI_6] = OPEN_MPI("--prtemca", "PRTE_MCA_", "prte"),
    [MPIRUN_HYDRA] = { { "-hosts" }, "-bind-to", "-wdir", NULL, NULL, { NULL } },
};

enum mpirun_kind mpirun_kind(const char *version)
{
    static const char name[] = "(Open MPI) ";
    const char *open_mpi = strstr(version, name);

    if (open_mpi) {
        const int major = atoi(open_mpi + strlen(name));

        return major < 5 ? MPIRUN_OPEN_MPI_4 : major < 6 ? MPIRUN_OPEN_MPI_5 : MPIRUN_OPEN_MPI_6;
    }
    return strstr(version, "HYDRA") ? MPIRUN_HYDRA : MPIRUN_OPEN_MPI_4;
}

/* The host of every rank, with commas between them. */
static void append_places(struct buffer *out, const struct mpirun_job *job)
{
    const struct resource_info *r = job->hosts;

    for (size_t i = 0; i < r->count; i++)
        for (int device = 0; device < r->hosts[i].devices; device++)
            buffer_format(out, "%s%s", out->length ? "," : "", r->hosts[i].name);
    for (int server = 0; server < job->servers; server++)
        buffer_format(out, ",%s", r->hosts[(size_t)server % r->count].name);
}

static size_t add(const char **words, size_t at, const char *word)
{
    words[at] = word;
    return at + 1;
}

/* 1: the option behind this one is its value ":", which is where mpirun's next program would begin. */
static int is_before_colon(const struct mpirun_job *job, size_t i)
{
    return i + 1 < job->option_count && !strcmp(job->options[i + 1], ":");
}

/* joined: each option that has the value ":", as one word, with a 0 behind it. */
static size_t add_words(const char **words, const struct mpirun_job *job, const char *count, const char *places,
                        const char *joined)
{
    const struct dialect *d = &dialects[job->mpirun];
    const int probes = d->parameter && job->hosts->count > 1 && !job->environment(d->keepalive_variable);
    size_t n = add(words, 0, "mpirun");

    for (size_t i = 0; i < sizeof d->places / sizeof *d->places && d->places[i]; i++)
        n = add(words, n, d->places[i]);
    n = add(words, n, places);
    n = add(words, add(words, n, d->bind), "none");
    n = add(words, add(words, n, d->directory), job->directory);
    for (size_t i = 0; i < KEEPALIVE && probes; i++)
        n = add(words, add(words, add(words, n, d->parameter), d->keepalive[i]), keepalive[i]);
    for (size_t i = 0; i < FORWARDED && d->parameter && !job->environment(own_list); i++)
        if (job->environment(forwarded[i]))
            n = add(words, add(words, n, "-x"), forwarded[i]);
    n = add(words, add(words, n, "-n"), count);
    n = add(words, n, job->program);
    for (size_t i = 0; i < job->option_count; i++) {
        const int join = is_before_colon(job, i);

        n = add(words, n, join ? joined : job->options[i]);
        joined += join ? strlen(joined) + 1 : 0;
        i += (size_t)join;
    }
    return n;
}

int mpirun_line(const char ***out, const struct mpirun_job *job, struct error *e)
{
    const size_t room = (WORDS_MOST + job->option_count) * sizeof(char *);
    struct buffer texts = BUFFER_EMPTY;
    const char **words;
    char *text;
    size_t count, joined;

    append_places(&texts, job);
    buffer_append_byte(&texts, 0);
    count = texts.length;
    buffer_format(&texts, "%d", resource_info_workers(job->hosts) + job->servers);
    buffer_append_byte(&texts, 0);
    joined = texts.length;
    for (size_t i = 0; i < job->option_count; i++)
        if (is_before_colon(job, i)) {
            buffer_format(&texts, "%s=:", job->options[i]);
            buffer_append_byte(&texts, 0);
        }
    words = buffer_ok(&texts) ? malloc(room + texts.length) : NULL;
    if (!words) {
        buffer_release(&texts);
        return error_memory(e, NULL, "for the line of mpirun");
    }
    text = (char *)(void *)words + room;
    memcpy(text, buffer_text(&texts), texts.length);
    words[add_words(words, job, text + count, text, text + joined)] = NULL;
    buffer_release(&texts);
    *out = words;
    return OK;
}

void mpirun_line_quoted(struct buffer *out, const char *const *words)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:/_-+=@%";

    for (size_t i = 0; words[i]; i++) {
        const char *word = words[i];

        if (i > 0)
            buffer_append_byte(out, ' ');
        if (*word && !word[strspn(word, plain)]) {
            buffer_append_text(out, word);
            continue;
        }
        buffer_append_byte(out, '\'');
        for (; *word; word++)
            if (*word == '\'')
                buffer_append_text(out, "'\\''");
            else
                buffer_append_byte(out, *word);
        buffer_append_byte(out, '\'');
    }
}
