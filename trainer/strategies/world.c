#include "trainer/strategies/world.h"

#include "base/clock.h"
#include "base/number.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { PAUSE_SHORTEST = 20000, PAUSE_LONGEST = 500000 }; /* nanoseconds */

struct world {
    int launched, rank, size, one_host;
    double deadline;
    pid_t parent;
    void (*idle)(void *context);
    void *idle_context;
    MPI_Comm comm;
};

_Static_assert(sizeof(MPI_Request) <= sizeof(uint64_t), "a message holds a request of this MPI");

void patience_init(struct patience *p, struct world *w, double limit)
{
    p->world = w;
    p->limit = limit;
    p->waited = 0;
    p->nanoseconds = PAUSE_SHORTEST;
    p->last = clock_monotonic();
}

void patience_calm(struct patience *p)
{
    patience_init(p, p->world, p->limit);
}

int patience_spend(struct patience *p)
{
    double now = clock_monotonic(), passed = now - p->last;

    if (p->world->idle)
        p->world->idle(p->world->idle_context);
    p->last = now;
    p->waited += passed < 0.1 ? passed : 0.1;
    return p->waited <= p->limit;
}

int patience_pause(struct patience *p)
{
    struct timespec pause = { 0, p->nanoseconds };

    nanosleep(&pause, NULL);
    p->nanoseconds = p->nanoseconds < PAUSE_LONGEST / 2 ? p->nanoseconds * 2 : PAUSE_LONGEST;
    return patience_spend(p);
}

/* Without these variables nobody started several of us, and MPI's start-up (0.1 s and more) is not needed. */
static int launched(void)
{
    static const char *const names[] = { "OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE",
                                         "MPI_LOCALNRANKS" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]))
            return 1;
    return 0;
}

static int failed(int rc, struct error *e, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int n = 0;

    if (rc == MPI_SUCCESS)
        return OK;
    if (MPI_Error_string(rc, text, &n) != MPI_SUCCESS)
        n = 0;
    return error_set(e, ERR_PEER, "%s: MPI says %.*s", what, n, text);
}

static int start(struct world *w, struct error *e)
{
    MPI_Comm host = MPI_COMM_NULL;
    int provided, n = 1, rc;

    if ((rc = failed(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided), e, "starting MPI")) < 0)
        return rc;
    if ((rc = failed(MPI_Comm_dup(MPI_COMM_WORLD, &w->comm), e, "starting MPI")) < 0)
        return rc;
    MPI_Comm_set_errhandler(w->comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(w->comm, &w->rank);
    MPI_Comm_size(w->comm, &w->size);
    rc = failed(MPI_Comm_split_type(w->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host), e,
                "finding the ranks of this host");
    if (rc < 0)
        return rc;
    MPI_Comm_size(host, &n);
    MPI_Comm_free(&host);
    w->one_host = n == w->size;
    return OK;
}

int world_open(struct world **out, struct error *e)
{
    struct world *w = calloc(1, sizeof *w);
    int alone, all;

    if (!w)
        return error_set(e, ERR_NOMEM, "no memory to start");
    w->size = w->one_host = 1;
    w->deadline = 60;
    w->launched = launched();
    w->parent = getppid();
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); /* else a pause of 20 us takes 70 */
    if (w->launched) {
        int rc = start(w, e);

        if (rc < 0) {
            free(w);
            return rc;
        }
        /* Hosts may hold different numbers of ranks: shared memory is for when every rank sees all others. */
        alone = w->one_host;
        if (MPI_Allreduce(&alone, &all, 1, MPI_INT, MPI_MIN, w->comm) == MPI_SUCCESS)
            w->one_host = all;
    }
    *out = w;
    return OK;
}

void world_close(struct world *w)
{
    if (!w)
        return;
    if (w->launched) {
        MPI_Comm_free(&w->comm);
        MPI_Finalize();
    }
    free(w);
}

void world_abort(struct world *w, int status)
{
    if (w && w->launched)
        MPI_Abort(MPI_COMM_WORLD, status);
    _Exit(status);
}

int world_rank(const struct world *w)
{
    return w->rank;
}

int world_size(const struct world *w)
{
    return w->size;
}

int world_one_host(const struct world *w)
{
    return w->one_host;
}

int world_orphaned(const struct world *w)
{
    return w->launched && getppid() != w->parent;
}

int world_watched(const struct world *w)
{
    char link[64], target[64];
    ssize_t n;

    snprintf(link, sizeof link, "/proc/%ld/fd/2", (long)w->parent);
    n = w->launched ? readlink(link, target, sizeof target - 1) : -1;
    target[n > 0 ? n : 0] = '\0';
    return !strncmp(target, "/dev/pts/", 9) || !strncmp(target, "/dev/tty", 8);
}

double world_grace(const struct world *w)
{
    const char *said = getenv("OMPI_MCA_" WORLD_GRACE_PARAMETER);
    int64_t seconds = 1; /* Open MPI's default */

    if (!w->launched || !getenv("OMPI_COMM_WORLD_SIZE"))
        return 0;
    if (said)
        number_parse_int(said, &seconds);
    return (double)seconds;
}

void world_set_idle(struct world *w, void (*idle)(void *context), void *context)
{
    w->idle = idle;
    w->idle_context = context;
}

void world_set_deadline(struct world *w, double seconds)
{
    w->deadline = seconds;
}

double world_deadline(const struct world *w)
{
    return w->deadline;
}

/* Waits for a collective operation that was started. */
static int complete(struct world *w, int rc, MPI_Request *request, const char *what, struct error *e)
{
    struct patience p;
    int done = 0;

    if ((rc = failed(rc, e, what)) < 0)
        return rc;
    patience_init(&p, w, w->deadline);
    for (;;) {
        if ((rc = failed(MPI_Test(request, &done, MPI_STATUS_IGNORE), e, what)) < 0 || done)
            return rc;
        if (!patience_pause(&p))
            return error_set(e, ERR_PEER, "rank %d waited %g s for the other ranks at the start or end (%s)", w->rank,
                             w->deadline, what);
    }
}

int world_agree(struct world *w, int status, struct error *e)
{
    int mine = status < 0 ? w->rank : INT_MAX, lowest = INT_MAX, rc;
    struct error worst = { status, 0, "" };
    MPI_Request request;

    if (w->size == 1)
        return status;
    rc = complete(w, MPI_Iallreduce(&mine, &lowest, 1, MPI_INT, MPI_MIN, w->comm, &request), &request,
                  "agreeing on errors", e);
    if (rc < 0 || lowest == INT_MAX)
        return rc;
    if (lowest == w->rank && e)
        worst = *e;
    else
        snprintf(worst.message, sizeof worst.message, "rank %d failed", lowest);
    worst.code = status < 0 ? status : ERR_PEER;
    rc = complete(w, MPI_Ibcast(&worst, sizeof worst, MPI_BYTE, lowest, w->comm, &request), &request,
                  "agreeing on errors", e);
    if (rc < 0)
        return rc;
    if (e)
        *e = worst;
    return worst.code;
}

int world_broadcast(struct world *w, void *bytes, size_t n, const char *what, struct error *e)
{
    enum { PIECE = 1 << 28 }; /* MPI counts are int */

    if (w->size == 1)
        return OK;
    for (size_t at = 0; at < n; at += PIECE) {
        int piece = n - at < PIECE ? (int)(n - at) : PIECE, rc;
        MPI_Request request;

        rc = complete(w, MPI_Ibcast((char *)bytes + at, piece, MPI_BYTE, 0, w->comm, &request), &request, what, e);
        if (rc < 0)
            return rc;
    }
    return OK;
}

int world_same(struct world *w, uint64_t value, const char *what, struct error *e)
{
    uint64_t *all;
    MPI_Request request;
    char ranks[160] = "";
    size_t used = 0;
    int rc;

    if (w->size == 1)
        return OK;
    all = calloc((size_t)w->size, sizeof *all);
    if (!all)
        return error_set(e, ERR_NOMEM, "no memory to compare %d ranks", w->size);
    rc = complete(w, MPI_Iallgather(&value, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, w->comm, &request), &request, what,
                  e);
    for (int r = 1; rc == OK && r < w->size; r++)
        if (all[r] != all[0] && used + 12 < sizeof ranks)
            used += (size_t)snprintf(ranks + used, sizeof ranks - used, "%s%d", used ? ", " : "", r);
    if (rc == OK && used)
        rc = error_set(e, ERR_ARG, "%s: rank %s differs from rank 0", what, ranks);
    free(all);
    return rc;
}

int world_barrier(struct world *w, struct error *e)
{
    MPI_Request request;

    if (w->size == 1)
        return OK;
    return complete(w, MPI_Ibarrier(w->comm, &request), &request, "waiting for all ranks", e);
}

static void keep(struct message *m, MPI_Request request)
{
    m->handle = 0;
    memcpy(&m->handle, &request, sizeof request);
    m->active = 1;
}

int world_send(struct world *w, int to, int tag, const void *bytes, size_t n, struct message *m, struct error *e)
{
    MPI_Request request;
    int rc = failed(MPI_Isend(bytes, (int)n, MPI_BYTE, to, tag, w->comm, &request), e, "sending");

    if (rc == OK)
        keep(m, request);
    return rc;
}

int world_receive(struct world *w, int from, int tag, void *bytes, size_t n, struct message *m, struct error *e)
{
    MPI_Request request;
    int source = from == WORLD_ANY_RANK ? MPI_ANY_SOURCE : from;
    int rc = failed(MPI_Irecv(bytes, (int)n, MPI_BYTE, source, tag, w->comm, &request), e, "receiving");

    if (rc == OK)
        keep(m, request);
    return rc;
}

int message_done(struct world *w, struct message *m, struct error *e)
{
    MPI_Request request;
    MPI_Status status;
    int done = 0, rc;

    (void)w;
    if (!m->active)
        return 1;
    memcpy(&request, &m->handle, sizeof request);
    status.MPI_SOURCE = -1;
    if ((rc = failed(MPI_Test(&request, &done, &status), e, "a message")) < 0)
        return rc;
    if (done) {
        m->active = 0;
        m->source = status.MPI_SOURCE;
    }
    return done;
}

void message_cancel(struct world *w, struct message *m)
{
    MPI_Request request;

    (void)w;
    if (!m->active)
        return;
    memcpy(&request, &m->handle, sizeof request);
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    m->active = 0;
}
