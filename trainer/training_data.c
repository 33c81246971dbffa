#include "trainer/training_data.h"

#include <inttypes.h>

static const char *transform_name(const struct train_options *o)
{
    return o->augment && o->recipe->transform ? o->recipe->transform : o->model->transform;
}

const struct transform *training_data_transform(const struct train_options *o)
{
    return transform_find(transform_name(o));
}

int training_data_batches(struct batch_plan *out, struct train_options *o, int workers, int worker, struct error *e)
{
    int rc;

    o->strategy.chosen = strategy_chooses(&o->strategy, workers);
    if (o->reproducible && o->strategy.chosen)
        return error_set(e, ERR_ARG,
                         "--reproducible: an update has the gradients that are first, which depends on time; train "
                         "without backup workers and records");
    rc = batch_sizes_aggregate(&o->sizes, o->strategy.aggregate, workers, e);
    return rc == OK ? batch_plan_make(out, &o->sizes, workers, worker, e) : rc;
}

/* Opens a part of the data, as the model reads it. */
static int open_split(struct dataset **out, const struct train_options *o, enum dataset_split split,
                      const struct shard *shard, const struct transform *t, struct error *e)
{
    const struct model *m = o->model;
    struct dataset_reading reading = o->reading;
    int rc;

    reading.fit = (struct dataset_shape){ m->height, m->width, m->channels, m->classes, m->integers };
    transform_fit(t, &reading.fit);
    if ((rc = dataset_open_as(out, o->data, o->data_directory, split, shard, &reading, e)) < 0)
        return rc;
    if (o->file && m->integers != ((*out)->element == ELEMENT_INT32))
        return error_set(e, ERR_ARG, "%s: its task is %s, but %s has %s", o->file->path,
                         m->integers ? "next_word" : "classification", o->data, dataset_unit(*out));
    if ((m->labels && (rc = dataset_sequences(*out, m->labels, e)) < 0) ||
        (rc = dataset_fit(*out, m->features, m->classes, e)) < 0)
        return error_prefix(e, "%s", m->name);
    return OK;
}

static int check_shape(const struct dataset *d, struct train_options *o, const struct transform *t, struct error *e)
{
    const struct model *m = o->model;
    const int height = t && t->height ? t->height : d->height, width = t && t->width ? t->width : d->width;
    const int channels = t && t->channels ? t->channels : d->channels, rc = transform_check(t, d, e);

    if (rc < 0)
        return rc;
    if (o->file)
        model_file_complete(o->file, height, width, channels, d->classes);
    if (height != m->height || width != m->width || channels != m->channels || d->classes != m->classes)
        return error_set(e, ERR_ARG, "%s is for %s of %dx%dx%d in %d classes, but %s has %dx%dx%d in %d", m->name,
                         dataset_unit(d), m->height, m->width, m->channels, m->classes, o->data, height, width,
                         channels, d->classes);
    return OK;
}

int training_data_open(struct dataset **out, struct train_options *o, int workers, int worker, struct error *e)
{
    const struct transform *t = training_data_transform(o);
    const struct shard shard = { o->shard, workers, worker, o->shard_rule };
    int rc = open_split(out, o, DATASET_TRAIN, &shard, t, e);

    if (rc == OK && (rc = dataset_hold_out(*out, (size_t)o->hold_out, e)) < 0)
        error_prefix(e, "--hold-out %" PRId64, o->hold_out);
    if (rc == OK && !t && transform_name(o))
        rc = error_set(e, ERR_ARG, "model %s: unknown transform '%s'", o->model->name, transform_name(o));
    if (rc == OK)
        rc = check_shape(*out, o, t, e);
    if (rc < 0) {
        dataset_free(*out);
        *out = NULL;
    }
    return rc;
}

int training_data_fills(const struct dataset *d, const struct train_options *o, const struct batch_plan *batches,
                        int workers, struct error *e)
{
    const int64_t together = o->shard == SHARD_RECORDS ? batches->together : batches->count;

    if (together <= (int64_t)d->count)
        return OK;
    return error_set(e, ERR_ARG, "--%s %d: a step of %d worker%s would take %" PRId64 " %s, but %s has %zu",
                     o->sizes.global_batch ? "global-batch" : "batch-size",
                     o->sizes.global_batch ? o->sizes.global_batch : o->sizes.batch_size, workers,
                     workers == 1 ? "" : "s", together, dataset_unit(d), o->data, d->count);
}

/* The other workers would wait for nobody, but what a smaller share has would count more than the rest. */
int training_data_even(const struct dataset *d, const struct train_options *o, int worker, uint64_t first,
                       struct error *e)
{
    if (o->shard != SHARD_FILES || !o->strategy.synchronous || d->count == first)
        return OK;
    return error_set(e, ERR_ARG,
                     "--shard files: worker %d has %zu %s of %s and worker 0 has %" PRIu64
                     ", so some would count more than others; use as many workers as divide the files evenly, or "
                     "--shard records",
                     worker, d->count, dataset_unit(d), o->data, first);
}

int training_data_check_test(const struct train_options *o, int64_t examples, struct error *e)
{
    const struct transform *t = transform_find(o->model->transform);
    struct dataset *d;
    int rc = open_split(&d, o, DATASET_TEST, NULL, t, e);

    if (rc == OK)
        rc = transform_check(t, d, e);
    if (rc == OK && (uint64_t)examples > d->count)
        rc = error_set(e, ERR_ARG, "--num-examples %" PRId64 ": data set %s has only %zu test %s", examples, o->data,
                       d->count, dataset_unit(d));
    dataset_free(d);
    return rc;
}
