/*
 * caption_tool.c - decoders of captions by hand, for the peer tests: numbers go in and out as raw little-endian files.
 *
 *   caption_tool infer MODEL PREFIX BATCHES OUT        weights from checkpoint PREFIX; OUT: logits of all sentences
 *   caption_tool train MODEL PREFIX BATCHES COUNT RATE CLIP SEED OUT
 *                                                      a step of gradient descent for each COUNT sentences; prints the
 *                                                      mean cross entropy and, if clipped, the gradient's norm of each;
 *                                                      OUT: the first step's gradient, then the weights after the last
 *   caption_tool kept BATCHES COUNT NUMBER SIZE KEEP SEED OUT
 *                                                      which of SIZE values of each sentence dropout NUMBER keeps in
 *                                                      the same steps: OUT: (sentences, SIZE), 1 or 0
 *   caption_tool batches DATA MODEL COUNT STEPS SEED BATCHES
 *                                                      the training batches of a directory of captions, as a worker
 *                                                      that is alone reads them
 *   caption_tool tell MODEL PREFIX BATCHES BEAMS LONGEST POWER START END
 *                                                      searches a sentence for each row of features; prints a line for
 *                                                      each beam: row, score, log-probability, words
 *
 * BATCHES is a directory of the files words, labels (int32), weights, features (float32) and samples (int64): a row for
 * each sentence.
 */
#include "base/file.h"
#include "base/random.h"
#include "dataset/batch_source.h"
#include "model/decoder.h"
#include "tests/peers/loaded_network.h"
#include "trainer/optimizers/optimizer.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_LIMIT = 1 << 30 };

enum part { WORDS, LABELS, WEIGHTS, FEATURES, SAMPLES, PARTS };
static const char *const part_names[PARTS] = { "words", "labels", "weights", "features", "samples" };

struct sentences {
    struct buffer parts[PARTS];
    int count;
};

static void release(struct sentences *s)
{
    for (int i = 0; i < PARTS; i++)
        buffer_release(&s->parts[i]);
}

static int read_sentences(struct sentences *s, const char *directory, struct error *e)
{
    char path[PATH_MAX];
    int rc;

    memset(s, 0, sizeof *s);
    for (int i = 0; i < PARTS; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, part_names[i]);
        if ((rc = file_read(path, FILE_LIMIT, &s->parts[i], e)) < 0)
            return rc;
    }
    s->count = (int)(s->parts[SAMPLES].length / sizeof(int64_t));
    return OK;
}

/* Sentences [first, first + count) of s as a batch of step `step` of m. */
static struct batch batch_of(const struct sentences *s, const struct model *m, int first, int count, int64_t step)
{
    const int each = model_labels(m);
    struct batch b = { .step = step, .count = s->count, .field_count = FIELD_FEATURES + 1 };

    b.samples = (const int64_t *)(const void *)s->parts[SAMPLES].data;
    b.fields[FIELD_INPUT] = (struct field){ s->parts[WORDS].data, ELEMENT_INT32, 4, { s->count, each, 1, 1 } };
    b.fields[FIELD_LABELS] = (struct field){ s->parts[LABELS].data, ELEMENT_INT32, 2, { s->count, each } };
    b.fields[FIELD_WEIGHTS] = (struct field){ s->parts[WEIGHTS].data, ELEMENT_FLOAT32, 2, { s->count, each } };
    b.fields[FIELD_FEATURES] = (struct field){ s->parts[FEATURES].data, ELEMENT_FLOAT32, 2, { s->count, m->features } };
    return batch_part(&b, first, count);
}

static int infer(char **argv, struct error *e)
{
    struct network *n = NULL;
    struct sentences s;
    real *logits = NULL;
    struct batch b;
    size_t count;
    int rc;

    if ((rc = read_sentences(&s, argv[2], e)) < 0 || (rc = loaded_network(&n, argv[0], argv[1], s.count, e)) < 0)
        goto done;
    b = batch_of(&s, network_model(n), 0, s.count, 0);
    count = (size_t)s.count * (size_t)model_labels(network_model(n)) * (size_t)network_model(n)->classes;
    if (!(logits = calloc(count + 1, sizeof *logits))) {
        rc = error_memory(e, NULL, "left");
        goto done;
    }
    network_infer_batch(n, &b, logits);
    rc = file_replace(NULL, argv[3], logits, count * sizeof *logits, e);
done:
    free(logits);
    network_free(n);
    release(&s);
    return rc;
}

static int train(char **argv, struct error *e)
{
    const struct optimizer_options options = { .kind = OPTIMIZER_SGD,
                                               .learning_rate = atof(argv[4]),
                                               .clip_norm = atof(argv[5]) };
    const int count = atoi(argv[3]);
    struct buffer out = BUFFER_EMPTY;
    struct optimizer *o = NULL;
    struct network *n = NULL;
    struct sentences s;
    size_t bytes;
    int rc;

    if ((rc = read_sentences(&s, argv[2], e)) < 0 || (rc = loaded_network(&n, argv[0], argv[1], count, e)) < 0 ||
        (rc = optimizer_new(&o, n, &options, e)) < 0)
        goto done;
    bytes = network_parameter_count(n) * sizeof(real);
    for (int step = 0; (step + 1) * count <= s.count; step++) {
        const struct batch b = batch_of(&s, network_model(n), step * count, count, step);
        struct score score;

        network_train(n, &b, strtoull(argv[6], NULL, 10), NULL, &score);
        if (step == 0)
            buffer_append(&out, network_exchange(n), bytes);
        optimizer_measure(o, step, network_exchange(n));
        optimizer_apply(o, step, network_exchange(n), 0, network_exchange_count(n) - 1);
        printf("%.9g %.9g\n", score_loss(&score), optimizer_gradient_norm(o));
    }
    buffer_append(&out, network_parameters(n), bytes);
    rc = buffer_ok(&out) ? file_replace(NULL, argv[7], out.data, out.length, e) : error_memory(e, NULL, "left");
done:
    buffer_release(&out);
    optimizer_free(o);
    network_free(n);
    release(&s);
    return rc;
}

/* By the definition in model/layers/dropout.c; that the network draws the same is what the test shows. */
static int kept(char **argv, struct error *e)
{
    const uint32_t number = (uint32_t)atoi(argv[2]), below = (uint32_t)(atof(argv[4]) * 4294967296.0);
    const int count = atoi(argv[1]), size = atoi(argv[3]);
    struct buffer out = BUFFER_EMPTY;
    struct sentences s;
    int rc;

    if ((rc = read_sentences(&s, argv[0], e)) < 0)
        goto done;
    for (int i = 0; i < s.count; i++) {
        struct random r;

        random_init(&r, strtoull(argv[5], NULL, 10), RANDOM_DROPOUT, (uint64_t)(i / count),
                    ((const uint64_t *)(const void *)s.parts[SAMPLES].data)[i]);
        r.draw = number << 18;
        for (int k = 0; k < size; k++) {
            const float keep = random_u32(&r) < below;

            buffer_append(&out, &keep, sizeof keep);
        }
    }
    rc = buffer_ok(&out) ? file_replace(NULL, argv[6], out.data, out.length, e) : error_memory(e, NULL, "left");
done:
    buffer_release(&out);
    release(&s);
    return rc;
}

static int put_parts(const struct sentences *s, const char *directory, struct error *e)
{
    char path[PATH_MAX];
    int rc = OK;

    for (int i = 0; i < PARTS && rc == OK; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, part_names[i]);
        rc = buffer_ok(&s->parts[i]) ? file_replace(NULL, path, s->parts[i].data, s->parts[i].length, e)
                                     : error_memory(e, NULL, "left");
    }
    return rc;
}

static int batches(char **argv, struct error *e)
{
    static const int fields[PARTS - 1] = { FIELD_INPUT, FIELD_LABELS, FIELD_WEIGHTS, FIELD_FEATURES };
    const struct batch_source_options options = { .batch_size = atoi(argv[2]),
                                                  .seed = strtoull(argv[4], NULL, 10),
                                                  .shard = { SHARD_RECORDS, 1, 0, 0 } };
    const struct model *m = loaded_model(argv[1], e);
    struct batch_source *source = NULL;
    struct sentences s = { .count = 0 };
    struct dataset *d = NULL;
    int rc;

    if (!m)
        return e->code;
    if ((rc = dataset_open(&d, "captions", argv[0], DATASET_TRAIN, NULL, e)) < 0 ||
        (rc = dataset_sequences(d, m->labels, e)) < 0 || (rc = dataset_fit(d, m->features, m->classes, e)) < 0 ||
        (rc = batch_source_new(&source, d, &options, e)) < 0)
        goto done;
    for (int step = 0; step < atoi(argv[3]); step++) {
        const struct batch *b;

        if ((rc = batch_source_next(source, &b, e)) < 0)
            goto done;
        for (int i = 0; i < PARTS - 1; i++) {
            const char *from = b->fields[fields[i]].data, *end = field_at(&b->fields[fields[i]], (size_t)b->count);

            buffer_append(&s.parts[i], from, (size_t)(end - from));
        }
        buffer_append(&s.parts[SAMPLES], b->samples, (size_t)b->count * sizeof *b->samples);
    }
    rc = put_parts(&s, argv[5], e);
done:
    batch_source_free(source);
    dataset_free(d);
    release(&s);
    return rc;
}

/* states: of the one before the first word; room for all beams, twice. */
static void search(struct decoder *d, struct beam_search *s, int classes, real *states, real *next, real *logits)
{
    const size_t size = decoder_state(d);
    int32_t words[BEAM_SEARCH_BEAMS_MAX];
    int rows;

    memcpy(next, states, size * sizeof *next);
    while ((rows = beam_search_rows(s)) > 0) {
        for (int k = 0; k < rows; k++) {
            const struct beam_sentence *b = &s->partial[k];

            memcpy(states + (size_t)k * size, next + (size_t)b->parent * size, size * sizeof *states);
            words[k] = b->words[b->count - 1];
        }
        decoder_step(d, rows, words, states, next, logits);
        beam_search_advance(s, classes, logits);
    }
}

static void print_sentences(int row, const struct beam_search *s)
{
    int count;
    const struct beam_sentence *found = beam_search_result(s, &count);

    for (int k = 0; k < count; k++) {
        printf("%d %.9g %.9g", row, found[k].score, found[k].log_probability);
        for (int i = 0; i < found[k].count; i++)
            printf(" %d", found[k].words[i]);
        printf("\n");
    }
}

static int tell(char **argv, struct error *e)
{
    const struct beam_search_options options = { .beams = atoi(argv[3]),
                                                 .longest = atoi(argv[4]),
                                                 .power = atof(argv[5]),
                                                 .start = atoi(argv[6]),
                                                 .end = atoi(argv[7]) };
    real *states = NULL, *next = NULL, *logits = NULL;
    struct decoder *d = NULL;
    struct network *n = NULL;
    struct sentences s;
    size_t size;
    int rc, classes;

    if ((rc = read_sentences(&s, argv[2], e)) < 0 || (rc = loaded_network(&n, argv[0], argv[1], 1, e)) < 0 ||
        (rc = decoder_new(&d, n, options.beams, e)) < 0)
        goto done;
    size = (size_t)options.beams * decoder_state(d);
    classes = network_model(n)->classes;
    states = calloc(size, sizeof *states);
    next = calloc(size, sizeof *next);
    logits = calloc((size_t)options.beams * (size_t)classes, sizeof *logits);
    if (!states || !next || !logits) {
        rc = error_memory(e, NULL, "left");
        goto done;
    }
    for (int i = 0; i < s.count; i++) {
        struct beam_search b;

        decoder_begin(d, 1, (const float *)(const void *)s.parts[FEATURES].data + i * network_model(n)->features,
                      states);
        beam_search_begin(&b, &options);
        search(d, &b, classes, states, next, logits);
        print_sentences(i, &b);
    }
done:
    free(states);
    free(next);
    free(logits);
    decoder_free(d);
    network_free(n);
    release(&s);
    return rc;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int arguments;
        int (*run)(char **argv, struct error *e);
    } commands[] = {
        { "infer", 4, infer },     { "train", 8, train }, { "kept", 7, kept },
        { "batches", 6, batches }, { "tell", 8, tell },
    };
    struct error e = { 0 };
    int rc;

    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (argc != 2 + commands[i].arguments || strcmp(argv[1], commands[i].name) != 0)
            continue;
        rc = commands[i].run(argv + 2, &e);
        loaded_release();
        if (rc == OK)
            return 0;
        fprintf(stderr, "caption_tool: %s\n", e.message);
        return 1;
    }
    fprintf(stderr, "caption_tool: see the head of its source for the commands\n");
    return 2;
}
