#include "trainer/plan/probe_compute.h"

#include "base/clock.h"
#include "base/random.h"
#include "trainer/collective/micro_shards.h"
#include "trainer/collective/team.h"
#include "trainer/optimizer.h"
#include "trainer/plan/median.h"
#include "trainer/recipes/recipe.h"

#include <stdlib.h>
#include <string.h>

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
