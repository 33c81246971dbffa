/* ranks.c - participants that are MPI ranks: the only file that includes MPI's header. */
#include "trainer/collective/launcher_end.h"
#include "trainer/collective/participants.h"

#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pid_t launcher; /* that started this rank */

_Static_assert(sizeof(MPI_Request) <= sizeof(uint64_t), "a handle holds a request of this MPI");

static int ranks_failed(int rc, struct error *e, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int n = 0;

    if (rc == MPI_SUCCESS)
        return OK;
    if (MPI_Error_string(rc, text, &n) != MPI_SUCCESS)
        n = 0;
    return error_set(e, ERR_PEER, "%s: MPI says %.*s", what, n, text);
}

static void keep(uint64_t *handle, MPI_Request request)
{
    *handle = 0;
    memcpy(handle, &request, sizeof request);
}

static int ranks_send(struct participants *p, int to, int tag, const void *bytes, size_t n, uint64_t *handle,
                      struct error *e)
{
    MPI_Request request;
    int rc = ranks_failed(MPI_Isend(bytes, (int)n, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request), e, "sending");

    (void)p;
    if (rc == OK)
        keep(handle, request);
    return rc;
}

static int ranks_receive(struct participants *p, int from, int tag, void *bytes, size_t n, uint64_t *handle,
                         struct error *e)
{
    MPI_Request request;
    int source = from == PARTICIPANT_ANY ? MPI_ANY_SOURCE : from;
    int rc = ranks_failed(MPI_Irecv(bytes, (int)n, MPI_BYTE, source, tag, MPI_COMM_WORLD, &request), e, "receiving");

    (void)p;
    if (rc == OK)
        keep(handle, request);
    return rc;
}

static int ranks_done(struct participants *p, uint64_t *handle, int *source, struct error *e)
{
    MPI_Request request;
    MPI_Status status;
    int done = 0, rc;

    (void)p;
    memcpy(&request, handle, sizeof request);
    status.MPI_SOURCE = -1;
    if ((rc = ranks_failed(MPI_Test(&request, &done, &status), e, "a message")) < 0)
        return rc;
    *source = status.MPI_SOURCE;
    return done;
}

static void ranks_cancel(struct participants *p, uint64_t *handle)
{
    MPI_Request request;

    (void)p;
    memcpy(&request, handle, sizeof request);
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void ranks_abort(struct participants *p, int status)
{
    (void)p;
    launcher_end_later(LAUNCHER_END_MILLISECONDS);
    MPI_Abort(MPI_COMM_WORLD, status);
}

/* By what Open MPI's launchers say of each rank. */
static int on_several_hosts(int size)
{
    const char *here = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");

    return here && atoi(here) < size;
}

static void ranks_end(struct participants *p)
{
    if (getppid() == launcher) { /* MPI would wait for one that is gone */
        MPI_Finalize();
        /* All ranks have come so far. Launchers still tell each other that they end, which a cut may prevent; on one
         * host nothing can. */
        if (on_several_hosts(p->size))
            launcher_end_later(LAUNCHER_END_MILLISECONDS);
    }
    free(p);
}

static const struct participants_operations operations = {
    .send = ranks_send,
    .receive = ranks_receive,
    .done = ranks_done,
    .cancel = ranks_cancel,
    .abort = ranks_abort,
    .end = ranks_end,
};

/* ERR_ARG: a launcher of another MPI has started this process, which therefore sees no other rank. */
static int see_others(struct error *e)
{
    const char *open_mpi = getenv("OMPI_COMM_WORLD_SIZE"), *started = open_mpi ? open_mpi : getenv("PMI_SIZE");
    char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int size, length;

    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > 1 || !started || atoi(started) <= 1)
        return OK;
    MPI_Get_library_version(library, &length);
    return error_set(e, ERR_ARG,
                     "%s ranks were started, but they do not see each other: this program was built with %.*s; start "
                     "it with the mpirun of that",
                     started, (int)strcspn(library, ",\n"), library);
}

/* ---- without the launcher ----------------------------------------------------------------------------------------
 * Open MPI 6 ends a rank in its next call of MPI after mpirun or its daemon has gone, by a handler of last resort for
 * PMIx's event of that. This one comes before, so the rank lives on, sees it and saves (world_orphaned). PMIx, which
 * Open MPI 5 and later are linked with, promises these calls and numbers: PMIx Standard, "Event notification". */

enum { PMIX_LOST_CONNECTION = -61, PMIX_ACTION_COMPLETE = -334 };
typedef void pmix_answer(int status, void *results, size_t count, void *done, void *done_data, void *data);
typedef void pmix_handler(size_t id, int status, const void *source, void *facts, size_t fact_count, void *results,
                          size_t result_count, pmix_answer *answer, void *data);
typedef int pmix_registers(int *events, size_t count, void *facts, size_t fact_count, pmix_handler *handler, void *done,
                           void *data);

static void live_on(size_t id, int status, const void *source, void *facts, size_t fact_count, void *results,
                    size_t result_count, pmix_answer *answer, void *data)
{
    (void)id, (void)status, (void)source, (void)facts, (void)fact_count, (void)results, (void)result_count;
    if (answer)
        answer(PMIX_ACTION_COMPLETE, NULL, 0, NULL, NULL, data);
}

static void outlive_launcher(void)
{
    int event = PMIX_LOST_CONNECTION;
    pmix_registers *registers;

    *(void **)&registers = dlsym(RTLD_DEFAULT, "PMIx_Register_event_handler");
    if (registers)
        registers(&event, 1, NULL, 0, live_on, NULL, NULL);
}

int ranks_start(struct participants **out, struct error *e)
{
    struct participants *p;
    int provided, rc;

    launcher = getppid();
    /* Who waits here sleeps between two looks. With more ranks than cores Open MPI would yield at each look besides,
     * and Linux (since 6.18) lets who yields forfeit the time it was owed: a server that needs 2 % of a core would run
     * only after the computing workers' slices. Open MPI 5 yields all the same. */
    setenv("OMPI_MCA_mpi_yield_when_idle", "0", 0);
    rc = ranks_failed(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided), e, "starting MPI");

    if (rc < 0 || (rc = see_others(e)) < 0)
        return rc;
    if (!(p = calloc(1, sizeof *p)))
        return error_memory(e, NULL, "to start as a rank");
    p->operations = &operations;
    outlive_launcher();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* nobody else in this program calls MPI */
    MPI_Comm_rank(MPI_COMM_WORLD, &p->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &p->size);
    *out = p;
    return OK;
}
