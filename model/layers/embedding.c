/* Rows of a table, one a token: the first layer of a network that is fed integers. */
#include "model/network_internal.h"

#include "model/layers/layers.h"

#include <stdlib.h>
#include <string.h>

struct embedding {
    size_t variable, parameter; /* the table's number and place */
    size_t rows, width, length; /* length: tokens of one sample */
    int32_t *touched;           /* (tokens of a batch) the rows that this batch names, rising, each once */
    size_t touched_count;
    real *gradients; /* (tokens of a batch, width) of the first touched_count rows */
};

/* -1: a token that names no row, which stands for zeros and learns nothing. */
static int32_t token_row(const struct embedding *own, const struct run *r, size_t place)
{
    const int64_t token = field_integer(r->input, (size_t)r->first_sample * own->length + place);

    return token >= 0 && token < (int64_t)own->rows ? (int32_t)token : -1;
}

static int embedding_make(struct layer *l, int slice, int batch, struct error *e)
{
    struct embedding *own = l->state;
    const size_t tokens = (size_t)batch * own->length;

    (void)slice;
    own->touched = malloc(tokens * sizeof *own->touched);
    own->gradients = malloc(tokens * own->width * sizeof *own->gradients);
    return own->touched && own->gradients ? OK : error_memory(e, NULL, "for the rows of %zu tokens", tokens);
}

static void embedding_release(struct layer *l)
{
    struct embedding *own = l->state;

    free(own->touched);
    free(own->gradients);
}

static void embedding_forward(struct layer *l, const struct run *r, const struct slice *s)
{
    const struct embedding *own = l->state;
    const size_t first = (size_t)s->first * own->length, count = (size_t)s->count * own->length;

    for (size_t i = 0; i < count; i++) {
        const int32_t row = token_row(own, r, first + i);

        if (row < 0)
            memset(s->out + i * own->width, 0, own->width * sizeof *s->out);
        else
            memcpy(s->out + i * own->width, r->parameters + own->parameter + (size_t)row * own->width,
                   own->width * sizeof *s->out);
    }
}

static int compare_rows(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

static void embedding_backward_begin(struct layer *l, const struct run *r)
{
    struct embedding *own = l->state;
    const size_t tokens = (size_t)r->count * own->length;
    size_t named = 0;

    for (size_t i = 0; i < tokens; i++)
        if ((own->touched[named] = token_row(own, r, i)) >= 0)
            named++;
    qsort(own->touched, named, sizeof *own->touched, compare_rows);
    own->touched_count = 0;
    for (size_t i = 0; i < named; i++)
        if (i == 0 || own->touched[i] != own->touched[i - 1])
            own->touched[own->touched_count++] = own->touched[i];
    memset(own->gradients, 0, own->touched_count * own->width * sizeof *own->gradients);
}

/* What equal tokens contribute is added in the order of samples. */
static void embedding_backward(struct layer *l, const struct run *r, const struct slice *s)
{
    const struct embedding *own = l->state;
    const size_t first = (size_t)s->first * own->length, count = (size_t)s->count * own->length;

    for (size_t i = 0; i < count; i++) {
        const int32_t row = token_row(own, r, first + i);
        const int32_t *found = row < 0 ? NULL
                                       : bsearch(&row, own->touched, own->touched_count, sizeof row, compare_rows);
        real *to = found ? own->gradients + (size_t)(found - own->touched) * own->width : NULL;

        for (size_t k = 0; to && k < own->width; k++)
            to[k] += s->gradient_out[i * own->width + k];
    }
}

static void embedding_backward_end(struct layer *l, const struct run *r)
{
    const struct embedding *own = l->state;

    if (r->sink && r->sink->rows) {
        const struct row_gradient g = { own->variable, own->touched_count, own->width, own->touched, own->gradients };
        r->sink->rows(r->sink->context, &g);
        return;
    }
    for (size_t i = 0; i < own->touched_count; i++)
        memcpy(r->exchange + own->parameter + (size_t)own->touched[i] * own->width, own->gradients + i * own->width,
               own->width * sizeof *own->gradients);
}

static const struct layer_kind layer_embedding = {
    .name = "embedding",
    .flags = LAYER_READS_INTEGERS | LAYER_MAKES_ROWS,
    .make = embedding_make,
    .release = embedding_release,
    .forward = embedding_forward,
    .backward_begin = embedding_backward_begin,
    .backward = embedding_backward,
    .backward_end = embedding_backward_end,
};

int network_builder_embedding(struct network_builder *b, int in, const char *name, int rows, int width,
                              const struct kernel_options *options)
{
    const struct shape x = network_builder_shape(b, in);
    const struct shape out = { x.height, x.width, width, width };
    const int64_t shape[2] = { rows, width };
    struct embedding *own;
    struct layer *l;

    if (!b->error.code && (x.channels != 1 || rows < 1))
        return network_builder_refuse(b, layer_embedding.name, "it needs rows, and one token at a place");
    if (!(l = network_builder_layer(b, &layer_embedding, in, out, sizeof *own)))
        return VALUE_NONE;
    own = l->state;
    *own = (struct embedding){
        .variable = b->variable_count, .rows = (size_t)rows, .width = (size_t)width, .length = shape_pixels(&x)
    };
    own->parameter = l->low = network_builder_kernel(b, name, 2, shape, options);
    if (!b->error.code)
        b->variables[own->variable].row_width = b->variables[own->variable].frozen ? 0 : (size_t)width;
    network_builder_note(
        b, name,
        &(struct network_call){
            .kind = &layer_call_embedding,
            .inputs = { in },
            .input_count = 1,
            .out = l->out,
            .arguments = { { { rows } }, { { width } }, INITIAL_ARGUMENT(options), { { options->decay } } } });
    return l->out;
}

static int build_embedding(struct network_builder *b, const int *in, int in_count, const char *name,
                           const struct argument *a)
{
    const struct kernel_options options = network_builder_kernel_options(&a[2], &a[3]);

    (void)in_count;
    return network_builder_embedding(b, in[0], name, (int)a[0].v[0], (int)a[1].v[0], &options);
}

const struct layer_call layer_call_embedding = {
    .name = "embedding",
    .help = "of integer input: a row of a table for each integer",
    .named = "table",
    .inputs_least = 1,
    .inputs_most = 1,
    .parameters = {
        { "rows", PARAMETER_INTEGER, NULL, 1, 1 << 30, NULL, "of the table" },
        { "width", PARAMETER_INTEGER, NULL, 1, 65536, NULL, "of a row" },
        { "initial", PARAMETER_INITIAL, NULL, 0, 1e6, "uniform(0.1)", "how the table begins" },
        { "decay", PARAMETER_REAL, NULL, 0, 1e6, "0", "weight decay of the table" },
    },
    .build = build_embedding,
};
