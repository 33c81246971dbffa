#include "evaluator/score/builtin_runner.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "checkpoint/tensor_match.h"
#include "dataset/dataset.h"
#include "dataset/transform.h"
#include "evaluator/score/captioning.h"
#include "evaluator/score/evaluation_detail.h"
#include "evaluator/score/runner_log.h"
#include "evaluator/score/scoring.h"
#include "model/file/model_file.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLASS_NAME_MAX = 64, COMPLAINTS_SHOWN = 340, BATCH_SIZE = 128 };

/* Samples are read by several threads. */
struct trouble {
    pthread_mutex_t lock;
    struct error error;
};

struct builtin_runner {
    struct model_file *file; /* NULL: a built-in model */
    struct model built_in;   /* if it is one: with the precision that was asked for */
    const struct model *model;
    struct scoring *scoring;
    struct captioning *captioning; /* NULL: no captions are told */
    struct network *network;       /* of scoring */
    struct dataset *data;
    const struct transform *transform;
    uint64_t vocabulary; /* of the data; 0: none */
    int moving_averages, batch_size, threads;
    struct trouble *trouble; /* the first sample that could not be read while scoring */
    size_t examples;
    size_t width;                            /* elements of one example's input: floats, or int32_t words */
    float *images;                           /* (examples, width) of images; NULL: made for each batch */
    int32_t *labels;                         /* (examples, labels of a sample) */
    struct opened_checkpoint_floats *wanted; /* (variables); their entries: valid while a checkpoint is loaded */
    struct tensor_match *matches;            /* (variables); the same */
    unsigned metrics;
    int64_t detail_every;
    char (*class_text)[CLASS_NAME_MAX]; /* (classes) */
    const char **class_names;           /* (classes), into class_text; NULL: too many */
    struct runner_job job;              /* the one whose weights are loaded */
    double begin;                       /* monotonic */
};

/* ---- set up ------------------------------------------------------------------------------------------------------ */

static int transform_images(const struct builtin_runner *r, size_t first, size_t count, float *out, struct error *e)
{
    void *room = r->data->stream ? malloc(dataset_bytes(r->data)) : NULL;
    int rc = r->data->stream && !room ? error_memory(e, r->data->name, "for an image") : OK;

    for (size_t i = 0; i < count && rc == OK; i++) {
        size_t image = first + i, used;
        const void *sample;

        if ((rc = dataset_read(r->data, image, room, &sample, &used, e)) == OK)
            r->transform->apply(r->data, sample, 0, 0, (int64_t)image, out + i * r->width);
    }
    free(room);
    return rc;
}

/* Scoring goes on, and its result is thrown away. */
static void note_trouble(const struct builtin_runner *r, const struct error *e)
{
    pthread_mutex_lock(&r->trouble->lock);
    if (!r->trouble->error.code)
        r->trouble->error = *e;
    pthread_mutex_unlock(&r->trouble->lock);
}

static const void *input_of(const void *context, size_t first, size_t count, void *room)
{
    const struct builtin_runner *r = context;
    struct error e = { 0 };

    for (size_t i = 0; i < count && !r->transform; i++)
        memcpy((int32_t *)room + i * r->width, dataset_sample(r->data, first + i), r->width * sizeof(int32_t));
    if (!r->transform)
        return room;
    if (r->images)
        return r->images + first * r->width;
    if (transform_images(r, first, count, room, &e) < 0) {
        memset(room, 0, count * r->width * sizeof(float));
        note_trouble(r, &e);
    }
    return room;
}

static void features_of(const void *context, size_t first, size_t count, float *out)
{
    const struct builtin_runner *r = context;
    const size_t width = (size_t)r->model->features;
    struct error e = { 0 };

    for (size_t i = 0; i < count; i++)
        if (dataset_features(r->data, first + i, out + i * width, &e) < 0) {
            memset(out + i * width, 0, width * sizeof *out);
            note_trouble(r, &e);
        }
}

static int unknown(const char *what, const char *name, const char *const *names, struct error *e)
{
    struct buffer list = BUFFER_EMPTY;
    int rc;

    for (size_t i = 0; names[i]; i++)
        buffer_format(&list, "%s%s", i ? ", " : "", names[i]);
    rc = error_set(e, ERR_ARG, "unknown %s '%s'; known: %s", what, name, buffer_text(&list));
    buffer_release(&list);
    return rc;
}

static void name_bad_samples(const struct dataset *d, struct log *log)
{
    struct error why;

    if (!log || !d->stream || !sample_stream_bad(d->stream))
        return;
    while (sample_stream_next_bad(d->stream, &why))
        log_line(log, "left out %s", why.message);
    log_line(log, "left out %zu of %zu test images, which are broken", sample_stream_bad(d->stream),
             d->count + sample_stream_bad(d->stream));
}

static int open_data(struct builtin_runner *r, const struct builtin_runner_options *o, struct error *e)
{
    const struct model *m = r->model;
    struct dataset_reading reading = o->reading;
    struct dataset *d;
    int rc;

    reading.fit = (struct dataset_shape){ m->height, m->width, m->channels, m->classes, m->integers };
    transform_fit(transform_find(m->transform), &reading.fit);
    if ((rc = dataset_open_as(&r->data, o->data, o->data_directory, DATASET_TEST, NULL, &reading, e)) != OK)
        return rc;
    d = r->data;
    name_bad_samples(d, o->log);
    if (r->file && m->integers != (d->element == ELEMENT_INT32))
        return error_set(e, ERR_ARG, "%s: its task is %s, but data set %s has %s", r->file->path,
                         m->integers ? "next_word" : "classification", d->name, dataset_unit(d));
    if (m->labels && (rc = dataset_sequences(d, m->labels, e)) != OK)
        return error_prefix(e, "model %s", m->name);
    if ((rc = dataset_fit(d, m->features, m->classes, e)) != OK)
        return error_prefix(e, "model %s", m->name);
    if (!(r->transform = transform_find(m->transform)) && m->transform)
        return error_set(e, ERR_ARG, "model %s: unknown transform '%s'", m->name, m->transform);
    if ((rc = transform_check(r->transform, d, e)) != OK)
        return error_prefix(e, "model %s with data %s", m->name, d->name);
    if (r->file)
        model_file_complete(r->file, r->transform && r->transform->height ? r->transform->height : d->height,
                            r->transform && r->transform->width ? r->transform->width : d->width,
                            r->transform && r->transform->channels ? r->transform->channels : d->channels, d->classes);
    if (d->classes > m->classes)
        return error_set(e, ERR_ARG, "data set %s has %d classes, but model %s has only %d", d->name, d->classes,
                         m->name, m->classes);
    if ((r->transform && r->transform->height ? r->transform->height : d->height) != m->height ||
        (r->transform && r->transform->width ? r->transform->width : d->width) != m->width ||
        (r->transform && r->transform->channels ? r->transform->channels : d->channels) != m->channels)
        return error_set(e, ERR_ARG, "model %s takes %s of %dx%dx%d, but data set %s has %dx%dx%d", m->name,
                         dataset_unit(d), m->height, m->width, m->channels, d->name, d->height, d->width, d->channels);
    if (o->num_examples < 0 || (uint64_t)o->num_examples > d->count)
        return error_set(e, ERR_ARG, "--num-examples %lld: data set %s has only %zu test %s",
                         (long long)o->num_examples, d->name, d->count, dataset_unit(d));
    r->examples = o->num_examples ? (size_t)o->num_examples : d->count;
    if (!r->examples)
        return error_set(e, ERR_ARG, "data set %s has no test %s", d->name, dataset_unit(d));
    r->vocabulary = d->vocabulary;
    r->width = (size_t)m->height * (size_t)m->width * (size_t)m->channels;
    return OK;
}

/* Makes class names usable in tags: printable, without quotes and backslashes, no two alike. */
static int name_classes(struct builtin_runner *r, struct error *e)
{
    const size_t classes = (size_t)r->model->classes;

    if (classes > CLASSIFICATION_CONFUSION_MAX) {
        for (size_t i = 0; i < METRIC_COUNT; i++)
            if (metric_of_classes(r->metrics) & 1u << i)
                return error_set(e, ERR_ARG, "--metrics %s: %zu classes are too many; it is for up to %d",
                                 metric_names[i], classes, CLASSIFICATION_CONFUSION_MAX);
        return OK;
    }
    r->class_text = calloc(classes, sizeof *r->class_text);
    r->class_names = calloc(classes, sizeof *r->class_names);
    if (!r->class_text || !r->class_names)
        return error_memory(e, NULL, "for the names of %zu classes", classes);
    for (size_t k = 0; k < classes; k++) {
        char *text = r->class_text[k];

        if (k < (size_t)r->data->classes && r->data->class_names && *r->data->class_names[k])
            snprintf(text, CLASS_NAME_MAX - 24, "%s", r->data->class_names[k]);
        else
            snprintf(text, CLASS_NAME_MAX, "%zu", k);
        for (char *c = text; *c; c++)
            if (*c < ' ' || *c > '~' || strchr("\"'\\`", *c))
                *c = '_';
        for (size_t before = 0; before < k; before++)
            if (!strcmp(r->class_text[before], text)) {
                snprintf(text + strlen(text), 24, "_%zu", k);
                break;
            }
        r->class_names[k] = text;
    }
    return OK;
}

static int prepare_images(struct builtin_runner *r, size_t limit, struct error *e)
{
    const size_t each = dataset_labels(r->data);
    int rc;

    if (!(r->labels = calloc(r->examples, each * sizeof *r->labels)))
        return error_memory(e, NULL, "for the labels of %zu samples", r->examples);
    for (size_t i = 0; i < r->examples * each; i++)
        r->labels[i] = (int32_t)field_integer(&r->data->labels, i);
    if (!r->transform || r->examples > limit / sizeof(float) / r->width)
        return OK;
    if (!(r->images = aligned_alloc(64, (r->examples * r->width * sizeof(float) + 63) / 64 * 64)))
        return error_memory(e, NULL, "for %zu images of %zu floats", r->examples, r->width);
    if ((rc = transform_images(r, 0, r->examples, r->images, e)) != OK)
        return rc;
    dataset_free(r->data); /* the bytes are no longer needed */
    r->data = NULL;
    return OK;
}

static void runner_free(void *context)
{
    struct builtin_runner *r = context;

    if (!r)
        return;
    captioning_free(r->captioning);
    scoring_free(r->scoring);
    dataset_free(r->data);
    if (r->trouble)
        pthread_mutex_destroy(&r->trouble->lock);
    free(r->trouble);
    free(r->images);
    free(r->labels);
    free(r->wanted);
    free(r->matches);
    free(r->class_text);
    free(r->class_names);
    model_file_free(r->file);
    free(r);
}

/* ---- one checkpoint ---------------------------------------------------------------------------------------------- */

static const struct tensor_entry *find_average(const struct builtin_runner *r, const struct opened_checkpoint *b,
                                               const struct variable *v)
{
    char name[sizeof v->name + sizeof BUILTIN_RUNNER_AVERAGE];

    if (!r->moving_averages || !r->model->moving_averages || v->kind != VARIABLE_WEIGHT)
        return NULL;
    strcpy(name, v->name);
    strcat(name, BUILTIN_RUNNER_AVERAGE);
    return opened_checkpoint_find(b, name);
}

/* Writes each complaint to the job's log, one per line. 0: there is no log, or writing failed. */
static int write_complaints(const struct builtin_runner *r, const struct runner_job *c, size_t count, char *path,
                            size_t size)
{
    struct buffer lines = BUFFER_EMPTY;
    int done;

    if (!runner_log_path(c, path, size))
        return 0;
    tensor_match_complain(r->matches, count, "\n", &lines);
    buffer_append_byte(&lines, '\n');
    done = buffer_ok(&lines) && file_replace(NULL, path, lines.data, lines.length, NULL) == OK;
    buffer_release(&lines);
    return done;
}

/* All complaints in one sentence if they fit: about a dozen. Otherwise the rest is in a file. */
static int refuse(const struct builtin_runner *r, const struct runner_job *c, size_t wrong, size_t count,
                  struct error *e)
{
    struct buffer complaints = BUFFER_EMPTY;
    size_t shown = COMPLAINTS_SHOWN, taken;
    int cut, written = 0;
    char path[PATH_MAX];

    tensor_match_complain(r->matches, count, "; ", &complaints);
    if ((cut = complaints.length > shown)) {
        written = write_complaints(r, c, count, path, sizeof path);
        /* A long path takes room from the complaints, but not all of it. */
        taken = written ? strlen(path) + 9 : 0;
        shown = taken < COMPLAINTS_SHOWN - 60 ? COMPLAINTS_SHOWN - 3 - taken : 60;
    }
    error_set(e, ERR_ARG, "%s is not a checkpoint of model %s: %zu of %zu variables do not fit: %.*s%s%s%s",
              c->checkpoint->name, r->model->name, wrong, count, (int)shown, buffer_text(&complaints), cut ? "..." : "",
              written ? "; all in " : "", written ? path : "");
    buffer_release(&complaints);
    return ERR_ARG;
}

static int match(struct builtin_runner *r, const struct runner_job *c, enum evaluation_weights *weights,
                 struct error *e)
{
    size_t count, wrong, averages = 0, trainable = 0;
    const struct variable *v = network_variables(r->network, &count);

    for (size_t i = 0; i < count; i++) {
        const struct tensor_entry *average = find_average(r, c->opened, &v[i]);

        r->wanted[i].entry = average ? average : opened_checkpoint_find(c->opened, v[i].name);
        r->matches[i].entry = r->wanted[i].entry;
        averages += average != NULL;
        trainable += v[i].kind == VARIABLE_WEIGHT;
    }
    *weights = !averages ? WEIGHTS_VARIABLES : averages == trainable ? WEIGHTS_AVERAGES : WEIGHTS_MIXED;
    tensor_match_torch(r->matches, count, opened_checkpoint_from_torch(c->opened));
    wrong = tensor_match(r->matches, count);
    return wrong ? refuse(r, c, wrong, count, e) : OK;
}

/* Classes and input are numbers of words: with other words the same checkpoint would be scored wrongly. */
static int check_vocabulary(const struct builtin_runner *r, const struct runner_job *c, struct error *e)
{
    int64_t trained;

    if (!r->vocabulary || !opened_checkpoint_integer(c->opened, "evalboard/vocabulary", &trained) ||
        trained == (int64_t)r->vocabulary)
        return OK;
    return error_set(
        e, ERR_ARG,
        "%s was trained with another vocabulary than that of the files of --data-dir; evaluate it with the "
        "files that it was trained on",
        c->checkpoint->name);
}

/* Kernels as PyTorch has them were read to where they belong, in its order. */
static int reorder(const struct builtin_runner *r, size_t count, struct error *e)
{
    size_t most = 0;
    float *room;

    for (size_t i = 0; i < count; i++)
        if (r->matches[i].torch && r->wanted[i].count > most)
            most = r->wanted[i].count;
    if (!most)
        return OK;
    if (!(room = malloc(most * sizeof *room)))
        return error_memory(e, r->job.checkpoint->name, "for a variable of %zu elements", most);
    for (size_t i = 0; i < count; i++) {
        memcpy(room, r->wanted[i].out, r->wanted[i].count * sizeof *room);
        tensor_match_values(&r->matches[i], room, r->wanted[i].out);
    }
    free(room);
    return OK;
}

static int runner_load(void *context, const struct runner_job *c, enum evaluation_weights *weights, struct error *e)
{
    struct builtin_runner *r = context;
    size_t count;
    int rc;

    if ((rc = opened_checkpoint_enter(c->opened, c->path, e)) != OK)
        return rc;
    if (!opened_checkpoint_readable(c->opened))
        return error_set(e, ERR_ARG,
                         "%s is not in a format that the built-in models read (TensorFlow V2, safetensors)"
                         "; evaluate it with --exec",
                         c->checkpoint->name);
    if ((rc = match(r, c, weights, e)) != OK || (rc = check_vocabulary(r, c, e)) != OK)
        return rc;
    r->job = *c;
    r->begin = clock_monotonic();
    network_variables(r->network, &count);
    rc = opened_checkpoint_read_floats(c->opened, r->wanted, count, r->threads, e);
    return rc == OK ? reorder(r, count, e) : rc;
}

static int add_captions(const struct builtin_runner *r, struct evaluation_metrics *out, struct error *e)
{
    const struct caption_score *s = captioning_score(r->captioning);
    char name[] = "bleu_1";
    int rc = OK;

    for (int n = 1; n <= CAPTION_SCORE_GRAMS && rc == OK; n++) {
        name[sizeof name - 2] = (char)('0' + n);
        rc = evaluation_metrics_add(out, name, caption_score_bleu(s, n), e);
    }
    return rc == OK ? evaluation_metrics_add(out, "exact_match", caption_score_exact(s), e) : rc;
}

/* cross_entropy: the sum over the examples. The loss is its mean plus weight decay, as trainers log it. scored:
 * monotonic seconds when the scoring began. */
static int fill(const struct builtin_runner *r, const struct classification *counts, double cross_entropy,
                double scored, struct evaluation *out, struct error *e)
{
    const struct metric_evaluation v = { counts, r->class_names, &r->job, r->begin, scored };
    const double mean = cross_entropy / (double)counts->examples, loss = mean + network_decay_loss(r->network);
    int rc;

    out->examples = counts->examples;
    out->correct = counts->correct;
    if ((rc = evaluation_metrics_add(&out->metrics, EVALUATION_PRECISION, classification_top1(counts), e)) != OK ||
        (rc = evaluation_metrics_add(&out->metrics, EVALUATION_LOSS, loss, e)) != OK ||
        (rc = evaluation_metrics_add(&out->metrics, EVALUATION_CROSS_ENTROPY, mean, e)) != OK)
        return rc;
    for (size_t i = 0; i < METRIC_COUNT; i++)
        if (r->metrics & 1u << i && metric_table[i]->add &&
            (rc = metric_table[i]->add(&v, counts->cells[i], &out->metrics, e)) != OK)
            return rc;
    if (r->captioning && (rc = add_captions(r, &out->metrics, e)) != OK)
        return rc;
    if ((!metric_written(r->metrics) && !r->captioning) || !evaluation_detail_wanted(r->job.index, r->detail_every))
        return OK;
    out->detail_free = evaluation_detail_free;
    rc = evaluation_detail_new(&out->detail, r->metrics, counts, r->class_names, e);
    if (rc == OK && r->captioning && !(out->detail->captions = captioning_samples(r->captioning)))
        rc = error_memory(e, NULL, "for captions");
    return rc;
}

/* The captions of all images. SCORER_STOPPED: the caller asked for it. */
static int tell_captions(struct builtin_runner *r, scorer_tick *tick, void *tick_context, struct error *e)
{
    int rc;

    captioning_begin(r->captioning);
    do
        if (tick && tick(tick_context, captioning_share(r->captioning)))
            return SCORER_STOPPED;
    while ((rc = captioning_step(r->captioning, e)) > 0);
    return rc;
}

static int runner_evaluate(void *context, scorer_tick *tick, void *tick_context, struct evaluation *out,
                           struct error *e)
{
    struct builtin_runner *r = context;
    const struct classification *counts;
    const double scored = clock_monotonic();
    double cross_entropy;
    int rc;

    scoring_begin(r->scoring);
    do
        if (tick && tick(tick_context, scoring_share(r->scoring))) {
            scoring_end(r->scoring, NULL, NULL);
            return SCORER_STOPPED;
        }
    while (scoring_step(r->scoring));
    scoring_end(r->scoring, &counts, &cross_entropy);
    if (r->trouble->error.code) {
        *e = r->trouble->error;
        r->trouble->error.code = OK;
        return e->code;
    }
    if (r->captioning && (rc = tell_captions(r, tick, tick_context, e)) != OK)
        return rc;
    return fill(r, counts, cross_entropy, scored, out, e);
}

static int open_scoring(struct builtin_runner *r, struct log *log, struct error *e)
{
    const struct scoring_options options = {
        .model = r->model, .threads = r->threads, .batch_size = r->batch_size, .metrics = r->metrics
    };
    const struct scoring_source source = { input_of, r, r->labels, r->examples,
                                           r->model->features ? features_of : NULL };
    int rc;

    if (options.threads < 1 || options.threads > BUILTIN_RUNNER_THREADS_MAX)
        return error_set(e, ERR_ARG, "--threads %d: use 1 to %d", options.threads, BUILTIN_RUNNER_THREADS_MAX);
    if ((rc = scoring_new(&r->scoring, &options, &source, e)) != OK)
        return rc;
    r->network = scoring_network(r->scoring);
    if (log && r->model->precision != network_precision(r->network))
        log_line(log, "--precision bfloat16: this processor has neither AMX nor AVX512-BF16; evaluating in float32");
    else if (log && r->model->precision == PRECISION_BFLOAT16 && !network_bfloat16_is_fast())
        log_line(log, "--precision bfloat16: this processor has no AMX, and its AVX512-BF16 may be no faster than "
                      "float32");
    return OK;
}

/* All metrics are those that there are. */
static int open_captioning(struct builtin_runner *r, const struct builtin_runner_options *o, struct error *e)
{
    if (!(r->metrics & METRIC_CAPTIONS) || (r->metrics == METRIC_ALL && !r->model->features))
        return OK;
    if (!r->model->features)
        return error_set(e, ERR_ARG, "--metrics captions: model %s tells no captions; show_and_tell does",
                         r->model->name);
    return captioning_new(&r->captioning, r->network, r->data, (size_t)o->num_examples, e);
}

/* What the variables need from a checkpoint, and where the values go. */
static int list_variables(struct builtin_runner *r, struct error *e)
{
    size_t count;
    const struct variable *v = network_variables(r->network, &count);

    r->wanted = calloc(count + 1, sizeof *r->wanted);
    r->matches = calloc(count + 1, sizeof *r->matches);
    if (!r->wanted || !r->matches)
        return error_memory(e, NULL, "for %zu variables", count);
    for (size_t i = 0; i < count; i++) {
        r->wanted[i].out = v[i].offset + (v[i].kind == VARIABLE_WEIGHT ? network_parameters(r->network)
                                                                       : network_statistics(r->network));
        r->wanted[i].count = v[i].count;
        r->matches[i] = (struct tensor_match){
            .name = v[i].name, .rank = v[i].rank, .shape = v[i].shape, .pixels = v[i].pixels
        };
    }
    return OK;
}

/* That of a file is changed there, as its number of classes may be that of the data, known later. */
static int find_model(struct builtin_runner *r, const struct builtin_runner_options *o, struct error *e)
{
    const struct model *found = NULL;
    struct model *model = &r->built_in;
    int rc;

    if (model_file_is_path(o->model)) {
        if ((rc = model_file_open(&r->file, o->model, e)) != OK)
            return rc;
        model = &r->file->model;
    } else if ((found = model_find(o->model))) {
        *model = *found;
    } else {
        return unknown("model", o->model, model_names(), e);
    }
    model->precision = o->bfloat16 ? PRECISION_BFLOAT16 : PRECISION_FLOAT32;
    r->model = model;
    return OK;
}

int builtin_runner_new(struct scorer *out, const struct builtin_runner_options *o, struct error *e)
{
    struct builtin_runner *r = calloc(1, sizeof *r);
    int rc;

    if (!r || !(r->trouble = calloc(1, sizeof *r->trouble))) {
        free(r);
        return error_memory(e, NULL, "for the runner");
    }
    pthread_mutex_init(&r->trouble->lock, NULL);
    if ((rc = find_model(r, o, e)) != OK)
        goto fail;
    r->moving_averages = o->moving_averages;
    r->metrics = o->metrics;
    r->detail_every = o->detail_every;
    r->batch_size = o->batch_size ? (int)o->batch_size : BATCH_SIZE;
    r->threads = o->threads ? (int)o->threads : 1;
    if ((rc = open_data(r, o, e)) != OK)
        goto fail;
    if ((size_t)r->batch_size > r->examples)
        r->batch_size = (int)r->examples;
    if ((rc = name_classes(r, e)) != OK ||
        (rc = prepare_images(r, o->image_bytes ? o->image_bytes : (size_t)512 << 20, e)) != OK ||
        (rc = open_scoring(r, o->log, e)) != OK || (rc = list_variables(r, e)) != OK ||
        (rc = open_captioning(r, o, e)) != OK)
        goto fail;
    *out = (struct scorer){ "built-in", runner_load, runner_evaluate, runner_free, r };
    return OK;
fail:
    runner_free(r);
    return rc;
}
