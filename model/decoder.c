#include "model/decoder.h"

#include "model/kernels/blas.h"
#include "model/kernels/lstm_cell.h"
#include "model/layer_call.h"
#include "model/network_builder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- beam search ------------------------------------------------------------------------------------------------- */

void beam_search_begin(struct beam_search *s, const struct beam_search_options *options)
{
    memset(s, 0, sizeof *s);
    s->options = *options;
    s->partial[0].words[0] = options->start;
    s->partial[0].count = 1;
    s->partial_count = 1;
}

int beam_search_rows(const struct beam_search *s)
{
    return s->steps + 1 < s->options.longest ? s->partial_count : 0;
}

/* Where a sentence of this score belongs among the best; `most`: nowhere. */
static int place_of(const struct beam_sentence *best, int count, int most, double score)
{
    int at = count;

    while (at > 0 && best[at - 1].score < score)
        at--;
    return at < most ? at : most;
}

/* Puts `from` and one more word among the best. */
static void keep(struct beam_sentence *best, int *count, int most, const struct beam_sentence *from, int row,
                 int32_t word, double log_probability, double score)
{
    const int at = place_of(best, *count, most, score);

    if (at == most)
        return;
    *count += *count < most;
    memmove(best + at + 1, best + at, (size_t)(*count - 1 - at) * sizeof *best);
    best[at] = *from;
    best[at].words[best[at].count++] = word;
    best[at].parent = row;
    best[at].log_probability = log_probability;
    best[at].score = score;
}

/* The most probable words, in order; of equally probable ones the lowest number first. */
static int most_probable(int classes, const real *logits, int most, int32_t *words)
{
    int count = 0;

    for (int c = 0; c < classes; c++) {
        int at = count;

        while (at > 0 && logits[c] > logits[words[at - 1]])
            at--;
        if (at == most || isnan((double)logits[c]))
            continue;
        count += count < most;
        memmove(words + at + 1, words + at, (size_t)(count - 1 - at) * sizeof *words);
        words[at] = c;
    }
    return count;
}

static double log_of_sum(int classes, const real *logits, double max)
{
    double sum = 0;

    for (int c = 0; c < classes; c++)
        sum += exp((double)logits[c] - max);
    return max + log(sum);
}

void beam_search_advance(struct beam_search *s, int classes, const real *logits)
{
    static const double least = -27.631021115928547; /* log 1e-12 */
    const struct beam_search_options *o = &s->options;
    struct beam_sentence before[BEAM_SEARCH_BEAMS_MAX];
    const int rows = s->partial_count;

    memcpy(before, s->partial, (size_t)rows * sizeof *before);
    s->partial_count = 0;
    for (int row = 0; row < rows; row++) {
        const real *own = logits + (size_t)row * (size_t)classes;
        int32_t words[BEAM_SEARCH_BEAMS_MAX];
        const int count = most_probable(classes, own, o->beams, words);
        const double all = count ? log_of_sum(classes, own, (double)own[words[0]]) : 0;

        for (int k = 0; k < count; k++) {
            const double next = (double)own[words[k]] - all, sum = before[row].log_probability + next;
            const int length = before[row].count + 1;

            if (!(next >= least))
                continue;
            if (words[k] == o->end)
                keep(s->complete, &s->complete_count, o->beams, &before[row], row, words[k], sum,
                     o->power > 0 ? sum / pow(length, o->power) : sum);
            else
                keep(s->partial, &s->partial_count, o->beams, &before[row], row, words[k], sum, sum);
        }
    }
    s->steps++;
}

const struct beam_sentence *beam_search_result(const struct beam_search *s, int *count)
{
    *count = s->complete_count ? s->complete_count : s->partial_count;
    return s->complete_count ? s->complete : s->partial;
}

/* ---- decoder ----------------------------------------------------------------------------------------------------- */

/* The layers in their order, without dropout. */
static const char *const kinds[] = { "image_features", "dense", "embedding", "stack",
                                     "lstm",           "dense", "bias",      "cross_entropy" };
enum { IMAGE = 1, WORDS = 2, LSTM = 4, LOGITS = 5, BIAS = 6, LAYERS = sizeof kinds / sizeof *kinds };
enum { LSTM_FORGET = 1, LSTM_GIVES = 4 }; /* its arguments */

struct decoder {
    struct network *network;
    size_t image, map, kernel, cell_bias, logits, bias; /* places of the parameters */
    size_t rows, features, width, units, classes, words;
    double forget;
    real *read;     /* (rows, width + units) */
    real *gates;    /* (rows, 4 units) */
    real *image_in; /* (rows, features) */
    real *bent;     /* (units) */
};

static const struct variable *variable_of(const struct network *n, const char *scope, const char *name)
{
    size_t count;
    const struct variable *v = network_variables(n, &count);
    char whole[sizeof v->name + 16];

    snprintf(whole, sizeof whole, "%s%s", scope, name);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(v[i].name, whole))
            return &v[i];
    return NULL;
}

static int take_layers(struct decoder *d, struct error *e)
{
    const struct network *n = d->network;
    const struct network_call *found[LAYERS];
    const struct variable *v[6];
    size_t count, k = 0;
    const struct network_call *calls = network_calls(n, &count);

    for (size_t i = 0; i < count; i++) {
        if (!strcmp(calls[i].kind->name, "dropout"))
            continue;
        if (k == LAYERS || strcmp(calls[i].kind->name, kinds[k]) != 0)
            break;
        found[k++] = &calls[i];
    }
    if (k < LAYERS || found[LSTM]->arguments[LSTM_GIVES].v[0] != (double)LSTM_GIVES_LATER)
        return error_set(e, ERR_ARG, "model %s tells no captions: its layers are not those of show_and_tell",
                         network_model(n)->name);
    v[0] = variable_of(n, found[IMAGE]->name, "");
    v[1] = variable_of(n, found[WORDS]->name, "");
    v[2] = variable_of(n, found[LSTM]->name, "/kernel");
    v[3] = variable_of(n, found[LSTM]->name, "/bias");
    v[4] = variable_of(n, found[LOGITS]->name, "");
    v[5] = variable_of(n, found[BIAS]->name, "");
    for (int i = 0; i < 6; i++)
        if (!v[i])
            return error_set(e, ERR_ARG, "model %s: a variable is missing", network_model(n)->name);
    d->image = v[0]->offset;
    d->map = v[1]->offset;
    d->kernel = v[2]->offset;
    d->cell_bias = v[3]->offset;
    d->logits = v[4]->offset;
    d->bias = v[5]->offset;
    d->features = (size_t)v[0]->shape[0];
    d->words = (size_t)v[1]->shape[0];
    d->width = (size_t)v[1]->shape[1];
    d->units = (size_t)v[3]->shape[0] / 4;
    d->classes = (size_t)v[5]->shape[0];
    d->forget = found[LSTM]->arguments[LSTM_FORGET].v[0];
    return OK;
}

int decoder_new(struct decoder **out, struct network *n, int rows, struct error *e)
{
    struct decoder *d = calloc(1, sizeof *d);
    int rc;

    *out = NULL;
    if (!d)
        return error_memory(e, NULL, "for a decoder");
    d->network = n;
    d->rows = (size_t)rows;
    if ((rc = take_layers(d, e)) == OK) {
        d->read = reals_new(d->rows * (d->width + d->units));
        d->gates = reals_new(d->rows * 4 * d->units);
        d->image_in = reals_new(d->rows * d->features);
        d->bent = reals_new(d->units);
        if (!d->read || !d->gates || !d->image_in || !d->bent)
            rc = error_memory(e, NULL, "for a decoder of %zu units", d->units);
    }
    if (rc < 0) {
        decoder_free(d);
        return rc;
    }
    *out = d;
    return OK;
}

void decoder_free(struct decoder *d)
{
    if (!d)
        return;
    free(d->read);
    free(d->gates);
    free(d->image_in);
    free(d->bent);
    free(d);
}

size_t decoder_state(const struct decoder *d)
{
    return 2 * d->units;
}

/* From what is in d->read; c of each row is the first half of its state, h the second. */
static void step(struct decoder *d, int count, const real *states, real *next)
{
    const real *p = network_parameters(d->network);
    const size_t u = d->units;

    blas_product(0, 0, count, (int)(4 * u), (int)(d->width + u), d->read, p + d->kernel, 0, d->gates);
    for (size_t n = 0; n < (size_t)count; n++)
        lstm_cell(u, d->forget, p + d->cell_bias, NULL, d->gates + n * 4 * u, states + n * 2 * u, next + n * 2 * u,
                  d->bent, next + n * 2 * u + u);
}

void decoder_begin(struct decoder *d, int count, const float *features, real *states)
{
    const real *p = network_parameters(d->network);
    const size_t u = d->units, row = d->width + u, n = (size_t)count;

    for (size_t i = 0; i < n * d->features; i++)
        d->image_in[i] = (real)features[i];
    memset(d->read, 0, n * row * sizeof *d->read);
    memset(states, 0, n * 2 * u * sizeof *states);
    for (size_t i = 0; i < n; i++) /* one by one, since a row has room for h, too */
        blas_product(0, 0, 1, (int)d->width, (int)d->features, d->image_in + i * d->features, p + d->image, 0,
                     d->read + i * row);
    step(d, count, states, states);
}

void decoder_step(struct decoder *d, int count, const int32_t *words, const real *states, real *next, real *logits)
{
    const real *p = network_parameters(d->network);
    const size_t u = d->units, row = d->width + u;

    for (size_t n = 0; n < (size_t)count; n++) {
        real *to = d->read + n * row;

        if (words[n] >= 0 && (size_t)words[n] < d->words)
            memcpy(to, p + d->map + (size_t)words[n] * d->width, d->width * sizeof *to);
        else
            memset(to, 0, d->width * sizeof *to);
        memcpy(to + d->width, states + n * 2 * u + u, u * sizeof *to);
    }
    step(d, count, states, next);
    for (size_t n = 0; n < (size_t)count; n++) /* h alone, side by side: the rows are free again */
        memcpy(d->read + n * u, next + n * 2 * u + u, u * sizeof *next);
    blas_product(0, 0, count, (int)d->classes, (int)u, d->read, p + d->logits, 0, logits);
    for (size_t n = 0; n < (size_t)count; n++)
        for (size_t k = 0; k < d->classes; k++)
            logits[n * d->classes + k] += p[d->bias + k];
}
