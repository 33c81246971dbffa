#include "trainer/server/shared_push.h"

#include "trainer/collective/exchange.h"
#include "trainer/collective/shared_memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* of one worker */
struct shared_push_words {
    _Alignas(64) _Atomic uint64_t mark;
    struct tally_part part;
};

/* of the group */
struct shared_push_head {
    struct shared_counter answers;
    _Atomic uint32_t looks; /* how often the speaker has looked */
    struct verdict verdict;
};

struct shared_push {
    struct shared_push_plan plan;
    struct shared_memory memory;
    int group, members, local; /* local: this worker's number in the group */
    int *member;               /* (members) workers */
    struct shared_push_head *head;
    struct shared_push_words *words; /* (members) */
    int count, own;                  /* vectors of the group; number of this worker's first one */
    real **vectors;                  /* (count) */
    struct tally_part *parts;        /* (members) as the speaker sends them */
    real *values;
    uint64_t turn;
    uint32_t looks_seen; /* of the speaker */
};

static uint64_t mark_of(const struct shared_push *s, size_t final)
{
    return s->turn * (s->plan.total + 2) + final;
}

void shared_push_begin(struct shared_push *s)
{
    s->turn++;
}

void shared_push_final(struct shared_push *s, size_t low)
{
    const uint64_t mark = mark_of(s, s->plan.total - low);

    if (mark > atomic_load(&s->words[s->local].mark))
        atomic_store(&s->words[s->local].mark, mark);
}

void shared_push_tally(struct shared_push *s, const struct tally_part *part)
{
    s->words[s->local].part = *part;
    atomic_store(&s->words[s->local].mark, mark_of(s, s->plan.total + 1));
}

static int all_reached(const struct shared_push *s, uint64_t mark)
{
    for (int k = 0; k < s->members; k++)
        if (atomic_load(&s->words[k].mark) < mark)
            return 0;
    return 1;
}

void shared_push_look(struct shared_push *s)
{
    atomic_fetch_add(&s->head->looks, 1);
}

int shared_push_is_final(struct shared_push *s, size_t low)
{
    return all_reached(s, mark_of(s, s->plan.total - low));
}

int shared_push_tallied(struct shared_push *s)
{
    return all_reached(s, mark_of(s, s->plan.total + 1));
}

void shared_push_sum(const struct shared_push *s, real *out, size_t from, size_t to)
{
    const struct reduction *r = s->plan.reduction;

    if (r->micro_shards)
        reduction_tree_sum(out, (const real *const *)s->vectors, r->nodes + r->first[s->member[0]], s->count, from, to);
    else
        exchange_sum(out, (const real *const *)s->vectors, s->count, from, to);
}

const struct tally_part *shared_push_parts(const struct shared_push *s)
{
    for (int k = 0; k < s->members; k++)
        s->parts[k] = s->words[k].part;
    return s->parts;
}

void shared_push_answer(struct shared_push *s, const struct verdict *verdict)
{
    s->head->verdict = *verdict;
    shared_counter_post(&s->head->answers, (uint32_t)s->turn);
}

void shared_push_late(const struct shared_push *s, char *late)
{
    memset(late, 0, (size_t)s->plan.groups->workers);
    for (int k = 0; k < s->members; k++)
        late[s->member[k]] = atomic_load(&s->words[k].mark) < mark_of(s, s->plan.total + 1);
}

/* 1: the speaker has looked since the last call. */
static int speaker_looked(struct shared_push *s)
{
    const uint32_t before = s->looks_seen;

    s->looks_seen = atomic_load(&s->head->looks);
    return s->looks_seen != before;
}

int shared_push_wait(struct shared_push *s, int64_t step, struct verdict *verdict, struct error *e)
{
    struct world *world = s->plan.world;
    const int speaker = s->member[0];
    char name[WORLD_NAME_MAX];
    struct patience p;
    int rc;

    patience_init(&p, world, world_deadline(world));
    while (!shared_counter_wait(&s->head->answers, (uint32_t)s->turn, 0)) {
        if (speaker_looked(s))
            patience_calm(&p);
        if (patience_spend(&p) || !patience_misses(&p, speaker))
            continue;
        world_name(world, speaker, name, sizeof name);
        if ((rc = patience_over(&p, e, "at step %" PRId64 " for %s, which pushes the gradients of this host", step,
                                name)) < 0)
            return rc;
    }
    *verdict = s->head->verdict;
    return OK;
}

size_t shared_push_count(const struct shared_push *s)
{
    const size_t vectors = (size_t)reduction_vectors(s->plan.reduction, s->plan.worker);
    const size_t down = s->plan.values * sizeof(real) + sizeof(struct verdict);
    const size_t up = s->plan.pushed * vectors * sizeof(real) + sizeof(struct tally_part);

    for (int k = 1; k < s->members && s->local == 0; k++)
        world_share(s->plan.world, s->member[k], down);
    if (s->local > 0)
        world_share(s->plan.world, s->member[0], up);
    return s->local > 0 ? up : down * (size_t)(s->members - 1);
}

int shared_push_speaks(const struct shared_push *s)
{
    return s->local == 0;
}

int shared_push_members(const struct shared_push *s)
{
    return s->members;
}

real *shared_push_vector(const struct shared_push *s, int v)
{
    return s->vectors[s->own + v];
}

real *shared_push_values(const struct shared_push *s)
{
    return s->values;
}

/* ---- start and end ----------------------------------------------------------------------------------------------- */

void shared_push_free(struct shared_push *s)
{
    if (!s)
        return;
    shared_memory_close(&s->memory);
    free(s->member);
    free(s->vectors);
    free(s->parts);
    free(s);
}

/* Who is in the group, and what it has. */
static int find_group(struct shared_push *s, struct error *e)
{
    const struct shared_push_plan *p = &s->plan;

    s->group = p->groups->of[p->worker];
    s->members = p->groups->size[s->group];
    s->member = calloc((size_t)s->members, sizeof *s->member);
    s->parts = calloc((size_t)s->members, sizeof *s->parts);
    if (!s->member || !s->parts)
        return error_memory(e, NULL, "for the workers of a host");
    for (int w = p->groups->first[s->group], k = 0; w >= 0; w = worker_groups_next(p->groups, w), k++) {
        if (w == p->worker) {
            s->local = k;
            s->own = s->count;
        }
        s->member[k] = w;
        s->count += reduction_vectors(p->reduction, w);
    }
    if (!(s->vectors = calloc((size_t)s->count, sizeof *s->vectors)))
        return error_memory(e, NULL, "for the vectors of a host");
    return OK;
}

/* Head, words, values, vectors. A server gets a page that it does not use. */
static int map_group(struct shared_push *s, const int *host, struct error *e)
{
    const struct shared_push_plan *p = &s->plan;
    const size_t head = shared_memory_rounded(sizeof *s->head + 64 + (size_t)s->members * sizeof *s->words);
    const size_t values = shared_memory_rounded(p->values * sizeof(real));
    const size_t vector = shared_memory_rounded(p->total * sizeof(real));
    const size_t all = p->worker < 0 ? head : head + values + vector * (size_t)s->count;
    const int rc = shared_memory_open(&s->memory, p->world, host, world_size(p->world), all, e);
    char *bytes = s->memory.bytes;

    if (rc < 0 || p->worker < 0)
        return rc;
    s->head = s->memory.bytes;
    s->words = (struct shared_push_words *)(void *)(bytes + (sizeof *s->head + 63) / 64 * 64);
    s->values = (real *)(void *)(bytes + head);
    for (int v = 0; v < s->count; v++)
        s->vectors[v] = (real *)(void *)(bytes + head + values + vector * (size_t)v);
    return OK;
}

int shared_push_new(struct shared_push **out, const struct shared_push_plan *plan, struct error *e)
{
    const int size = world_size(plan->world), workers = plan->groups->workers;
    struct shared_push *s = calloc(1, sizeof *s);
    int *host = calloc((size_t)size, sizeof *host);
    int rc = OK;

    if (!s || !host) {
        rc = error_memory(e, NULL, "to push as one host");
    } else {
        s->plan = *plan;
        rc = plan->worker < 0 ? OK : find_group(s, e);
        for (int r = 0; r < size; r++)
            host[r] = r < workers ? plan->groups->of[r] : plan->groups->count + r - workers;
    }
    if ((rc = world_agree(plan->world, "make room for its host's gradients", rc, e)) == OK)
        rc = map_group(s, host, e);
    free(host);
    if (rc < 0) {
        shared_push_free(s);
        return rc;
    }
    *out = s;
    return OK;
}
