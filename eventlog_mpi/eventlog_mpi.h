/*
 * eventlog_mpi.h - curves of a job of many MPI ranks: numbers are reduced over a communicator and written once, by its
 * rank 0, or every rank writes a run of its own. A library by itself, libeventlog_mpi, so that whoever logs from one
 * process does not link MPI. Usable from C11 and C++.
 *
 * Errors and sentences are those of eventlog.h. All functions but eventlog_mpi_writer() are collective, as MPI's own:
 * every rank of the communicator calls them, in the same order (with EVENTLOG_MPI_RUN_PER_RANK only open and close).
 * They return the same code and sentence on every rank, also where ranks call with different tags, steps, operations or
 * counts, or different functions: then nothing is written, and the next call is fine again. Each call first reduces 24
 * bytes by which that is seen.
 *
 * Ranks that wait sleep. A rank that never calls, or has closed already, is waited for without end, or for
 * options.deadline_seconds: then the waiting ranks get EVENTLOG_ERROR_IO, and so does every later call on them but
 * close, which then writes what this rank has buffered and leaves a few hundred bytes with MPI. Opening has no
 * deadline: it makes a communicator, as MPI_Comm_dup() does.
 *
 * MPI is initialized before open and finalized after close. The communicator is duplicated, so messages of the program
 * and ours do not meet. One struct is for one thread at a time; with more threads MPI_THREAD_SERIALIZED is needed.
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

enum eventlog_mpi_operation { /* over the values of all ranks; a NaN of any of them gives NaN */
    EVENTLOG_MPI_MEAN = 0,
    EVENTLOG_MPI_SUM = 1,
    EVENTLOG_MPI_MIN = 2,
    EVENTLOG_MPI_MAX = 3,
};

enum eventlog_mpi_runs {
    EVENTLOG_MPI_REDUCED = 0,      /* rank 0 writes into the directory itself */
    EVENTLOG_MPI_RUN_PER_RANK = 1, /* every rank writes its own values, unreduced, into <directory>/rank-<rank> */
};

struct eventlog_mpi_options { /* all zero, or NULL: the defaults */
    enum eventlog_mpi_runs runs;                  /* default EVENTLOG_MPI_REDUCED; the same on every rank */
    double deadline_seconds;                      /* how long a call waits for other ranks; default 0: without end */
    const struct eventlog_writer_options *writer; /* of the writers behind; default NULL */
    uint64_t reserved[8]; /* zero; later options come out of it, and what an older library does not know it refuses */
};

struct eventlog_mpi_scalar {
    const char *tag; /* UTF-8 */
    double value;    /* this rank's; reduced in double precision in the order of ranks, written as a float */
    enum eventlog_mpi_operation operation;
};

/* Opens a log for the ranks of comm, an intracommunicator. directory is looked at where something is written: on rank
 * 0, or on all. On OK *out is yours until eventlog_mpi_close(); otherwise *out is NULL, on every rank. */
int eventlog_mpi_open(struct eventlog_mpi **out, MPI_Comm comm, const char *directory,
                      const struct eventlog_mpi_options *options, struct eventlog_error *error);
/* The same for a communicator of Fortran's, an INTEGER as `use mpi` has it. */
int eventlog_mpi_open_fortran(struct eventlog_mpi **out, MPI_Fint comm, const char *directory,
                              const struct eventlog_mpi_options *options, struct eventlog_error *error);

/* n > 0 points at one step, reduced together. Rank 0's wall_time counts (0: now). When rank 0 cannot write one of them,
 * those before it stay and all ranks get its error. With EVENTLOG_MPI_RUN_PER_RANK not collective: the values are
 * written as they are, and errors are each rank's own. */
int eventlog_mpi_scalars(struct eventlog_mpi *log, const struct eventlog_mpi_scalar *scalars, size_t n, int64_t step,
                         double wall_time, struct eventlog_error *error);

/* The same for one. */
int eventlog_mpi_scalar(struct eventlog_mpi *log, const char *tag, int64_t step, double wall_time, double value,
                        enum eventlog_mpi_operation operation, struct eventlog_error *error);

/* Hands what is buffered to the operating system. With EVENTLOG_MPI_RUN_PER_RANK not collective. */
int eventlog_mpi_flush(struct eventlog_mpi *log, struct eventlog_error *error);

/* The writer of this rank, for other kinds of values than scalars; NULL on ranks that have none. Borrowed until close;
 * not collective. */
struct eventlog_writer *eventlog_mpi_writer(struct eventlog_mpi *log);

/* Writes what is buffered and frees log, on all ranks also when it fails. NULL is fine where it is NULL on all. */
int eventlog_mpi_close(struct eventlog_mpi *log, struct eventlog_error *error);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
