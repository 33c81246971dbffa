/*
 * mpirun_line.h - the command line of mpirun, Open MPI's or MPICH's, for a job on several hosts. Pure.
 *
 * Rank by rank the line names the host (--map-by seq --host a,a,b,... or -hosts a,a,b,...): first the workers, as the
 * list of hosts has them, so that rank 0 is on its first host whichever host mpirun runs on; then the servers, one on
 * each host in turn. A rank is bound to no core: the list may have more ranks than cores, and a rank has more than one
 * thread. All ranks run in one directory and with what Open MPI does not forward by itself. Over several hosts Open MPI
 * notices a host that does not answer after 6 to 11 seconds, not after 8 minutes, unless the environment has the
 * variable of the user's for that: OMPI_MCA_oob_tcp_keepalive_time, in Open MPI 5 PRTE_MCA_oob_tcp_keepalive_time,
 * since Open MPI 6 PRTE_MCA_prte_keepalive_time. Source: mpirun(1) of Open MPI 4.1 and 5.0, prte_info --all of PRRTE
 * 3.0 (Open MPI 5) and 5.0rc1 (Open MPI 6), mpiexec -help of MPICH 4.2.
 */
#ifndef TRAINER_LAUNCH_MPIRUN_LINE_H
#define TRAINER_LAUNCH_MPIRUN_LINE_H

#include "base/buffer.h"
#include "base/error.h"
#include "trainer/launch/resource_info.h"

#include <stddef.h>

enum mpirun_kind {
    MPIRUN_OPEN_MPI_4,
    MPIRUN_OPEN_MPI_5, /* it starts PRRTE */
    MPIRUN_OPEN_MPI_6, /* and later */
    MPIRUN_HYDRA,      /* MPICH's */
};

/* Which one prints this with --version. What is not known is taken for Open MPI 4's. */
enum mpirun_kind mpirun_kind(const char *version);

struct mpirun_job {
    enum mpirun_kind mpirun;
    const struct resource_info *hosts;
    int servers;                     /* beside the workers */
    const char *program, *directory; /* absolute paths, the same on all hosts */
    const char *const *options;      /* of the program */
    size_t option_count;
    const char *(*environment)(const char *name); /* as getenv(); NULL: not set */
};

/* Sets *out to the words, NULL at the end. One block of memory, yours: free() it. The options, program and directory
 * are borrowed. ERR_NOMEM. */
int mpirun_line(const char ***out, const struct mpirun_job *job, struct error *e);

/* Appends words that end with NULL as a line for sh, which reads back the same words; no newline. */
void mpirun_line_quoted(struct buffer *out, const char *const *words);

#endif
