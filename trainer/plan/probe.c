#include "trainer/plan/probe.h"

#include "base/clock.h"
#include "base/random.h"
#include "model/file/recipe.h"
#include "trainer/collective/exchange.h"
#include "trainer/collective/micro_shards.h"
#include "trainer/collective/team.h"
#include "trainer/optimizers/optimizer.h"

#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- median ------------------------------------------------------------------------------------------------------ */

/* The middle of measured values. Pure. */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Sorts the values, the least first, and returns the middle one, or the mean of the two; of none: 0. */
static double median(double *values, size_t count)
{
    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, ascending);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* ---- probe compute ----------------------------------------------------------------------------------------------- */

enum { STEPS_LEAST = 5, STEPS_MOST = 1000 };

struct probe {
    struct network *network;
    struct team *team;           /* NULL: one thread */
    struct micro_shards *shards; /* likewise */
    struct optimizer *optimizer;
    void *inputs; /* samples: real, or int32_t for models of integers */
    int32_t *labels;
    int64_t *samples;                            /* their numbers */
    double *forward, *backward, *update, *whole; /* (STEPS_MOST) seconds */
    double begun, forwarded;
    struct probe_compute *out;
};

/* The first call of a step says that forward has ended. */
static void final(void *context, size_t low)
{
    struct probe *p = context;
    struct probe_compute *out = p->out;
    const double now = clock_monotonic();

    if (p->forwarded < p->begun)
        p->forwarded = now;
    if (out->final_count < PROBE_FINALS_MOST && (out->final_count == 0 || out->finals[out->final_count - 1].low > low))
        out->finals[out->final_count++] = (struct plan_final){ low, now - p->forwarded };
}

static void make_noise(struct probe *p, const struct model *m, size_t values, int batch)
{
    struct random r;
    real *images = p->inputs;
    int32_t *tokens = p->inputs;

    random_init(&r, 1, RANDOM_TEST, 0, 0);
    for (size_t i = 0; i < values; i++)
        if (m->integers)
            tokens[i] = (int32_t)random_below(&r, 128);
        else
            images[i] = (real)random_uniform(&r);
    for (int i = 0; i < batch; i++)
        p->samples[i] = i;
    for (int i = 0; i < batch * model_labels(m); i++)
        p->labels[i] = (int32_t)random_below(&r, (uint64_t)m->classes);
}

static void train_once(struct probe *p, const struct batch *batch, int step)
{
    const struct gradient_sink sink = { .dense = final, .context = p };
    struct score score;
    double trained, updated;

    p->out->final_count = 0;
    p->begun = clock_monotonic();
    p->forwarded = 0;
    if (p->shards)
        micro_shards_train(p->shards, batch, 1, &sink, &score);
    else
        network_train(p->network, batch, 1, &sink, &score);
    trained = clock_monotonic();
    optimizer_apply(p->optimizer, step, network_exchange(p->network), 0, network_exchange_count(p->network));
    updated = clock_monotonic();
    p->forward[step] = p->forwarded - p->begun;
    p->backward[step] = trained - p->forwarded;
    p->update[step] = updated - trained;
    p->whole[step] = updated - p->begun;
}

static int make_threads(struct probe *p, int threads, struct error *e)
{
    int rc = team_new(&p->team, threads, e);

    if (rc == OK)
        rc = micro_shards_new(&p->shards, p->network, &(struct tree_node){ 0, threads }, 1, e);
    return rc == OK ? micro_shards_use_threads(p->shards, p->team, threads, e) : rc;
}

static int make(struct probe *p, const struct model *m, size_t values, int batch, int threads, struct error *e)
{
    const struct recipe *r = recipe_find(m->name);
    struct optimizer_options o = { .learning_rate = 1e-6,
                                   .momentum = r->momentum,
                                   .moving_average = r->moving_average };
    int kind = 0, rc;

    while (kind < OPTIMIZER_KINDS - 1 && strcmp(optimizer_kind_names[kind], r->optimizer) != 0)
        kind++;
    o.kind = (enum optimizer_kind)kind;
    p->inputs = calloc(values + 1, sizeof(real));
    p->labels = calloc((size_t)batch, (size_t)model_labels(m) * sizeof *p->labels);
    p->samples = calloc((size_t)batch, sizeof *p->samples);
    p->forward = calloc(4 * STEPS_MOST, sizeof *p->forward);
    if (!p->inputs || !p->labels || !p->samples || !p->forward)
        return error_memory(e, NULL, "for a batch of %d", batch);
    p->backward = p->forward + STEPS_MOST;
    p->update = p->backward + STEPS_MOST;
    p->whole = p->update + STEPS_MOST;
    if ((rc = network_new(&p->network, m, batch / threads, e)) < 0 ||
        (threads > 1 && (rc = make_threads(p, threads, e)) < 0))
        return rc;
    network_initialize(p->network, 1);
    rc = optimizer_new(&p->optimizer, p->network, &o, e);
    if (rc == OK && p->team)
        optimizer_use_threads(p->optimizer, p->team, threads);
    return rc;
}

int probe_compute(struct probe_compute *out, const struct model *m, int batch, int threads, double seconds,
                  struct error *e)
{
    const size_t values = (size_t)batch * (size_t)m->height * (size_t)m->width * (size_t)m->channels;
    struct probe p = { .out = out };
    struct batch b = { .count = batch, .field_count = 2 };
    int rc, steps = 0;
    double begun;

    memset(out, 0, sizeof *out);
    if ((rc = make(&p, m, values, batch, threads, e)) == OK) {
        make_noise(&p, m, values, batch);
        b.samples = p.samples;
        b.fields[FIELD_INPUT] = model_input(m, p.inputs, batch);
        if (m->integers)
            b.fields[FIELD_INPUT].element = ELEMENT_INT32;
        b.fields[FIELD_LABELS] = (struct field){ p.labels, ELEMENT_INT32, 2, { batch, model_labels(m) } };
        train_once(&p, &b, 0); /* makes what later steps find in memory */
        for (begun = clock_monotonic();
             steps < STEPS_MOST && (steps < STEPS_LEAST || clock_monotonic() - begun < seconds); steps++)
            train_once(&p, &b, steps);
        for (size_t i = 0; i < out->final_count; i++)
            out->finals[i].share /= p.backward[steps - 1];
        out->steps = steps;
        out->forward = median(p.forward, (size_t)steps);
        out->backward = median(p.backward, (size_t)steps);
        out->update = median(p.update, (size_t)steps);
        median(p.whole, (size_t)steps); /* in order now */
        out->least = p.whole[0];
        out->most = p.whole[steps - 1];
    }
    optimizer_free(p.optimizer);
    micro_shards_free(p.shards);
    team_free(p.team);
    network_free(p.network);
    free(p.inputs);
    free(p.labels);
    free(p.samples);
    free(p.forward);
    return rc;
}

/* ---- probe link -------------------------------------------------------------------------------------------------- */

enum { TAG_PING = 1, TAG_PONG, TAG_MANY, ROUNDS_LEAST = 5, ROUNDS_MOST = 100, MANY = 200, SMALL = 64 };

#define SECONDS_EACH 0.5 /* for one size */

struct pair {
    struct world *world;
    int first, other; /* first: 1 on rank 0 */
    char *bytes;
};

static int wait_for(struct pair *p, struct message *m, struct error *e)
{
    struct patience patience;
    int rc;

    patience_init(&patience, p->world, world_deadline(p->world));
    while ((rc = message_done(p->world, m, e)) == 0)
        if (!patience_pause(&patience))
            return patience_over(&patience, e, "for rank %d to answer a message", p->other);
    return rc < 0 ? rc : OK;
}

static int say(struct pair *p, int tag, size_t n, struct error *e)
{
    struct message m = { 0 };
    const int rc = world_send(p->world, p->other, tag, p->bytes, n, &m, e);

    return rc < 0 ? rc : wait_for(p, &m, e);
}

static int hear(struct pair *p, int tag, size_t n, struct error *e)
{
    struct message m = { 0 };
    const int rc = world_receive(p->world, p->other, tag, p->bytes, n, &m, e);

    return rc < 0 ? rc : wait_for(p, &m, e);
}

/* One message there and one back. The first byte of rank 0's says whether another pair follows. */
static int ping_pong(struct pair *p, size_t n, int more, struct error *e)
{
    int rc;

    if (!p->first)
        return (rc = hear(p, TAG_PING, n, e)) < 0 ? rc : say(p, TAG_PONG, n, e);
    p->bytes[0] = (char)more;
    return (rc = say(p, TAG_PING, n, e)) < 0 ? rc : hear(p, TAG_PONG, n, e);
}

/* The median of half a round trip. */
static int time_size(struct pair *p, size_t n, double *seconds, struct error *e)
{
    double times[ROUNDS_MOST], began = clock_monotonic();
    int rounds = -1, more = 1, rc = OK; /* the first one makes the connection */

    while (more && rc == OK) {
        const double begun = clock_monotonic();

        more = rounds + 1 < ROUNDS_LEAST || (rounds + 1 < ROUNDS_MOST && begun - began < SECONDS_EACH);
        rc = ping_pong(p, n, more, e);
        if (rounds >= 0)
            times[rounds] = (clock_monotonic() - begun) / 2;
        else
            began = clock_monotonic();
        rounds++;
        more = p->bytes[0]; /* the answer is the same bytes */
    }
    *seconds = median(times, (size_t)(rounds > 0 ? rounds : 0));
    return rc;
}

/* Many small messages in a row, and one back. */
static int time_many(struct pair *p, double *seconds, struct error *e)
{
    struct message many[MANY] = { { 0 } };
    const double begun = clock_monotonic();
    int rc = OK;

    for (int i = 0; i < MANY && rc == OK; i++)
        rc = p->first ? world_send(p->world, p->other, TAG_MANY, p->bytes, SMALL, &many[i], e)
                      : world_receive(p->world, p->other, TAG_MANY, p->bytes, SMALL, &many[i], e);
    for (int i = 0; i < MANY && rc == OK; i++)
        rc = wait_for(p, &many[i], e);
    if (rc == OK)
        rc = p->first ? hear(p, TAG_PONG, SMALL, e) : say(p, TAG_PONG, SMALL, e);
    *seconds = clock_monotonic() - begun;
    return rc;
}

/* The bandwidth by what the largest message takes more than the next smaller one: what is there for nothing in a link
 * that was idle, such as a bucket of tokens, is in both. The latency by the smallest message. */
static struct plan_link link_of(const struct probe_link *l)
{
    const int most = PROBE_SIZES - 1;
    const double more = l->seconds[most] - l->seconds[most - 1], least = l->seconds[most] / 1e3;
    const double rate = (l->bytes[most] - l->bytes[most - 1]) / (more > least ? more : least);
    const double latency = l->seconds[0] - l->bytes[0] / rate;

    return (struct plan_link){ latency > 0 ? latency : 0, rate };
}

static int measure(struct probe_link *out, struct pair *p, size_t largest, struct error *e)
{
    double many;
    int rc = OK;

    for (int i = 0; i < PROBE_SIZES && rc == OK; i++) {
        const size_t n = (largest >> (2 * (PROBE_SIZES - 1 - i))) + 1;

        out->bytes[i] = (double)n;
        rc = time_size(p, n, &out->seconds[i], e);
    }
    if (rc == OK)
        rc = time_many(p, &many, e);
    if (rc < 0 || !p->first)
        return rc;
    out->link = link_of(out);
    out->message = (many - 2 * out->seconds[0]) / (double)MANY;
    if (!(out->message > 0))
        out->message = 0;
    return OK;
}

int probe_link(struct probe_link *out, struct world *w, size_t largest, struct error *e)
{
    const int rank = world_rank(w), last = world_size(w) - 1;
    struct pair p = { .world = w, .first = rank == 0, .other = rank == 0 ? last : 0 };
    int rc = OK;

    *out = (struct probe_link){ .message = 0 };
    if (!(p.bytes = calloc(1, largest + SMALL + 1)))
        rc = error_memory(e, NULL, "for messages of %zu bytes", largest);
    if ((rc = world_agree(w, "begin to measure messages", rc, e)) == OK && (rank == 0 || rank == last))
        rc = measure(out, &p, largest, e);
    free(p.bytes);
    return rc;
}

/* ---- probe memory ------------------------------------------------------------------------------------------------ */

enum { ELEMENTS = 1 << 20, VECTORS = 2, ROUNDS = 7, CORES_MOST = 256 };

struct adder {
    real *memory; /* VECTORS of ELEMENTS, then their sum */
};

struct adders {
    struct adder each[CORES_MOST];
};

static void add_vectors(void *context, int member)
{
    real *at = ((struct adders *)context)->each[member].memory;
    const real *const parts[VECTORS] = { at, at + ELEMENTS };

    exchange_sum(at + (size_t)VECTORS * ELEMENTS, parts, VECTORS, 0, ELEMENTS);
}

/* Median seconds of one addition in every member. */
static double time_adding(struct team *team, struct adders *a)
{
    double seconds[ROUNDS];

    for (int i = -1; i < ROUNDS; i++) { /* the first one touches the memory */
        const double begun = clock_monotonic();

        team_run(team, add_vectors, NULL, a);
        if (i >= 0)
            seconds[i] = clock_monotonic() - begun;
    }
    return median(seconds, ROUNDS);
}

static int cores_here(void)
{
    cpu_set_t set;
    int n = 1;

    if (sched_getaffinity(0, sizeof set, &set) == 0)
        n = CPU_COUNT(&set);
    return n < 1 ? 1 : n > CORES_MOST ? CORES_MOST : n;
}

int probe_memory(struct probe_memory *out, struct error *e)
{
    const double bytes = (double)VECTORS * (double)ELEMENTS * sizeof(real);
    struct adders *a = calloc(1, sizeof *a);
    struct team *alone = NULL, *all = NULL;
    int rc = OK;

    *out = (struct probe_memory){ .cores = cores_here() };
    for (int i = 0; a && i < out->cores && rc == OK; i++)
        if (!(a->each[i].memory = calloc((size_t)(VECTORS + 1) * ELEMENTS, sizeof(real))))
            rc = ERR_NOMEM;
    if (!a || rc < 0)
        rc = error_memory(e, NULL, "to measure how fast it adds");
    if (rc == OK && (rc = team_new(&alone, 1, e)) == OK && (rc = team_new(&all, out->cores, e)) == OK) {
        out->add = time_adding(alone, a) / bytes;
        out->bus = bytes * out->cores / time_adding(all, a);
        if (out->bus * out->add < 1) /* another program was busy */
            out->bus = 1 / out->add;
    }
    team_free(all);
    team_free(alone);
    for (int i = 0; a && i < out->cores; i++)
        free(a->each[i].memory);
    free(a);
    return rc;
}
