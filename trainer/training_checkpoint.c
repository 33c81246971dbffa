#include "trainer/training_checkpoint.h"

#include "base/buffer.h"
#include "base/file.h"
#include "checkpoint/directory/checkpoint_directory.h"
#include "checkpoint/tensor_bundle.h"
#include "checkpoint/tensor_match.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMPLAINTS_SHOWN = 260 };

static const struct optimizer_rule *rule_of(const struct optimizer *o)
{
    return optimizer_kind_rules[optimizer_options_of(o)->kind];
}

/* The name of what an array holds of variable v, in `out`; 0: it holds nothing. */
static int array_name(const struct optimizer *o, const struct variable *v, enum optimizer_array_kind kind, char *out)
{
    const char *last = strrchr(v->name, '/');
    const char *suffix = NULL;

    if ((v->kind == VARIABLE_STATISTIC) != (kind == ARRAY_STATISTICS || kind == ARRAY_BIASED))
        return 0;
    switch (kind) {
    case ARRAY_WEIGHTS:
    case ARRAY_STATISTICS: suffix = ""; break;
    case ARRAY_SLOT_1:
    case ARRAY_SLOT_2:
        snprintf(out, TRAINING_NAME_BYTES, "%s/%s", v->name, rule_of(o)->slots[kind == ARRAY_SLOT_2]);
        return 1;
    case ARRAY_AVERAGES: suffix = "/ExponentialMovingAverage"; break;
    case ARRAY_BIASED: /* the scope twice, as in TensorFlow 1 */
        if (!v->debias_scope[0])
            return 0;
        snprintf(out, TRAINING_NAME_BYTES, "%s/%s/%s/biased", v->debias_scope, v->debias_scope,
                 last ? last + 1 : v->name);
        return 1;
    case ARRAY_KINDS: return 0;
    }
    snprintf(out, TRAINING_NAME_BYTES, "%s%s", v->name, suffix);
    return 1;
}

/* The next variable from *i on of which the array holds something, under that name; NULL: there is none. */
static const struct variable *next_in(const struct optimizer *o, enum optimizer_array_kind kind, size_t *i, char *name)
{
    size_t count;
    const struct variable *v = network_variables(optimizer_network(o), &count);

    while (*i < count)
        if (array_name(o, &v[(*i)++], kind, name))
            return &v[*i - 1];
    return NULL;
}

static void local_step_name(const char *biased, char *out)
{
    snprintf(out, TRAINING_NAME_BYTES, "%.*s/local_step", (int)(strlen(biased) - strlen("/biased")), biased);
}

/* ---- saving ------------------------------------------------------------------------------------------------------ */

static struct training_tensor *next_tensor(struct training_tensors *t, enum training_source source, const char *name)
{
    struct training_tensor *at = &t->items[t->count++];

    memset(at, 0, sizeof *at);
    at->source = source;
    snprintf(at->name, sizeof at->name, "%s", name);
    return at;
}

static void add_integer(struct training_tensors *t, const char *name, int64_t value)
{
    next_tensor(t, TRAINING_INTEGER, name)->number = value;
}

/* A count of updates that is so far ahead of the global step. */
static void add_updates(struct training_tensors *t, enum training_source source, const char *name, int64_t ahead)
{
    next_tensor(t, source, name)->number = ahead;
}

static void add_power(struct training_tensors *t, const char *name, double base, int64_t ahead)
{
    struct training_tensor *at = next_tensor(t, TRAINING_POWER, name);

    at->base = base;
    at->number = ahead + 1;
}

static void add_text(struct training_tensors *t, const char *name, const char *text)
{
    struct training_tensor *at = next_tensor(t, TRAINING_TEXT, name);

    snprintf(at->text, sizeof at->text, "%s", text);
}

static void add_arrays(struct training_tensors *t, struct optimizer *o)
{
    const int64_t ahead = optimizer_counters(o)->statistics_ahead;
    size_t count;
    const struct variable *v = network_variables(optimizer_network(o), &count);
    char name[TRAINING_NAME_BYTES], step[TRAINING_NAME_BYTES];

    for (size_t i = 0; i < count; i++)
        for (int kind = 0; kind < ARRAY_KINDS; kind++) {
            struct training_tensor *at;

            if (optimizer_array(o, (enum optimizer_array_kind)kind).count == 0 ||
                !array_name(o, &v[i], (enum optimizer_array_kind)kind, name))
                continue;
            at = next_tensor(t, TRAINING_ARRAY, name);
            at->kind = (enum optimizer_array_kind)kind;
            at->rank = v[i].rank;
            memcpy(at->shape, v[i].shape, sizeof at->shape);
            at->offset = v[i].offset;
            at->count = v[i].count;
            if (kind == ARRAY_BIASED) {
                local_step_name(name, step);
                add_updates(t, TRAINING_UPDATES_FLOAT, step, ahead);
            }
        }
}

/* Those of which there are always the same number. */
enum { OTHER_TENSORS = 20 };

int training_tensors_of(struct training_tensors *t, struct optimizer *o, const struct loss_averages *losses,
                        const struct training_position *p, struct error *e)
{
    const struct optimizer_counters *ahead = optimizer_counters(o);
    size_t variables;

    _Static_assert(sizeof t->items->shape == sizeof((struct variable *)NULL)->shape, "a tensor has a variable's shape");
    network_variables(optimizer_network(o), &variables);
    memset(t, 0, sizeof *t);
    if (!(t->items = calloc(variables * (ARRAY_KINDS + 1) + losses->count + OTHER_TENSORS, sizeof *t->items)))
        return error_memory(e, NULL, "for the names in a checkpoint of %zu variables", variables);
    add_arrays(t, o);
    for (size_t i = 0; i < losses->count; i++)
        next_tensor(t, TRAINING_LOSS, losses->items[i].name)->offset = i;
    if (rule_of(o)->beta2 > 0) {
        add_power(t, "beta1_power", rule_of(o)->beta1, ahead->adam_ahead);
        add_power(t, "beta2_power", rule_of(o)->beta2, ahead->adam_ahead);
        add_updates(t, TRAINING_UPDATES, "evalboard/adam_updates", ahead->adam_ahead);
    }
    add_updates(t, TRAINING_UPDATES, "global_step", 0);
    add_integer(t, "evalboard/seed", (int64_t)p->seed);
    add_updates(t, TRAINING_UPDATES, "evalboard/statistics_updates", ahead->statistics_ahead);
    add_integer(t, "evalboard/world_size", p->world_size);
    add_integer(t, "evalboard/workers", p->workers);
    add_integer(t, "evalboard/batch_size", p->batch_size);
    if (p->micro_shards) {
        add_integer(t, "evalboard/global_batch", p->global_batch);
        add_integer(t, "evalboard/micro_shards", p->micro_shards);
        add_text(t, "evalboard/kernels", p->kernels);
    }
    if (p->threads)
        add_integer(t, "evalboard/threads", p->threads);
    if (p->vocabulary)
        add_integer(t, "evalboard/vocabulary", (int64_t)p->vocabulary);
    add_text(t, "evalboard/run_option", p->run_option);
    add_text(t, "evalboard/shard", p->shard);
    add_text(t, "evalboard/data", p->data);
    add_text(t, "evalboard/model", network_model(optimizer_network(o))->name);
    add_text(t, "evalboard/optimizer", optimizer_kind_names[optimizer_options_of(o)->kind]);
    return OK;
}

void training_values_of(struct training_values *v, struct optimizer *o, const struct loss_averages *losses,
                        int64_t step)
{
    memset(v, 0, sizeof *v);
    for (int kind = 0; kind < ARRAY_KINDS; kind++)
        v->arrays[kind] = optimizer_array(o, (enum optimizer_array_kind)kind).values;
    v->losses = losses->items;
    v->step = step;
}

static int write_tensor(struct tensor_bundle_writer *w, const struct training_tensor *t,
                        const struct training_values *v, struct error *e)
{
    const int64_t updates = v->step + t->number, length = (int64_t)strlen(t->text);
    float f = 0;

    switch (t->source) {
    case TRAINING_ARRAY:
        return tensor_bundle_writer_add(w, t->name, TENSOR_FLOAT, t->rank, t->shape, v->arrays[t->kind] + t->offset,
                                        t->count * sizeof(float), e);
    case TRAINING_INTEGER:
        return tensor_bundle_writer_add(w, t->name, TENSOR_INT64, 0, NULL, &t->number, sizeof t->number, e);
    case TRAINING_UPDATES:
        return tensor_bundle_writer_add(w, t->name, TENSOR_INT64, 0, NULL, &updates, sizeof updates, e);
    case TRAINING_TEXT:
        return tensor_bundle_writer_add(w, t->name, TENSOR_UINT8, 1, &length, t->text, (size_t)length, e);
    case TRAINING_UPDATES_FLOAT: f = (float)updates; break;
    case TRAINING_POWER: f = (float)pow(t->base, (double)updates); break;
    case TRAINING_LOSS: f = v->losses[t->offset].value; break;
    }
    return tensor_bundle_writer_add(w, t->name, TENSOR_FLOAT, 0, NULL, &f, sizeof f, e);
}

int training_checkpoint_write(const struct io *io, const char *directory, size_t keep, const struct training_tensors *t,
                              const struct training_values *v, struct error *e)
{
    char name[64], prefix[4096];
    struct tensor_bundle_writer *w;
    int rc;

    _Static_assert(sizeof(real) == sizeof(float), "checkpoints hold float32");
    snprintf(name, sizeof name, "model.ckpt-%" PRId64, v->step);
    if ((rc = file_join(prefix, sizeof prefix, directory, name, e)) < 0 ||
        (rc = tensor_bundle_writer_open(&w, io, prefix, e)) < 0)
        return rc;
    for (size_t i = 0; i < t->count && rc == OK; i++)
        rc = write_tensor(w, &t->items[i], v, e);
    if (rc < 0) {
        tensor_bundle_writer_abandon(w);
        return rc;
    }
    if ((rc = tensor_bundle_writer_finish(w, e)) < 0)
        return rc;
    return checkpoint_directory_commit(io, directory, name, keep, e);
}

int training_checkpoint_save(const struct io *io, const char *directory, size_t keep, struct optimizer *o,
                             const struct loss_averages *losses, const struct training_position *position,
                             struct error *e)
{
    struct training_tensors tensors;
    struct training_values values;
    int rc = training_tensors_of(&tensors, o, losses, position, e);

    if (rc < 0)
        return rc;
    training_values_of(&values, o, losses, position->global_step);
    rc = training_checkpoint_write(io, directory, keep, &tensors, &values, e);
    free(tensors.items);
    return rc;
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

static struct tensor_match match_of(const struct tensor_bundle *b, const struct variable *v, const char *name)
{
    return (
        struct tensor_match){ .name = name, .rank = v->rank, .shape = v->shape, .entry = tensor_bundle_find(b, name) };
}

/* Checks that all weights and statistics fit. If not, one sentence names those that do not, as many as fit in. */
static int training_checkpoint_check(struct tensor_bundle *b, struct optimizer *o, struct error *e)
{
    const struct network *n = optimizer_network(o);
    size_t count, wrong;
    const struct variable *v = network_variables(n, &count);
    struct tensor_match *matches = calloc(count + 1, sizeof *matches);
    struct buffer text = BUFFER_EMPTY;

    if (!matches)
        return error_memory(e, tensor_bundle_prefix(b), "for %zu variables", count);
    for (size_t i = 0; i < count; i++)
        matches[i] = match_of(b, &v[i], v[i].name);
    if ((wrong = tensor_match(matches, count))) {
        tensor_match_complain(matches, count, "; ", &text);
        error_set(e, ERR_ARG, "%s: not a checkpoint of model %s: %zu of %zu variables do not fit: %.*s%s",
                  tensor_bundle_prefix(b), network_model(n)->name, wrong, count, COMPLAINTS_SHOWN, buffer_text(&text),
                  text.length > COMPLAINTS_SHOWN ? "..." : "");
    }
    buffer_release(&text);
    free(matches);
    return wrong ? ERR_ARG : OK;
}

/* 1: the checkpoint has all of an array (or the array is empty). Slots come in pairs: m is useless without v. */
static int has_array(struct tensor_bundle *b, const struct optimizer *o, enum optimizer_array_kind kind)
{
    const struct variable *v;
    char name[TRAINING_NAME_BYTES];

    for (size_t i = 0; (v = next_in(o, kind, &i, name));) {
        struct tensor_match m = match_of(b, v, name);

        if (tensor_match(&m, 1))
            return 0;
    }
    return kind != ARRAY_SLOT_1 || !rule_of(o)->slots[1] || has_array(b, o, ARRAY_SLOT_2);
}

static int load_array(struct tensor_bundle *b, struct optimizer *o, enum optimizer_array_kind kind, struct error *e)
{
    struct optimizer_array a = optimizer_array(o, kind);
    const struct variable *v;
    char name[TRAINING_NAME_BYTES];
    int rc = OK;

    for (size_t i = 0; rc == OK && (v = next_in(o, kind, &i, name));)
        rc = tensor_bundle_read_float(b, tensor_bundle_find(b, name), a.values + v->offset, v->count, e);
    return rc;
}

/* 1: read, 0: does not exist (value unchanged), < 0: an error. */
static int integer(struct tensor_bundle *b, const char *name, int64_t *value, struct error *e)
{
    const struct tensor_entry *t = tensor_bundle_find(b, name);
    int rc = t ? tensor_bundle_read_integer(b, t, value, e) : 0;

    return t && rc == OK ? 1 : rc;
}

static void text_of(struct tensor_bundle *b, const char *name, char *out, size_t size)
{
    const struct tensor_entry *t = tensor_bundle_find(b, name);

    out[0] = 0;
    if (t && t->type == TENSOR_UINT8 && t->rank == 1 && t->elements < size &&
        tensor_bundle_read(b, t, out, (size_t)t->elements, NULL) == OK)
        out[t->elements] = 0;
}

/* How many updates adam has made, if the checkpoint does not say: from beta2_power = beta2^(t + 1). */
static int64_t adam_updates(struct tensor_bundle *b, const struct optimizer *o, int64_t global_step)
{
    const struct tensor_entry *t = tensor_bundle_find(b, "beta2_power");
    float power;

    if (!t || !(rule_of(o)->beta2 > 0) || t->elements != 1 || tensor_bundle_read_float(b, t, &power, 1, NULL) < 0)
        return global_step;
    if (!(power > 1e-30f) || power > 1) /* underflow: the corrections have long been 1 */
        return global_step;
    return llround(log((double)power) / log(rule_of(o)->beta2)) - 1;
}

static int load_position(struct tensor_bundle *b, struct training_position *p, struct error *e)
{
    int64_t seed = (int64_t)p->seed, vocabulary = 0;
    int rc;

    p->global_step = p->world_size = p->workers = p->batch_size = p->micro_shards = p->threads = 0;
    if ((rc = integer(b, "global_step", &p->global_step, e)) < 0 || (rc = integer(b, "evalboard/seed", &seed, e)) < 0 ||
        (rc = integer(b, "evalboard/world_size", &p->world_size, e)) < 0 ||
        (rc = integer(b, "evalboard/workers", &p->workers, e)) < 0 ||
        (rc = integer(b, "evalboard/batch_size", &p->batch_size, e)) < 0 ||
        (rc = integer(b, "evalboard/micro_shards", &p->micro_shards, e)) < 0 ||
        (rc = integer(b, "evalboard/threads", &p->threads, e)) < 0 ||
        (rc = integer(b, "evalboard/vocabulary", &vocabulary, e)) < 0)
        return rc;
    p->vocabulary = (uint64_t)vocabulary;
    p->global_batch = p->workers * p->batch_size;
    if ((rc = integer(b, "evalboard/global_batch", &p->global_batch, e)) < 0)
        return rc;
    if (p->global_step < 0)
        return error_set(e, ERR_CORRUPT, "global_step is %" PRId64, p->global_step);
    p->seed = (uint64_t)seed;
    text_of(b, "evalboard/run_option", p->run_option, sizeof p->run_option);
    text_of(b, "evalboard/shard", p->shard, sizeof p->shard);
    text_of(b, "evalboard/data", p->data, sizeof p->data);
    text_of(b, "evalboard/kernels", p->kernels, sizeof p->kernels);
    return OK;
}

/* How many updates the zero-debiased statistics have had, if the checkpoint has them but not our count. */
static int64_t statistics_updates(struct tensor_bundle *b, const struct optimizer *o, int64_t global_step)
{
    char biased[TRAINING_NAME_BYTES], name[TRAINING_NAME_BYTES];
    const struct tensor_entry *t = NULL;
    size_t first = 0;
    float updates;

    if (next_in(o, ARRAY_BIASED, &first, biased)) {
        local_step_name(biased, name);
        t = tensor_bundle_find(b, name);
    }
    if (t && t->elements == 1 && tensor_bundle_read_float(b, t, &updates, 1, NULL) == OK && updates >= 0 &&
        updates < 1e15f)
        return llroundf(updates);
    return global_step;
}

static int load_state(struct tensor_bundle *b, struct optimizer *o, struct training_position *p, struct error *e)
{
    struct optimizer_counters *c = optimizer_counters(o);
    int kind = CHECKPOINT_EXACT, has[ARRAY_KINDS] = { 0 }, rc;
    int64_t updates;

    if ((rc = load_array(b, o, ARRAY_WEIGHTS, e)) < 0 || (rc = load_array(b, o, ARRAY_STATISTICS, e)) < 0)
        return rc;
    optimizer_reset(o, p->global_step);
    for (int k = ARRAY_SLOT_1; k < ARRAY_KINDS; k++) {
        if (optimizer_array(o, (enum optimizer_array_kind)k).count == 0)
            continue;
        has[k] = has_array(b, o, (enum optimizer_array_kind)(k == ARRAY_SLOT_2 ? ARRAY_SLOT_1 : k));
        if (!has[k])
            kind = CHECKPOINT_FOREIGN;
        else if ((rc = load_array(b, o, (enum optimizer_array_kind)k, e)) < 0)
            return rc;
    }
    updates = has[ARRAY_BIASED] ? statistics_updates(b, o, p->global_step) : p->global_step;
    if (has[ARRAY_BIASED] && (rc = integer(b, "evalboard/statistics_updates", &updates, e)) < 0)
        return rc;
    c->statistics_ahead = updates - p->global_step;
    updates = has[ARRAY_SLOT_2] ? adam_updates(b, o, p->global_step) : p->global_step;
    if (has[ARRAY_SLOT_2] && (rc = integer(b, "evalboard/adam_updates", &updates, e)) < 0)
        return rc;
    /* Slots that begin anew have had no updates, and adam's corrections begin anew with them. */
    c->adam_ahead = rule_of(o)->slots[1] && !has[ARRAY_SLOT_2] ? -p->global_step : updates - p->global_step;
    return kind;
}

/* Missing ones stay unchanged. */
static int load_losses(struct tensor_bundle *b, struct loss_averages *losses, struct error *e)
{
    int rc = OK;

    for (size_t i = 0; i < losses->count && rc == OK; i++) {
        const struct tensor_entry *t = tensor_bundle_find(b, losses->items[i].name);

        if (t && t->elements == 1)
            rc = tensor_bundle_read_float(b, t, &losses->items[i].value, 1, e);
    }
    return rc;
}

int training_checkpoint_load(const char *prefix, struct optimizer *o, struct loss_averages *losses,
                             struct training_position *position, struct error *e)
{
    struct training_position p = *position;
    struct tensor_bundle *b;
    int rc = tensor_bundle_open(&b, prefix, e);

    if (rc < 0)
        return rc;
    rc = training_checkpoint_check(b, o, e);
    if (rc == OK && (rc = load_position(b, &p, e)) < 0)
        error_prefix(e, "%s", prefix);
    if (rc == OK)
        rc = load_state(b, o, &p, e);
    if (rc >= 0) {
        int averages = load_losses(b, losses, e);

        rc = averages < 0 ? averages : rc;
    }
    tensor_bundle_close(b);
    if (rc >= 0)
        *position = p;
    return rc;
}
