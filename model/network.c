#include "model/network.h"

#include "base/random.h"
#include "model/kernels/bfloat16.h"
#include "model/kernels/blas.h"
#include "model/kernels/convolution.h"
#include "model/network_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct network {
    struct network_builder built; /* variables and plan */
    int chunk;                    /* images per call of inference */
    int max_batch;
    real *parameters, *statistics, *exchange;
    real *own_parameters, *own_statistics, *own_exchange; /* NULL: those of another network are used */
    network_leave *leave;
    void *leave_context;
};

static int load_libraries(struct error *e)
{
    const int rc = convolution_blas.load(e);

#if CONVOLUTION_ONEDNN
    return rc == OK ? convolution_onednn.load(e) : rc;
#else
    return rc;
#endif
}

/* Tells each layer which of its parameters are frozen: those of one layer follow each other. */
static void freeze_layers(struct network_builder *b)
{
    for (int i = 0; i < b->plan.layer_count; i++) {
        struct layer *l = &b->plan.layers[i];
        size_t end = b->parameters, frozen = 0, all = 0;

        for (int k = 0; k < b->plan.layer_count; k++)
            if (b->plan.layers[k].low != SIZE_MAX && b->plan.layers[k].low > l->low && b->plan.layers[k].low < end)
                end = b->plan.layers[k].low;
        for (size_t k = 0; k < b->variable_count && l->low != SIZE_MAX; k++) {
            const struct variable *v = &b->variables[k];

            if (v->kind != VARIABLE_WEIGHT || v->offset < l->low || v->offset >= end)
                continue;
            all++;
            if (!v->frozen)
                continue;
            l->zero = frozen++ ? l->zero : v->offset;
            l->zero_end = v->offset + v->count;
        }
        l->frozen = all && frozen == all;
    }
}

int network_describe(struct network **out, const struct model *model, struct error *e)
{
    struct network *n;
    struct network_builder *b;
    int rc;

    if ((rc = load_libraries(e)) < 0)
        return rc;
    if (!(n = calloc(1, sizeof *n)))
        return error_memory(e, NULL, "for model %s", model->name);
    b = &n->built;
    network_builder_init(b, model);
    rc = b->error.code ? b->error.code : model->build(b, &b->error);
    if (b->error.code || rc < 0) {
        rc = b->error.code ? error_copy(e, &b->error) : error_set(e, rc, "model %s cannot be built", model->name);
        goto fail;
    }
    if (b->plan.logits == VALUE_NONE) {
        rc = error_set(e, ERR_ARG, "model %s has no cross entropy at its end", model->name);
        goto fail;
    }
    freeze_layers(b);
    *out = n;
    return OK;
fail:
    network_free(n);
    return rc;
}

static int new_network(struct network **out, const struct model *model, int max_batch, int infers, struct error *e)
{
    struct network *n;
    struct network_builder *b;
    int rc;

    if (max_batch < 0)
        return error_set(e, ERR_ARG, "model %s: a batch cannot have %d images", model->name, max_batch);
    if ((rc = network_describe(&n, model, e)) < 0)
        return rc;
    b = &n->built;
    n->parameters = n->own_parameters = reals_new(b->parameters);
    n->statistics = n->own_statistics = reals_new(b->statistics);
    n->exchange = n->own_exchange = infers ? NULL : reals_new(network_exchange_count(n));
    if (!n->parameters || !n->statistics || (!n->exchange && !infers)) {
        rc = error_memory(e, NULL, "for the %zu parameters of model %s", b->parameters, model->name);
        goto fail;
    }
    n->max_batch = max_batch;
    n->chunk = max_batch < NETWORK_PLAN_INFERENCE ? max_batch : NETWORK_PLAN_INFERENCE;
    if (max_batch > 0 && (rc = network_plan_finish(&b->plan, infers ? n->chunk : max_batch, infers, e)) < 0)
        goto fail;
    *out = n;
    return OK;
fail:
    network_free(n);
    return rc;
}

int network_new(struct network **out, const struct model *model, int max_batch, struct error *e)
{
    return new_network(out, model, max_batch, 0, e);
}

int network_new_for_inference(struct network **out, const struct model *model, int max_batch, struct error *e)
{
    return new_network(out, model, max_batch, 1, e);
}

void network_free(struct network *n)
{
    if (!n)
        return;
    network_builder_release(&n->built);
    free(n->own_parameters);
    free(n->own_statistics);
    free(n->own_exchange);
    free(n);
}

const struct model *network_model(const struct network *n)
{
    return n->built.model;
}

const struct variable *network_variables(const struct network *n, size_t *count)
{
    *count = n->built.variable_count;
    return n->built.variables;
}

const struct network_call *network_calls(const struct network *n, size_t *count)
{
    *count = n->built.call_count;
    return n->built.calls;
}

int network_max_batch(const struct network *n)
{
    return n->max_batch;
}

size_t network_rows_most(const struct network *n, size_t variable)
{
    const struct variable *v = &n->built.variables[variable];
    const struct model *m = n->built.model;
    const size_t tokens = (size_t)n->max_batch * (size_t)m->height * (size_t)m->width;
    const size_t rows = v->row_width ? v->count / v->row_width : 0;

    return tokens < rows ? tokens : rows;
}

size_t network_parameter_count(const struct network *n)
{
    return n->built.parameters;
}

size_t network_statistic_count(const struct network *n)
{
    return n->built.statistics;
}

size_t network_exchange_count(const struct network *n)
{
    return n->built.parameters + n->built.statistics + 1;
}

size_t network_exchange_place(const struct network *n, const struct variable *v)
{
    return v->offset + (v->kind == VARIABLE_STATISTIC ? n->built.parameters : 0);
}

void network_share(struct network *n, struct network *of)
{
    free(n->own_parameters);
    free(n->own_statistics);
    n->own_parameters = n->own_statistics = NULL;
    n->parameters = of->parameters;
    n->statistics = of->statistics;
}

void network_move(struct network *n, real *parameters, real *statistics)
{
    memcpy(parameters, n->parameters, n->built.parameters * sizeof *parameters);
    memcpy(statistics, n->statistics, n->built.statistics * sizeof *statistics);
    free(n->own_parameters);
    free(n->own_statistics);
    n->own_parameters = n->own_statistics = NULL;
    n->parameters = parameters;
    n->statistics = statistics;
}

real *network_parameters(struct network *n)
{
    return n->parameters;
}

real *network_statistics(struct network *n)
{
    return n->statistics;
}

real *network_exchange(struct network *n)
{
    return n->exchange;
}

void network_set_exchange(struct network *n, real *memory)
{
    n->exchange = memory;
}

void network_set_leave(struct network *n, network_leave *leave, void *context)
{
    n->leave = leave;
    n->leave_context = context;
}

int network_asked_to_leave(const struct network *n)
{
    return n->leave && n->leave(n->leave_context);
}

/* ---- initial values ---------------------------------------------------------------------------------------------- */

static double draw(const struct variable *v, struct random *r)
{
    double z;

    switch (v->initial) {
    case INITIAL_NORMAL: return v->initial_value * random_normal(r);
    case INITIAL_TRUNCATED_NORMAL:
        do
            z = random_normal(r);
        while (fabs(z) > 2);
        return v->initial_value * z;
    case INITIAL_UNIFORM: return v->initial_value * (2 * random_uniform(r) - 1);
    case INITIAL_CONSTANT:
    default: return v->initial_value;
    }
}

void network_initialize(struct network *n, uint64_t seed)
{
    for (size_t i = 0; i < n->built.variable_count; i++) {
        const struct variable *v = &n->built.variables[i];
        real *values = (v->kind == VARIABLE_WEIGHT ? n->parameters : n->statistics) + v->offset;

        for (size_t k = 0; k < v->count; k++) {
            struct random r;
            if (v->initial != INITIAL_CONSTANT)
                random_init(&r, seed, RANDOM_INITIAL, i, k);
            values[k] = (real)draw(v, &r);
        }
    }
}

/* ---- training and inference -------------------------------------------------------------------------------------- */

static const struct field *features_of(const struct batch *batch)
{
    return batch && batch->field_count > FIELD_FEATURES ? &batch->fields[FIELD_FEATURES] : NULL;
}

/* batch NULL: no scoring. */
static struct run make_run(const struct network *n, int training, const struct batch *batch, struct score *score)
{
    return (struct run){
        .parameters = n->parameters,
        .statistics = n->statistics,
        .exchange = n->exchange,
        .parameter_count = n->built.parameters,
        .training = training,
        .batch = batch,
        .weights = batch && batch->field_count > FIELD_WEIGHTS ? batch->fields[FIELD_WEIGHTS].data : NULL,
        .ties_are_correct = n->built.model->ties_are_correct,
        .score = score,
    };
}

static double weight_of(const struct run *r, size_t count)
{
    double weight = r->weights ? 0 : (double)count;

    for (size_t i = 0; r->weights && i < count; i++)
        weight += (double)r->weights[i];
    return weight;
}

int network_train(struct network *n, const struct batch *batch, uint64_t seed, const struct gradient_sink *sink,
                  struct score *score)
{
    struct run r = make_run(n, 1, batch, score);

    r.input = &batch->fields[FIELD_INPUT];
    r.features = features_of(batch);
    r.sink = sink;
    r.count = batch->count;
    r.seed = seed;
    r.leave = n->leave;
    r.leave_context = n->leave_context;
    r.weight = weight_of(&r, (size_t)batch->count * (size_t)model_labels(n->built.model));
    *score = (struct score){ 0 };
    memset(n->exchange, 0, network_exchange_count(n) * sizeof(real));
    n->exchange[network_exchange_count(n) - 1] = (real)r.weight;
    network_plan_begin(&n->built.plan, &r);
    return network_plan_forward(&n->built.plan, &r) && network_plan_backward(&n->built.plan, &r);
}

/* Takes some images at a time, so that their data stays near the processor whatever the caller's batch. */
static void infer(struct network *n, const struct field *input, const struct field *features, const struct batch *batch,
                  real *logits, struct score *score)
{
    struct run r = make_run(n, 0, batch, score);
    const int count = input->shape[0];
    const size_t row = (size_t)n->built.model->classes * (size_t)model_labels(n->built.model);

    r.input = input;
    r.features = features;
    network_plan_begin(&n->built.plan, &r);
    for (int first = 0; first < count; first += n->chunk) {
        r.first_sample = first;
        r.count = count - first < n->chunk ? count - first : n->chunk;
        network_plan_forward(&n->built.plan, &r);
        if (logits)
            memcpy(logits + (size_t)first * row, network_plan_logits(&n->built.plan),
                   (size_t)r.count * row * sizeof *logits);
    }
}

void network_infer(struct network *n, const struct field *input, real *logits)
{
    infer(n, input, NULL, NULL, logits, NULL);
}

void network_infer_batch(struct network *n, const struct batch *batch, real *logits)
{
    infer(n, &batch->fields[FIELD_INPUT], features_of(batch), NULL, logits, NULL);
}

void network_score(struct network *n, const struct batch *batch, struct score *score)
{
    *score = (struct score){ 0 };
    infer(n, &batch->fields[FIELD_INPUT], features_of(batch), batch, NULL, score);
}

double network_decay_loss_of(const struct network *n, const struct variable *v)
{
    enum { LANES = 8 }; /* parallel sums: in one sequence a million additions take a millisecond */
    const real *w = n->parameters + v->offset;
    double sums[LANES] = { 0 }, sum = 0;
    size_t k = 0;

    if (v->kind != VARIABLE_WEIGHT || v->decay == 0)
        return 0;
    for (; k + LANES <= v->count; k += LANES)
        for (size_t j = 0; j < LANES; j++)
            sums[j] += (double)w[k + j] * (double)w[k + j];
    for (; k < v->count; k++)
        sums[0] += (double)w[k] * (double)w[k];
    for (size_t j = 0; j < LANES; j++)
        sum += sums[j];
    return v->decay * 0.5 * sum;
}

double network_decay_loss(const struct network *n)
{
    double loss = 0;

    for (size_t i = 0; i < n->built.variable_count; i++)
        loss += network_decay_loss_of(n, &n->built.variables[i]);
    return loss;
}

enum precision network_precision(const struct network *n)
{
    return network_builder_computes(&n->built);
}

int network_bfloat16_is_fast(void)
{
    return bfloat16_is_fast();
}

void network_kernels(const struct network *n, char *text, size_t size)
{
    const int length = snprintf(text, size, "OpenBLAS %s", blas_kernels());

#if CONVOLUTION_ONEDNN
    if (convolution_onednn.block(16, 0) && length > 0 && (size_t)length < size)
        snprintf(text + length, size - (size_t)length, ", %s (instructions %#x)%s", convolution_onednn.name,
                 convolution_onednn.instructions(), network_precision(n) == PRECISION_BFLOAT16 ? ", bfloat16" : "");
#else
    (void)n, (void)length;
#endif
}

const char *network_backend(void)
{
#if CONVOLUTION_ONEDNN
    if (convolution_onednn.block(16, 0)) /* 0: no fast code for this processor */
        return convolution_onednn.name;
#endif
    return convolution_blas.name;
}
