#include "trainer/trace_exchange.h"

#include "base/file.h"
#include "trainer/timing/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TAG_SPANS = 32200 }; /* above those of steps */

/* What rank 0 must know of each rank's spans before it asks for them. */
struct spans_head {
    uint64_t count;
    int64_t first; /* the least begin; of the rank's clock */
};

/* Better now than after the training. */
static int check_path(const char *path, struct error *e)
{
    const char *slash = strrchr(path, '/');
    char directory[4096];
    struct stat st;

    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return error_set(e, ERR_ARG, "--trace %s: is a directory; name a file", path);
    if (strlen(path) >= sizeof directory)
        return error_set(e, ERR_ARG, "--trace: the path is too long");
    strcpy(directory, slash ? path : ".");
    if (slash)
        directory[slash == path ? 1 : slash - path] = '\0';
    if (access(directory, W_OK | X_OK) < 0)
        return error_set(e, ERR_ARG, "--trace %s: cannot write into %s: %s", path, directory, strerror(errno));
    return OK;
}

int trace_exchange_open(struct trace_exchange *t, struct world *w, const char *path, struct error *e)
{
    const size_t ranks = (size_t)world_size(w), share = TRACE_ALL / ranks;
    int rc = OK;

    *t = (struct trace_exchange){ .world = w, .path = path };
    if (world_rank(w) == 0)
        rc = check_path(path, e);
    if (rc == OK)
        rc = span_log_init(&t->spans, share > TRACE_SPANS ? TRACE_SPANS : share + 1, e);
    if (rc == OK && !(t->first = calloc(ranks, sizeof *t->first)))
        rc = error_memory(e, NULL, "to compare %zu clocks", ranks);
    if ((rc = world_agree(w, "prepare the trace", rc, e)) == OK)
        rc = clock_offsets_measure(w, t->first, "compare clocks", e);
    if (rc < 0)
        trace_exchange_close(t);
    return rc;
}

void trace_exchange_close(struct trace_exchange *t)
{
    span_log_release(&t->spans);
    free(t->first);
    *t = (struct trace_exchange){ 0 };
}

/* Waits for this rank's turn, for as long as the ranks before it may take. */
static int wait_for_spans(struct trace_exchange *t, struct message *m, int r, const char *doing, struct error *e)
{
    struct patience p;
    char name[WORLD_NAME_MAX];
    int rc;

    patience_init(&p, t->world, world_deadline(t->world) + world_rank(t->world));
    while ((rc = message_done(t->world, m, e)) == 0)
        if (!patience_pause(&p)) {
            world_name(t->world, r, name, sizeof name);
            if ((rc = patience_over(&p, e, "for %s to %s", name, doing)) < 0)
                return rc;
        }
    return rc < 0 ? rc : OK;
}

/* A step before the phases in it. */
static int by_begin(const void *a, const void *b)
{
    const struct span *x = a, *y = b;

    return x->begin != y->begin ? (x->begin > y->begin) - (x->begin < y->begin) : (x->end < y->end) - (x->end > y->end);
}

/* The spans by their begin, in memory to free. NULL: no memory. */
static struct span *in_order(const struct span_log *l)
{
    const size_t count = span_log_count(l);
    struct span *spans = malloc((count + 1) * sizeof *spans);

    for (size_t i = 0; i < count && spans; i++)
        spans[i] = *span_log_at(l, i);
    if (spans)
        qsort(spans, count, sizeof *spans, by_begin);
    return spans;
}

/* Rank 0: the two comparisons of each rank's clock, in its own time. */
static struct trace_clock clock_of(const struct clock_offset *first, const struct clock_offset *last)
{
    return (struct trace_clock){ first->at + first->offset, first->offset, last->at + last->offset, last->offset,
                                 first->error > last->error ? first->error : last->error };
}

/* Rank 0: adds all ranks' spans to the trace. own: rank 0's. */
static int collect(struct trace_exchange *t, const struct spans_head *heads, const struct clock_offset *last,
                   const struct span *own, int workers, const char *doing, struct buffer *out, struct error *e)
{
    const int ranks = world_size(t->world);
    int64_t zero = INT64_MAX;
    int rc = OK;

    for (int r = 0; r < ranks; r++) {
        const struct trace_clock clock = clock_of(&t->first[r], &last[r]);
        const int64_t begin = trace_time(&clock, heads[r].first);

        zero = heads[r].count && begin < zero ? begin : zero;
    }
    trace_begin(out);
    for (int r = 0; r < ranks && rc == OK; r++) {
        const size_t count = (size_t)heads[r].count;
        struct span *spans = malloc((count + 1) * sizeof *spans);
        struct message m = { 0 };

        if (!spans)
            return error_memory(e, NULL, "for a trace of %zu slices", count);
        if (r == 0)
            memcpy(spans, own, count * sizeof *spans);
        else if ((rc = world_receive(t->world, r, TAG_SPANS, spans, count * sizeof *spans, &m, e)) == OK)
            rc = wait_for_spans(t, &m, r, doing, e);
        if (rc == OK)
            trace_add(out,
                      &(struct trace_rank){ r, r >= workers,
                                            world_places(t->world) ? world_places(t->world)[r].host : NULL,
                                            clock_of(&t->first[r], &last[r]), spans, count },
                      zero);
        free(spans);
    }
    trace_end(out);
    return rc;
}

int trace_exchange_write(struct trace_exchange *t, int workers, const char *doing, struct error *e)
{
    const size_t ranks = (size_t)world_size(t->world);
    struct spans_head *heads = calloc(ranks, sizeof *heads), head = { .count = span_log_count(&t->spans) };
    struct clock_offset *last = calloc(ranks, sizeof *last);
    struct span *own = in_order(&t->spans);
    struct buffer out = BUFFER_EMPTY;
    struct message m = { 0 };
    int rc = OK;

    if (!heads || !last || !own)
        rc = error_memory(e, NULL, "for a trace of %zu ranks", ranks);
    if (own && head.count)
        head.first = own[0].begin;
    if ((rc = world_agree(t->world, doing, rc, e)) < 0)
        goto end;
    if ((rc = clock_offsets_measure(t->world, last, doing, e)) < 0 ||
        (rc = world_gather(t->world, &head, sizeof head, heads, doing, e)) < 0)
        goto end;
    if (world_rank(t->world) == 0) {
        if ((rc = collect(t, heads, last, own, workers, doing, &out, e)) == OK)
            rc = buffer_ok(&out) ? file_replace(NULL, t->path, out.data, out.length, e)
                                 : error_memory(e, t->path, "for the trace");
    } else if ((rc = world_send(t->world, 0, TAG_SPANS, own, (size_t)head.count * sizeof *own, &m, e)) == OK) {
        rc = wait_for_spans(t, &m, 0, doing, e);
    }
end:
    free(heads);
    free(last);
    free(own);
    buffer_release(&out);
    return rc;
}
