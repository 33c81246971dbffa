#include "evaluator/score/captioning.h"

#include "base/buffer.h"
#include "base/file.h"
#include "dataset/captions/caption_set.h"
#include "dataset/stream/image_decode.h"
#include "model/decoder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- caption score ----------------------------------------------------------------------------------------------- */

static int same(const int32_t *a, const int32_t *b, size_t n)
{
    return !memcmp(a, b, n * sizeof *a);
}

/* How often the n words at `gram` occur in a sentence. */
static int64_t occurrences(struct caption_words s, const int32_t *gram, size_t n)
{
    int64_t count = 0;

    for (size_t i = 0; i + n <= s.count; i++)
        count += same(s.words + i, gram, n);
    return count;
}

/* 1: the n words at i came before. Sentences are short, so nothing is hashed. */
static int seen(struct caption_words s, size_t i, size_t n)
{
    for (size_t k = 0; k < i; k++)
        if (same(s.words + k, s.words + i, n))
            return 1;
    return 0;
}

static size_t nearest_length(size_t told, const struct caption_words *references, size_t count)
{
    size_t best = references[0].count;

    for (size_t i = 1; i < count; i++) {
        const size_t n = references[i].count;
        const size_t off = n > told ? n - told : told - n, least = best > told ? best - told : told - best;

        if (off < least || (off == least && n < best))
            best = n;
    }
    return best;
}

void caption_score_add(struct caption_score *s, struct caption_words told, const struct caption_words *references,
                       size_t reference_count)
{
    int exact = 0;

    for (size_t n = 1; n <= CAPTION_SCORE_GRAMS; n++)
        for (size_t i = 0; i + n <= told.count; i++) {
            int64_t own, most = 0;

            s->told[n - 1]++;
            if (seen(told, i, n))
                continue;
            own = occurrences(told, told.words + i, n);
            for (size_t k = 0; k < reference_count; k++) {
                const int64_t there = occurrences(references[k], told.words + i, n);

                most = there > most ? there : most;
            }
            s->found[n - 1] += own < most ? own : most;
        }
    for (size_t k = 0; k < reference_count; k++)
        exact |= references[k].count == told.count &&
                 (!told.count || same(references[k].words, told.words, told.count));
    s->exact += exact;
    s->sentences++;
    s->told_words += (int64_t)told.count;
    s->reference_words += (int64_t)nearest_length(told.count, references, reference_count);
}

double caption_score_bleu(const struct caption_score *s, int n)
{
    double sum = 0, shorter;

    if (!s->sentences)
        return NAN;
    for (int k = 0; k < n; k++) {
        if (!s->found[k])
            return 0;
        sum += log((double)s->found[k] / (double)s->told[k]);
    }
    shorter = 1 - (double)s->reference_words / (double)s->told_words;
    return exp(sum / n + (shorter < 0 ? shorter : 0));
}

double caption_score_exact(const struct caption_score *s)
{
    return s->sentences ? (double)s->exact / (double)s->sentences : NAN;
}

/* ---- captioning -------------------------------------------------------------------------------------------------- */

enum { TOGETHER = 16, BEAMS = 3, LONGEST = 20, SAMPLES = 8, ROWS = TOGETHER * BEAMS };

struct told {
    int32_t words[LONGEST];
    size_t count;
};

struct captioning {
    const struct dataset *data;
    const struct caption_set *set;
    struct decoder *decoder;
    size_t *images; /* (count) those that have captions: the first sample of each */
    size_t count, done, classes;
    struct beam_search searches[TOGETHER];
    float *features;     /* (TOGETHER, features) */
    real *states, *next; /* (ROWS) of them */
    real *logits;        /* (ROWS, classes) */
    struct told samples[SAMPLES];
    struct caption_score score;
};

static int list_images(struct captioning *c, size_t most, struct error *e)
{
    const struct caption_file *f = &c->set->file;

    if (!(c->images = calloc(f->image_count + 1, sizeof *c->images)))
        return error_memory(e, NULL, "for %zu images", f->image_count);
    for (size_t i = c->data->first; i < f->count && (!most || c->count < most); i++)
        if (i == c->data->first || f->captions[i].image != f->captions[i - 1].image)
            c->images[c->count++] = i - c->data->first;
    return OK;
}

int captioning_new(struct captioning **out, struct network *n, const struct dataset *d, size_t images, struct error *e)
{
    struct captioning *c;
    int rc;

    *out = NULL;
    if (!d->captions || !d->features)
        return error_set(e, ERR_ARG, "data set %s has no images to tell captions of", d->name);
    if (!(c = calloc(1, sizeof *c)))
        return error_memory(e, NULL, "for captions");
    c->data = d;
    c->set = d->captions;
    c->classes = (size_t)network_model(n)->classes;
    if ((rc = decoder_new(&c->decoder, n, ROWS, e)) == OK && (rc = list_images(c, images, e)) == OK) {
        c->features = calloc(TOGETHER, (size_t)d->features * sizeof *c->features);
        c->states = calloc(ROWS, decoder_state(c->decoder) * sizeof *c->states);
        c->next = calloc(ROWS, decoder_state(c->decoder) * sizeof *c->next);
        c->logits = calloc(ROWS, c->classes * sizeof *c->logits);
        if (!c->features || !c->states || !c->next || !c->logits)
            rc = error_memory(e, NULL, "for captions of %zu classes", c->classes);
    }
    if (rc < 0) {
        captioning_free(c);
        return rc;
    }
    *out = c;
    return OK;
}

void captioning_free(struct captioning *c)
{
    if (!c)
        return;
    decoder_free(c->decoder);
    free(c->images);
    free(c->features);
    free(c->states);
    free(c->next);
    free(c->logits);
    free(c);
}

void captioning_begin(struct captioning *c)
{
    c->done = 0;
    c->score = (struct caption_score){ 0 };
    memset(c->samples, 0, sizeof c->samples);
}

double captioning_share(const struct captioning *c)
{
    return c->count ? (double)c->done / (double)c->count : 1;
}

const struct caption_score *captioning_score(const struct captioning *c)
{
    return &c->score;
}

/* The rows of all searches, one search after the other, each from the state that its sentence continues. */
static int gather(struct captioning *c, size_t count, const int *first_rows, int32_t *words)
{
    const size_t size = decoder_state(c->decoder);
    int rows = 0;

    for (size_t i = 0; i < count; i++)
        for (int k = 0; k < beam_search_rows(&c->searches[i]); k++) {
            const struct beam_sentence *s = &c->searches[i].partial[k];

            memcpy(c->states + (size_t)rows * size, c->next + (size_t)(first_rows[i] + s->parent) * size,
                   size * sizeof *c->states);
            words[rows++] = s->words[s->count - 1];
        }
    return rows;
}

/* c->next has a state for each of `count` images. */
static void search(struct captioning *c, size_t count)
{
    const struct beam_search_options options = {
        .beams = BEAMS, .longest = LONGEST, .start = c->set->words.start, .end = c->set->words.end
    };
    int first_rows[TOGETHER], rows;
    int32_t words[ROWS];

    for (size_t i = 0; i < count; i++) {
        beam_search_begin(&c->searches[i], &options);
        first_rows[i] = (int)i;
    }
    while ((rows = gather(c, count, first_rows, words)) > 0) {
        int row = 0;

        decoder_step(c->decoder, rows, words, c->states, c->next, c->logits);
        for (size_t i = 0; i < count; i++) {
            const int own = beam_search_rows(&c->searches[i]);

            first_rows[i] = row;
            if (own)
                beam_search_advance(&c->searches[i], (int)c->classes, c->logits + (size_t)row * c->classes);
            row += own;
        }
    }
}

/* Without <S> and </S>. */
static struct told told_by(const struct captioning *c, const struct beam_search *s)
{
    struct told t = { 0 };
    int count;
    const struct beam_sentence *best = beam_search_result(s, &count);

    for (int k = 1; count && k < best->count; k++)
        if (best->words[k] != c->set->words.end)
            t.words[t.count++] = best->words[k];
    return t;
}

static void compare(struct captioning *c, size_t sample, const struct told *t)
{
    const struct caption_set *s = c->set;
    struct caption_words references[64];
    size_t first, end, count = 0;

    caption_set_of_image(s, s->file.captions[c->data->first + sample].image, &first, &end);
    for (size_t i = first; i < end && count < sizeof references / sizeof *references; i++)
        references[count++] = (struct caption_words){ s->tokens + s->starts[i], s->starts[i + 1] - s->starts[i] };
    caption_score_add(&c->score, (struct caption_words){ t->words, t->count }, references, count);
}

int captioning_step(struct captioning *c, struct error *e)
{
    const size_t left = c->count - c->done, count = left < TOGETHER ? left : TOGETHER;
    const size_t width = (size_t)c->data->features;
    int rc;

    for (size_t i = 0; i < count; i++)
        if ((rc = dataset_features(c->data, c->images[c->done + i], c->features + i * width, e)) < 0)
            return rc;
    if (count) {
        decoder_begin(c->decoder, (int)count, c->features, c->next);
        search(c, count);
    }
    for (size_t i = 0; i < count; i++) {
        const struct told t = told_by(c, &c->searches[i]);

        if (c->done + i < SAMPLES)
            c->samples[c->done + i] = t;
        compare(c, c->images[c->done + i], &t);
    }
    c->done += count;
    return c->done < c->count;
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

struct caption_samples {
    size_t count;
    char *texts[SAMPLES];  /* Markdown */
    char *images[SAMPLES]; /* paths */
};

static char *describe(const struct captioning *c, size_t k)
{
    const struct caption_set *s = c->set;
    struct buffer text = BUFFER_EMPTY;
    size_t first, end;

    buffer_append_text(&text, "**");
    for (size_t i = 0; i < c->samples[k].count; i++)
        buffer_format(&text, "%s%s", i ? " " : "", c->data->class_names[c->samples[k].words[i]]);
    buffer_append_text(&text, "**\n");
    caption_set_of_image(s, s->file.captions[c->data->first + c->images[k]].image, &first, &end);
    for (size_t i = first; i < end; i++) {
        buffer_append_text(&text, "\n- ");
        for (size_t w = s->starts[i]; w < s->starts[i + 1]; w++)
            buffer_format(&text, "%s%s", w > s->starts[i] ? " " : "", s->words.words[s->tokens[w]]);
    }
    if (!buffer_ok(&text))
        buffer_release(&text);
    return text.data;
}

struct caption_samples *captioning_samples(const struct captioning *c)
{
    struct caption_samples *s = calloc(1, sizeof *s);
    char path[PATH_MAX];

    for (size_t k = 0; s && k < SAMPLES && k < c->done; k++) {
        const struct caption *caption = &c->set->file.captions[c->data->first + c->images[k]];

        if (file_join(path, sizeof path, c->set->paths.images, c->set->file.images[caption->image].file_name, NULL) < 0)
            path[0] = '\0';
        s->texts[k] = describe(c, k);
        s->images[k] = strdup(path);
        s->count++;
        if (!s->texts[k] || !s->images[k]) {
            caption_samples_free(s);
            return NULL;
        }
    }
    return s;
}

void caption_samples_free(struct caption_samples *s)
{
    for (size_t k = 0; s && k < s->count; k++) {
        free(s->texts[k]);
        free(s->images[k]);
    }
    free(s);
}

static int write_image(const char *path, const char *tag, struct eventlog_writer *writer, int64_t step,
                       double wall_time, struct eventlog_error *error)
{
    struct buffer bytes = BUFFER_EMPTY;
    struct image head;
    int rc = EVENTLOG_OK;

    if (file_read(path, IMAGE_BYTES_MAX, &bytes, NULL) == OK &&
        image_decode_size((const uint8_t *)bytes.data, bytes.length, path, &head, NULL) == OK) {
        const struct eventlog_bytes image = { bytes.data, bytes.length };

        rc = eventlog_writer_image_encoded(writer, tag, step, wall_time, &image, 1, NULL, error);
    }
    buffer_release(&bytes);
    return rc;
}

int caption_samples_write(const struct caption_samples *s, struct eventlog_writer *writer, int64_t step,
                          double wall_time, struct eventlog_error *error)
{
    int rc = EVENTLOG_OK;

    for (size_t k = 0; k < s->count && rc == EVENTLOG_OK; k++) {
        char tag[48];

        snprintf(tag, sizeof tag, "captions/%zu", k + 1);
        rc = eventlog_writer_text(writer, tag, step, wall_time, s->texts[k], NULL, error);
        snprintf(tag, sizeof tag, "caption_images/%zu", k + 1);
        if (rc == EVENTLOG_OK)
            rc = write_image(s->images[k], tag, writer, step, wall_time, error);
    }
    return rc;
}
