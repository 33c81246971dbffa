/*
 * A collective call consists of one reduction of a fixed-size head, from which every rank learns whether all ranks make
 * the same call and whether one of them cannot take part; then the call's own messages; then one reduction that spreads
 * the first failure. Only public functions of eventlog.h are used.
 */
#include "eventlog_mpi/eventlog_mpi.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DESCRIPTION = 160, PATH_BYTES = 4096 };

/* The head of a call, reduced by maximum: a hash of the call, its complement (all ranks agree if both maxima are one
 * hash's), and size - rank of the first rank that cannot take part, 0 for none. */
enum { HEAD_SAME, HEAD_OPPOSITE, HEAD_FAILED, HEAD };

/* one value on its way through the reduction */
struct reduced {
    double value;
    int64_t operation;
};

struct eventlog_mpi {
    MPI_Comm comm;
    MPI_Datatype item; /* struct reduced */
    int rank, size;
    enum eventlog_mpi_runs runs;
    double deadline;
    int broken; /* a wait reached its deadline, or MPI failed: the state of the other ranks is unknown */
    struct eventlog_writer *writer;

    /* What MPI reads and writes. After an abandoned wait MPI may use them forever, so they are not on a stack, and a
     * broken log is never freed. */
    uint64_t mine[HEAD], all[HEAD];
    struct eventlog_error theirs;
    char first[DESCRIPTION], other[DESCRIPTION];
    struct reduced *values; /* room for this many; on rank 0 also for those of each rank, the first ones then reduced */
    size_t room;
};

static int fail(struct eventlog_error *error, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int fail(struct eventlog_error *error, int code, const char *format, ...)
{
    va_list args;

    if (error) {
        error->code = code;
        error->system = 0;
        va_start(args, format);
        vsnprintf(error->message, sizeof error->message, format, args);
        va_end(args);
    }
    return code;
}

/* FNV-1a. */
static uint64_t hash(const void *bytes, size_t n, uint64_t h)
{
    const unsigned char *b = bytes;

    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * 0x100000001b3u;
    return h;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int broken(struct eventlog_mpi *log, const char *what, struct eventlog_error *error)
{
    log->broken = 1;
    return fail(error, EVENTLOG_ERROR_IO, "rank %d of %d: MPI failed in %s", log->rank, log->size, what);
}

/* Waits for a collective: tests it a few times at once, then sleeps between tests, up to a millisecond. */
static int wait_for(struct eventlog_mpi *log, int rc, MPI_Request *request, const char *what,
                    struct eventlog_error *error)
{
    double end = now() + log->deadline;
    long pause = 20000;
    int done = 0;

    if (rc != MPI_SUCCESS)
        return broken(log, what, error);
    for (unsigned looks = 0;; looks++) {
        struct timespec t = { 0, pause };

        if (MPI_Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return broken(log, what, error);
        if (done)
            return EVENTLOG_OK;
        if (looks < 200)
            continue;
        if (log->deadline > 0 && now() > end) {
            log->broken = 1; /* the request stays open: MPI cannot cancel a collective */
            return fail(error, EVENTLOG_ERROR_IO, "rank %d of %d waited %g seconds for the other ranks in %s",
                        log->rank, log->size, log->deadline, what);
        }
        nanosleep(&t, NULL);
        pause = pause < 500000 ? pause * 2 : 1000000;
    }
}

static int broadcast(struct eventlog_mpi *log, void *bytes, int n, int from, const char *what,
                     struct eventlog_error *error)
{
    MPI_Request request;
    int rc = MPI_Ibcast(bytes, n, MPI_BYTE, from, log->comm, &request);

    return wait_for(log, rc, &request, what, error);
}

/* log->mine to log->all. */
static int maximum(struct eventlog_mpi *log, int n, const char *what, struct eventlog_error *error)
{
    MPI_Request request;
    int rc = MPI_Iallreduce(log->mine, log->all, n, MPI_UINT64_T, MPI_MAX, log->comm, &request);

    return wait_for(log, rc, &request, what, error);
}

/* A rank counted from the last one, so that the maximum is the first rank; 0: not this rank. */
static uint64_t reversed(const struct eventlog_mpi *log, int is)
{
    return is ? (uint64_t)(log->size - log->rank) : 0;
}

/* All ranks take the error of rank `from`. */
static int spread(struct eventlog_mpi *log, int from, const struct eventlog_error *mine, const char *what,
                  struct eventlog_error *error)
{
    struct eventlog_error *theirs = &log->theirs;
    int rc;

    memset(theirs, 0, sizeof *theirs);
    if (log->rank == from)
        *theirs = *mine;
    if ((rc = broadcast(log, theirs, (int)sizeof *theirs, from, what, error)) != EVENTLOG_OK)
        return rc;
    theirs->message[sizeof theirs->message - 1] = '\0';
    fail(error, theirs->code, "rank %d of %d: %.440s", from, log->size, theirs->message);
    if (error)
        error->system = theirs->system;
    return theirs->code;
}

/* The ranks make different calls: reports those of rank 0 and of the first rank that differs from it. */
static int tell_difference(struct eventlog_mpi *log, uint64_t same, const char *what, struct eventlog_error *error)
{
    int differs, rc;

    log->all[0] = same;
    if ((rc = broadcast(log, log->all, (int)sizeof *log->all, 0, what, error)) != EVENTLOG_OK)
        return rc;
    log->mine[0] = reversed(log, log->all[0] != same);
    if ((rc = maximum(log, 1, what, error)) != EVENTLOG_OK)
        return rc;
    differs = log->size - (int)log->all[0];
    snprintf(log->first, DESCRIPTION, "%s", what);
    snprintf(log->other, DESCRIPTION, "%s", what);
    if ((rc = broadcast(log, log->first, DESCRIPTION, 0, what, error)) != EVENTLOG_OK ||
        (rc = broadcast(log, log->other, DESCRIPTION, differs, what, error)) != EVENTLOG_OK)
        return rc;
    if (!strcmp(log->first, log->other))
        return fail(
            error, EVENTLOG_ERROR_ARGUMENT,
            "the ranks differ: rank 0 and rank %d call %.150s, but not with the same tags and operations after it",
            differs, log->first);
    return fail(error, EVENTLOG_ERROR_ARGUMENT, "the ranks differ: rank 0 calls %.150s; rank %d calls %.150s",
                log->first, differs, log->other);
}

/* The head of a call: OK on all ranks, or the same error on all. `what` describes the call and is hashed into it; rc
 * and mine say whether this rank can take part. */
static int begin(struct eventlog_mpi *log, const char *what, uint64_t same, int rc, const struct eventlog_error *mine,
                 struct eventlog_error *error)
{
    int waited;

    if (log->broken)
        return fail(error, EVENTLOG_ERROR_IO,
                    "rank %d of %d: an earlier call between the ranks failed; only closing is left", log->rank,
                    log->size);
    same = hash(what, strlen(what), same);
    log->mine[HEAD_SAME] = same;
    log->mine[HEAD_OPPOSITE] = ~same;
    log->mine[HEAD_FAILED] = reversed(log, rc != EVENTLOG_OK);
    if ((waited = maximum(log, HEAD, what, error)) != EVENTLOG_OK)
        return waited;
    if (log->all[HEAD_FAILED])
        return spread(log, log->size - (int)log->all[HEAD_FAILED], mine, what, error);
    if (log->all[HEAD_SAME] != ~log->all[HEAD_OPPOSITE])
        return tell_difference(log, same, what, error);
    return EVENTLOG_OK;
}

/* The end of a call: the error of the first rank that failed goes to all. */
static int end(struct eventlog_mpi *log, const char *what, int rc, const struct eventlog_error *mine,
               struct eventlog_error *error)
{
    int waited;

    log->mine[0] = reversed(log, rc != EVENTLOG_OK);
    if ((waited = maximum(log, 1, what, error)) != EVENTLOG_OK || !log->all[0])
        return waited;
    return spread(log, log->size - (int)log->all[0], mine, what, error);
}

/* ---- open and close ---------------------------------------------------------------------------------------------- */

static double combine_two(double a, double b, int64_t operation)
{
    if (isnan(a) || isnan(b))
        return NAN;
    if (operation == EVENTLOG_MPI_MIN)
        return a < b ? a : b;
    if (operation == EVENTLOG_MPI_MAX)
        return a > b ? a : b;
    return a + b;
}

static int open_writer(struct eventlog_mpi *log, const char *directory, const struct eventlog_writer_options *options,
                       struct eventlog_error *error)
{
    char path[PATH_BYTES];

    if (log->runs == EVENTLOG_MPI_REDUCED && log->rank > 0)
        return EVENTLOG_OK;
    if (!directory)
        return fail(error, EVENTLOG_ERROR_ARGUMENT, "no directory to write to");
    if (log->runs == EVENTLOG_MPI_REDUCED)
        return eventlog_writer_open(&log->writer, directory, options, error);
    if (snprintf(path, sizeof path, "%s/rank-%d", directory, log->rank) >= (int)sizeof path)
        return fail(error, EVENTLOG_ERROR_ARGUMENT, "%.200s...: path too long", directory);
    return eventlog_writer_open(&log->writer, path, options, error);
}

static void release(struct eventlog_mpi *log)
{
    int finalized = 0;

    if (log->broken)
        return;
    MPI_Finalized(&finalized);
    if (!finalized && log->item != MPI_DATATYPE_NULL)
        MPI_Type_free(&log->item);
    if (!finalized && log->comm != MPI_COMM_NULL)
        MPI_Comm_free(&log->comm);
    free(log->values);
    free(log);
}

/* Checks that need no other rank, and no memory that one rank alone could lack. */
static int check_open(MPI_Comm comm, struct eventlog_error *error)
{
    int up = 0, down = 0, inter = 0;

    if (MPI_Initialized(&up) != MPI_SUCCESS || !up || MPI_Finalized(&down) != MPI_SUCCESS || down)
        return fail(error, EVENTLOG_ERROR_ARGUMENT,
                    "MPI is not running; open a log after MPI_Init and before MPI_Finalize");
    if (comm == MPI_COMM_NULL || MPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter)
        return fail(error, EVENTLOG_ERROR_ARGUMENT, "the communicator must be an intracommunicator");
    return EVENTLOG_OK;
}

int eventlog_mpi_open(struct eventlog_mpi **out, MPI_Comm comm, const char *directory,
                      const struct eventlog_mpi_options *options, struct eventlog_error *error)
{
    static const struct eventlog_mpi_options defaults;
    struct eventlog_error mine = { EVENTLOG_OK, 0, "" };
    struct eventlog_mpi *log;
    int rc = check_open(comm, error), any = 0, missing;

    *out = NULL;
    if (rc != EVENTLOG_OK)
        return rc;
    log = calloc(1, sizeof *log);
    missing = !log;
    if (MPI_Allreduce(&missing, &any, 1, MPI_INT, MPI_MAX, comm) != MPI_SUCCESS || any) {
        free(log);
        return any ? fail(error, EVENTLOG_ERROR_MEMORY, "no memory on one of the ranks for its log")
                   : fail(error, EVENTLOG_ERROR_IO, "MPI failed in opening a log");
    }
    options = options ? options : &defaults;
    log->runs = options->runs;
    log->deadline = options->deadline_seconds > 0 ? options->deadline_seconds : 0;
    log->comm = MPI_COMM_NULL;
    log->item = MPI_DATATYPE_NULL;
    if (MPI_Comm_dup(comm, &log->comm) != MPI_SUCCESS ||
        MPI_Comm_set_errhandler(log->comm, MPI_ERRORS_RETURN) != MPI_SUCCESS ||
        MPI_Comm_rank(log->comm, &log->rank) != MPI_SUCCESS || MPI_Comm_size(log->comm, &log->size) != MPI_SUCCESS ||
        MPI_Type_contiguous((int)sizeof(struct reduced), MPI_BYTE, &log->item) != MPI_SUCCESS ||
        MPI_Type_commit(&log->item) != MPI_SUCCESS) {
        release(log);
        return fail(error, EVENTLOG_ERROR_IO, "MPI failed in opening a log");
    }
    if (log->runs != EVENTLOG_MPI_REDUCED && log->runs != EVENTLOG_MPI_RUN_PER_RANK)
        rc = fail(&mine, EVENTLOG_ERROR_ARGUMENT, "options.runs is %d, which is not an eventlog_mpi_runs",
                  (int)log->runs);
    if ((rc = begin(log, log->runs == EVENTLOG_MPI_REDUCED ? "open, reduced" : "open, a run per rank", 0, rc, &mine,
                    error)) == EVENTLOG_OK)
        rc = end(log, "open", open_writer(log, directory, options->writer, &mine), &mine, error);
    if (rc != EVENTLOG_OK) {
        eventlog_writer_close(log->writer, NULL);
        release(log);
        return rc;
    }
    *out = log;
    return EVENTLOG_OK;
}

int eventlog_mpi_open_fortran(struct eventlog_mpi **out, MPI_Fint comm, const char *directory,
                              const struct eventlog_mpi_options *options, struct eventlog_error *error)
{
    return eventlog_mpi_open(out, MPI_Comm_f2c(comm), directory, options, error);
}

int eventlog_mpi_close(struct eventlog_mpi *log, struct eventlog_error *error)
{
    struct eventlog_error mine = { EVENTLOG_OK, 0, "" };
    int finalized = 0, rc, written;

    if (!log)
        return EVENTLOG_OK;
    MPI_Finalized(&finalized);
    if (finalized || log->broken) { /* each for itself */
        rc = eventlog_writer_close(log->writer, error);
    } else {
        rc = begin(log, "close", 0, EVENTLOG_OK, &mine, error);
        written = eventlog_writer_close(log->writer, &mine);
        if (rc == EVENTLOG_OK)
            rc = end(log, "close", written, &mine, error);
    }
    /* A rank that closes while others do something else leaves them: freeing the communicator would wait for them. */
    log->broken |= rc == EVENTLOG_ERROR_ARGUMENT;
    release(log);
    return rc;
}

struct eventlog_writer *eventlog_mpi_writer(struct eventlog_mpi *log)
{
    return log->writer;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static const char *const operations[] = { "mean", "sum", "min", "max" };

static int check_scalars(const struct eventlog_mpi_scalar *scalars, size_t n, struct eventlog_error *error)
{
    if (!scalars || !n || n > INT_MAX)
        return fail(error, EVENTLOG_ERROR_ARGUMENT, "%zu scalars; at least one is needed", scalars ? n : (size_t)0);
    for (size_t i = 0; i < n; i++) {
        if (!scalars[i].tag || !*scalars[i].tag)
            return fail(error, EVENTLOG_ERROR_ARGUMENT, "scalar %zu of %zu has no tag", i + 1, n);
        if ((unsigned)scalars[i].operation > EVENTLOG_MPI_MAX)
            return fail(error, EVENTLOG_ERROR_ARGUMENT, "scalar '%.200s': %d is not an operation", scalars[i].tag,
                        (int)scalars[i].operation);
    }
    return EVENTLOG_OK;
}

static int write_scalars(struct eventlog_mpi *log, const struct eventlog_mpi_scalar *scalars,
                         const struct reduced *values, size_t n, int64_t step, double wall_time,
                         struct eventlog_error *error)
{
    int rc = EVENTLOG_OK;

    for (size_t i = 0; i < n && rc == EVENTLOG_OK; i++) {
        double value = values ? values[i].value : scalars[i].value;

        if (values && scalars[i].operation == EVENTLOG_MPI_MEAN)
            value /= log->size;
        rc = eventlog_writer_scalar(log->writer, scalars[i].tag, step, wall_time, (float)value, error);
    }
    return rc;
}

/* This rank's values, ready to be reduced. */
static int take_values(struct eventlog_mpi *log, const struct eventlog_mpi_scalar *scalars, size_t n,
                       struct eventlog_error *error)
{
    if (log->broken)
        return EVENTLOG_OK;
    if (n > log->room) {
        struct reduced *larger = calloc(n, (log->rank == 0 ? 1 + (size_t)log->size : 1) * sizeof *larger);

        if (!larger)
            return fail(error, EVENTLOG_ERROR_MEMORY, "no memory for %zu scalars", n);
        free(log->values);
        log->values = larger;
        log->room = n;
    }
    for (size_t i = 0; i < n; i++)
        log->values[i] = (struct reduced){ scalars[i].value, scalars[i].operation };
    return EVENTLOG_OK;
}

/* In the order of ranks: each MPI has other orders in its own reductions, which the standard allows. */
static int reduce(struct eventlog_mpi *log, size_t n, const char *what, struct eventlog_error *error)
{
    struct reduced *all = log->values + n;
    MPI_Request request;
    int rc = MPI_Igather(log->values, (int)n, log->item, log->rank == 0 ? all : NULL, (int)n, log->item, 0, log->comm,
                         &request);

    if ((rc = wait_for(log, rc, &request, what, error)) != EVENTLOG_OK || log->rank > 0)
        return rc;
    for (size_t i = n; i < n * (size_t)log->size; i++)
        all[i % n].value = combine_two(all[i % n].value, all[i].value, all[i].operation);
    return EVENTLOG_OK;
}

int eventlog_mpi_scalars(struct eventlog_mpi *log, const struct eventlog_mpi_scalar *scalars, size_t n, int64_t step,
                         double wall_time, struct eventlog_error *error)
{
    struct eventlog_error mine = { EVENTLOG_OK, 0, "" };
    char what[DESCRIPTION];
    uint64_t same = hash(&n, sizeof n, 0xcbf29ce484222325u);
    int rc = check_scalars(scalars, n, &mine);

    if (!log)
        return fail(error, EVENTLOG_ERROR_ARGUMENT, "no log to write to");
    if (log->runs == EVENTLOG_MPI_RUN_PER_RANK) {
        if (rc == EVENTLOG_OK)
            return write_scalars(log, scalars, NULL, n, step, wall_time, error);
        return fail(error, rc, "%s", mine.message);
    }
    snprintf(what, sizeof what, "step %lld of %zu scalars", (long long)step, n);
    if (rc == EVENTLOG_OK) {
        for (size_t i = 0; i < n; i++) {
            same = hash(scalars[i].tag, strlen(scalars[i].tag) + 1, same);
            same = hash(&scalars[i].operation, sizeof scalars[i].operation, same);
        }
        snprintf(what, sizeof what, "step %lld of %zu scalar%s '%.80s' (%s)%s", (long long)step, n, n > 1 ? "s," : "",
                 scalars[0].tag, operations[scalars[0].operation], n > 1 ? " first" : "");
        rc = take_values(log, scalars, n, &mine);
    }
    if ((rc = begin(log, what, same, rc, &mine, error)) == EVENTLOG_OK &&
        (rc = reduce(log, n, what, error)) == EVENTLOG_OK) {
        if (log->rank == 0)
            rc = write_scalars(log, scalars, log->values + n, n, step, wall_time, &mine);
        rc = end(log, what, rc, &mine, error);
    }
    return rc;
}

int eventlog_mpi_scalar(struct eventlog_mpi *log, const char *tag, int64_t step, double wall_time, double value,
                        enum eventlog_mpi_operation operation, struct eventlog_error *error)
{
    const struct eventlog_mpi_scalar scalar = { tag, value, operation };

    return eventlog_mpi_scalars(log, &scalar, 1, step, wall_time, error);
}

int eventlog_mpi_flush(struct eventlog_mpi *log, struct eventlog_error *error)
{
    struct eventlog_error mine = { EVENTLOG_OK, 0, "" };
    int rc;

    if (!log)
        return fail(error, EVENTLOG_ERROR_ARGUMENT, "no log to flush");
    if (log->runs == EVENTLOG_MPI_RUN_PER_RANK)
        return eventlog_writer_flush(log->writer, error);
    if ((rc = begin(log, "flush", 0, EVENTLOG_OK, &mine, error)) == EVENTLOG_OK)
        rc = end(log, "flush", log->rank == 0 ? eventlog_writer_flush(log->writer, &mine) : EVENTLOG_OK, &mine, error);
    return rc;
}
