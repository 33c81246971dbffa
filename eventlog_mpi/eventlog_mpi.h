/*
 * eventlog_mpi.h - writes the curves of a job with many MPI ranks: scalars are reduced over a communicator and written
 * once, by its rank 0, or every rank writes a run of its own. This is a separate library, libeventlog_mpi, so that
 * programs of one process need not link MPI. Usable from C11 and C++.
 *
 * Errors are those of eventlog.h. All functions except eventlog_mpi_writer() are collective, as in MPI: every rank of
 * the communicator calls them, in the same order (with EVENTLOG_MPI_RUN_PER_RANK only open and close). They return the
 * same code and message on every rank, even if ranks call with different tags, steps, operations or counts, or call
 * different functions: then nothing is written, and the next call works again. To detect that, each call first reduces
 * 24 bytes.
 *
 * Waiting ranks sleep. For a rank that never calls, or has already closed, the others wait forever, or for
 * options.deadline_seconds: then they get EVENTLOG_ERROR_IO, and so does every later call on them except close, which
 * writes what this rank has buffered and leaves a few hundred bytes to MPI. Opening has no deadline: it makes a
 * communicator, as MPI_Comm_dup() does.
 *
 * Initialize MPI before open and finalize it after close. The communicator is duplicated, so our messages do not mix
 * with the program's. One struct is for one thread at a time; a program with several threads needs
 * MPI_THREAD_SERIALIZED.
 */
#ifndef EVENTLOG_MPI_EVENTLOG_MPI_H
#define EVENTLOG_MPI_EVENTLOG_MPI_H

#include "eventlog/eventlog.h"

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

struct eventlog_mpi;

/* over the values of all ranks; a NaN on any rank gives NaN */
enum eventlog_mpi_operation {
    EVENTLOG_MPI_MEAN = 0,
    EVENTLOG_MPI_SUM = 1,
    EVENTLOG_MPI_MIN = 2,
    EVENTLOG_MPI_MAX = 3,
};

enum eventlog_mpi_runs {
    EVENTLOG_MPI_REDUCED = 0,      /* rank 0 writes into the directory itself */
    EVENTLOG_MPI_RUN_PER_RANK = 1, /* every rank writes its own values, unreduced, into <directory>/rank-<rank> */
};

/* all zero, or NULL: the defaults */
struct eventlog_mpi_options {
    enum eventlog_mpi_runs runs;                  /* default EVENTLOG_MPI_REDUCED; the same on every rank */
    double deadline_seconds;                      /* how long a call waits for other ranks; default 0: forever */
    const struct eventlog_writer_options *writer; /* options of the event writers; default NULL */
};

struct eventlog_mpi_scalar {
    const char *tag; /* UTF-8 */
    double value;    /* of this rank; reduced in double precision in the order of ranks, written as a float */
    enum eventlog_mpi_operation operation;
};

/* Opens a log for the ranks of comm, an intracommunicator. directory is used only on ranks that write: rank 0, or all.
 * On OK *out is yours until eventlog_mpi_close(); otherwise *out is NULL, on every rank. */
int eventlog_mpi_open(struct eventlog_mpi **out, MPI_Comm comm, const char *directory,
                      const struct eventlog_mpi_options *options, struct eventlog_error *error);
/* The same for a Fortran communicator, an INTEGER as in `use mpi`. */
int eventlog_mpi_open_fortran(struct eventlog_mpi **out, MPI_Fint comm, const char *directory,
                              const struct eventlog_mpi_options *options, struct eventlog_error *error);

/* Writes n > 0 scalars at one step, reduced together. wall_time counts on rank 0 (0: now). If rank 0 cannot write one
 * of them, those before it stay written and all ranks get its error. With EVENTLOG_MPI_RUN_PER_RANK not collective:
 * each rank writes its own values and gets its own errors. */
int eventlog_mpi_scalars(struct eventlog_mpi *log, const struct eventlog_mpi_scalar *scalars, size_t n, int64_t step,
                         double wall_time, struct eventlog_error *error);

/* The same for one scalar. */
int eventlog_mpi_scalar(struct eventlog_mpi *log, const char *tag, int64_t step, double wall_time, double value,
                        enum eventlog_mpi_operation operation, struct eventlog_error *error);

/* Passes what is buffered to the operating system. With EVENTLOG_MPI_RUN_PER_RANK not collective. */
int eventlog_mpi_flush(struct eventlog_mpi *log, struct eventlog_error *error);

/* The event writer of this rank, for values other than scalars; NULL on ranks without one. Borrowed until close; not
 * collective. */
struct eventlog_writer *eventlog_mpi_writer(struct eventlog_mpi *log);

/* Writes what is buffered and frees log, on all ranks, even if it fails. NULL is fine if it is NULL on all ranks. */
int eventlog_mpi_close(struct eventlog_mpi *log, struct eventlog_error *error);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
