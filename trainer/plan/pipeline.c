#include "trainer/plan/pipeline.h"

#include "base/array.h"

#include <math.h>
#include <stdlib.h>

/* ---- computing --------------------------------------------------------------------------------------------------- */

void computing_until(struct computing *c, double seconds)
{
    const double more = c->crowding * seconds - c->begun,
                 longest = c->crowding * c->work->backward / (double)COMPUTING_PIECES;
    const int pieces = more > longest && longest > 0 ? (int)fmin(ceil(more / longest), 4 * COMPUTING_PIECES) : 1;

    for (int i = 0; i < pieces; i++)
        c->last = pipeline_then(c->pipeline, c->processor, more > 0 ? more / pieces : 0, 0, c->last);
    if (more > 0)
        c->begun += more;
}

/* ---- pipeline ---------------------------------------------------------------------------------------------------- */

struct planned {
    struct pipeline_task task;
    double ready;      /* when the last task that it comes after is done */
    int waits;         /* for so many tasks */
    size_t first;      /* of those that wait for this one, as 2 * task + which of its two; PIPELINE_NOTHING: none */
    size_t next_of[2]; /* the next that waits for the same task */
};

struct pipeline {
    int resources, failed;
    double *free_at; /* (resources) */
    struct planned *tasks;
    size_t count, capacity;
    size_t *heap, waiting; /* tasks that are ready, the earliest first; then the lowest number */
};

int pipeline_new(struct pipeline **out, int resources, struct error *e)
{
    struct pipeline *p = calloc(1, sizeof *p);

    if (p)
        p->free_at = calloc((size_t)resources + 1, sizeof *p->free_at);
    if (!p || !p->free_at) {
        pipeline_free(p);
        return error_memory(e, NULL, "to plan a step");
    }
    p->resources = resources;
    *out = p;
    return OK;
}

void pipeline_free(struct pipeline *p)
{
    if (!p)
        return;
    free(p->free_at);
    free(p->tasks);
    free(p->heap);
    free(p);
}

size_t pipeline_add(struct pipeline *p, const struct pipeline_task *task)
{
    struct planned *t;

    if (!ARRAY_ROOM(p->tasks, p->capacity, p->count + 1)) {
        p->failed = 1;
        return PIPELINE_NOTHING;
    }
    t = &p->tasks[p->count];
    *t = (struct planned){ .task = *task, .first = PIPELINE_NOTHING };
    for (int i = 0; i < 2; i++) {
        if (task->after[i] == PIPELINE_NOTHING)
            continue;
        t->waits++;
        t->next_of[i] = p->tasks[task->after[i]].first;
        p->tasks[task->after[i]].first = 2 * p->count + (size_t)i;
    }
    return p->count++;
}

size_t pipeline_then(struct pipeline *p, int resource, double duration, double delay, size_t after)
{
    return pipeline_add(p, &(struct pipeline_task){ .resource = { resource, -1 },
                                                    .duration = { duration, 0 },
                                                    .delay = delay,
                                                    .after = { after, PIPELINE_NOTHING } });
}

static int earlier(const struct pipeline *p, size_t a, size_t b)
{
    const double x = p->tasks[a].ready, y = p->tasks[b].ready;

    return x < y || (x == y && a < b);
}

static void push(struct pipeline *p, size_t task)
{
    size_t at = p->waiting++;

    while (at > 0 && earlier(p, task, p->heap[(at - 1) / 2])) {
        p->heap[at] = p->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    p->heap[at] = task;
}

static size_t pop(struct pipeline *p)
{
    const size_t top = p->heap[0], last = p->heap[--p->waiting];
    size_t at = 0, child;

    while ((child = 2 * at + 1) < p->waiting) {
        child += child + 1 < p->waiting && earlier(p, p->heap[child + 1], p->heap[child]);
        if (!earlier(p, p->heap[child], last))
            break;
        p->heap[at] = p->heap[child];
        at = child;
    }
    p->heap[at] = last;
    return top;
}

/* When the task is done, having taken its resources. */
static double serve(struct pipeline *p, const struct planned *t)
{
    double start = t->ready, longest = 0;

    for (int i = 0; i < 2; i++)
        if (t->task.resource[i] >= 0 && p->free_at[t->task.resource[i]] > start)
            start = p->free_at[t->task.resource[i]];
    for (int i = 0; i < 2; i++) {
        if (t->task.resource[i] < 0)
            continue;
        p->free_at[t->task.resource[i]] = start + t->task.duration[i];
        if (t->task.duration[i] > longest)
            longest = t->task.duration[i];
    }
    return start + longest + t->task.delay;
}

int pipeline_run(struct pipeline *p, double *end, struct error *e)
{
    *end = 0;
    p->heap = p->failed ? NULL : malloc((p->count + 1) * sizeof *p->heap);
    if (!p->heap)
        return error_memory(e, NULL, "to plan a step of %zu messages", p->count);
    for (size_t i = 0; i < p->count; i++)
        if (p->tasks[i].waits == 0)
            push(p, i);
    while (p->waiting > 0) {
        const size_t done = pop(p);
        const double at = serve(p, &p->tasks[done]);

        if (at > *end)
            *end = at;
        for (size_t link = p->tasks[done].first; link != PIPELINE_NOTHING;) {
            struct planned *t = &p->tasks[link / 2];

            if (at > t->ready)
                t->ready = at;
            if (--t->waits == 0)
                push(p, link / 2);
            link = t->next_of[link % 2];
        }
    }
    return OK;
}
