#include "model/network_plan.h"

#include "base/array.h"
#include "model/kernels/activation.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    SLICE_BYTES = 128 << 10, /* target for the largest value of a slice: several of them share the L2 cache */
    SLICE_MAX = 32,
    PLACE = 64 / sizeof(real), /* offsets are multiples of a cache line */
    HUGE_PAGE = 2 << 20,
};

static size_t align_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

void network_plan_release(struct network_plan *p)
{
    for (int i = 0; i < p->layer_count; i++) {
        struct layer *l = &p->layers[i];

        if (l->kind && l->kind->release && l->state)
            l->kind->release(l);
        free(l->state);
    }
    free(p->layers);
    free(p->values);
    free(p->segments);
    free(p->memory);
    memset(p, 0, sizeof *p);
}

struct layer *network_plan_add_layer(struct network_plan *p)
{
    if (!ARRAY_ROOM(p->layers, p->layer_room, (size_t)p->layer_count + 1))
        return NULL;
    p->layers[p->layer_count] = (struct layer){ .low = SIZE_MAX };
    return &p->layers[p->layer_count++];
}

struct value *network_plan_add_value(struct network_plan *p)
{
    if (!ARRAY_ROOM(p->values, p->value_room, (size_t)p->value_count + 1))
        return NULL;
    p->values[p->value_count] = (struct value){ .data = p->value_count, .gradient = p->value_count };
    return &p->values[p->value_count++];
}

/* ---- which layers run together ----------------------------------------------------------------------------------- */

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Reals of the largest value that a layer reads or writes. */
static size_t largest_value(const struct layer *l)
{
    size_t largest = l->out >= 0 ? shape_size(&l->out_shape) : 1;

    for (int k = 0; k < l->input_count; k++)
        largest = larger(largest, shape_size(&l->in_shapes[k]));
    return largest;
}

/* largest: of the values in the segment so far. */
static int starts_segment(const struct network_plan *p, int i, size_t largest)
{
    if (i == 0 || p->layers[i].whole != p->layers[i - 1].whole)
        return 1;
    if (p->infers)
        return !p->layers[i].whole && 2 * largest_value(&p->layers[i]) <= largest;
    return (p->layers[i].kind->flags & LAYER_BARRIER) != 0;
}

static int slice_of_segment(const struct network_plan *p, const struct segment *g, int max_batch)
{
    size_t largest = 1;

    if (p->layers[g->first].whole)
        return max_batch;
    for (int i = g->first; i < g->last; i++)
        largest = larger(largest, largest_value(&p->layers[i]));
    const size_t fit = SLICE_BYTES / (largest * sizeof(float));
    return fit < 1 ? 1 : fit > SLICE_MAX ? SLICE_MAX : (int)fit;
}

static int make_segments(struct network_plan *p, int max_batch, struct error *e)
{
    size_t largest = 0;
    int n = 0;

    p->segments = calloc((size_t)p->layer_count + 1, sizeof *p->segments);
    if (!p->segments)
        return error_memory(e, NULL, "for the plan of a network");
    for (int i = 0; i < p->layer_count; i++) {
        if (starts_segment(p, i, largest)) {
            p->segments[n].first = i;
            p->segments[n++].low = SIZE_MAX;
            largest = 0;
        }
        largest = larger(largest, largest_value(&p->layers[i]));
        struct segment *g = &p->segments[n - 1];
        g->last = i + 1;
        g->low = p->layers[i].low < g->low ? p->layers[i].low : g->low;
        p->layers[i].segment = n - 1;
    }
    for (int i = 0; i < n; i++)
        p->segments[i].slice = slice_of_segment(p, &p->segments[i], max_batch);
    p->segment_count = n;
    return OK;
}

/* ---- what is kept ------------------------------------------------------------------------------------------------ */

/* The first and last segment that touch a value's own memory, and how many values share it. */
struct use {
    int data_first, data_last, gradient_first, gradient_last, sharers, kept;
};

static void touch(int *first, int *last, int segment)
{
    if (*first < 0 || segment < *first)
        *first = segment;
    if (segment > *last)
        *last = segment;
}

static void touch_data(const struct network_plan *p, struct use *uses, int value, int segment, int kept)
{
    if (value > VALUE_IMAGES) {
        struct use *u = &uses[p->values[value].data];
        touch(&u->data_first, &u->data_last, segment);
        u->kept |= kept;
    }
}

static void touch_gradient(const struct network_plan *p, struct use *uses, int value, int segment)
{
    if (value > VALUE_IMAGES) {
        struct use *u = &uses[p->values[value].gradient];
        touch(&u->gradient_first, &u->gradient_last, segment);
    }
}

static void find_uses(const struct network_plan *p, struct use *uses)
{
    for (int i = 0; i < p->value_count; i++)
        uses[i] = (struct use){ -1, -1, -1, -1, 0, 0 };
    for (int i = 0; i < p->value_count; i++)
        uses[p->values[i].data].sharers++;
    for (int i = 0; i < p->layer_count; i++) {
        const struct layer *l = &p->layers[i];
        const unsigned flags = l->kind->flags;

        for (int k = 0; k < l->input_count; k++) {
            if (!l->inputs[k].gradient_only)
                touch_data(p, uses, l->inputs[k].value, l->segment, (flags & LAYER_KEEPS_IN) && !l->idle);
            if (!(flags & LAYER_NO_GRADIENT_IN) && !l->idle)
                touch_gradient(p, uses, l->inputs[k].value, l->segment);
        }
        touch_data(p, uses, l->out, l->segment, (flags & LAYER_KEEPS_OUT) && !l->idle);
        if (!l->idle)
            touch_gradient(p, uses, l->out, l->segment);
    }
}

/* 1 if the layer's backward makes this input's gradient, or its part of it. */
static int writes_gradient(const struct layer *l, const struct layer_input *in)
{
    return in->wanted && !in->shared && !(l->kind->flags & LAYER_NO_GRADIENT_IN);
}

/* 1 if that part is made in the temporary memory, and added from there. */
static int adds_later(const struct layer *l, const struct layer_input *in)
{
    return in->accumulate && !(l->kind->flags & LAYER_ADDS);
}

/* Which layer writes a gradient first in the backward pass, and which ones add to it. */
static int plan_gradients(struct network_plan *p, struct error *e)
{
    char *written = calloc((size_t)p->value_count, 1), *wanted = calloc((size_t)p->value_count, 1);

    if (!written || !wanted) {
        free(written);
        free(wanted);
        return error_memory(e, NULL, "for the plan of a network");
    }
    for (int i = 0; i < p->layer_count; i++) { /* a value learns if anything before it does */
        struct layer *l = &p->layers[i];
        int learns = l->low != SIZE_MAX && !l->frozen && !p->infers;

        for (int k = 0; k < l->input_count; k++)
            learns |= l->inputs[k].wanted = wanted[l->inputs[k].value];
        if (l->out >= 0)
            wanted[l->out] = (char)learns;
        l->idle = !learns;
    }
    for (int i = p->layer_count - 1; i >= 0; i--) {
        struct layer *l = &p->layers[i];

        for (int k = 0; k < l->input_count; k++) {
            struct layer_input *in = &l->inputs[k];
            const int gradient = p->values[in->value].gradient;

            in->shared = l->out >= 0 && gradient == p->values[l->out].gradient;
            if (writes_gradient(l, in)) {
                in->accumulate = written[gradient];
                written[gradient] = 1;
            }
        }
    }
    free(written);
    free(wanted);
    return OK;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Whole-batch gradients' memory is reused once the layer that made the value has run backward. */
struct slot {
    size_t place, size;
    int busy_until; /* segment at which it is free again: the backward pass goes downwards */
};

static int place_whole_gradients(struct network_plan *p, const struct use *uses, size_t batch, size_t *top,
                                 struct error *e)
{
    struct slot *slots = calloc((size_t)p->value_count, sizeof *slots);
    int count = 0;

    if (!slots)
        return error_memory(e, NULL, "for the plan of a network");
    for (int g = p->segment_count - 1; g >= 0; g--)
        for (int i = 1; i < p->value_count; i++) {
            struct value *v = &p->values[i];
            const size_t size = align_up(shape_size(&v->shape) * batch, PLACE);
            struct slot *best = NULL;

            if (!v->gradient_whole || uses[i].gradient_last != g)
                continue;
            for (int k = 0; k < count; k++)
                if (slots[k].busy_until > g && slots[k].size >= size && (!best || slots[k].size < best->size))
                    best = &slots[k];
            if (!best) {
                best = &slots[count++];
                best->place = *top;
                best->size = size;
                *top += size;
            }
            best->busy_until = uses[i].gradient_first;
            v->gradient_place = best->place;
        }
    free(slots);
    return OK;
}

/* Assigns room for one slice of each value that does not outlive its segment. Returns what the largest segment
 * needs. */
static size_t place_local(struct network_plan *p, const struct use *uses)
{
    size_t largest = 0;

    for (int g = 0; g < p->segment_count; g++) {
        size_t top = 0;

        for (int i = 1; i < p->value_count; i++) {
            struct value *v = &p->values[i];
            const size_t size = align_up(shape_size(&v->shape) * (size_t)p->segments[g].slice, PLACE);

            if (v->data == i && !v->data_whole && uses[i].data_first == g) {
                v->data_place = top;
                top += size;
            }
            if (v->gradient == i && !v->gradient_whole && uses[i].gradient_first == g) {
                v->gradient_place = top;
                top += size;
            }
        }
        largest = top > largest ? top : largest;
    }
    return largest;
}

/* Assigns room for one slice of each part that a layer adds later. Returns the largest sum of a layer. */
static size_t temporary_size(const struct network_plan *p)
{
    size_t largest = 0;

    for (int i = 0; i < p->layer_count; i++) {
        const struct layer *l = &p->layers[i];
        size_t top = 0;

        for (int k = 0; k < l->input_count; k++)
            if (adds_later(l, &l->inputs[k]))
                top += align_up(shape_size(&l->in_shapes[k]) * (size_t)p->segments[l->segment].slice, PLACE);
        largest = top > largest ? top : largest;
    }
    return largest;
}

static int place_values(struct network_plan *p, int max_batch, struct error *e)
{
    struct use *uses = calloc((size_t)p->value_count, sizeof *uses);
    const size_t batch = (size_t)max_batch;
    size_t top = 0, local, temporary, bytes;
    int rc;

    if (!uses)
        return error_memory(e, NULL, "for the plan of a network");
    find_uses(p, uses);
    for (int i = 1; i < p->value_count; i++) {
        struct value *v = &p->values[i];
        const int again = v->producer >= 0 && (p->layers[v->producer].kind->flags & LAYER_AGAIN) &&
                          uses[i].sharers == 1;

        v->data_whole = v->data == i && (uses[i].data_first != uses[i].data_last || (uses[i].kept && !again));
        v->gradient_whole = v->gradient == i && uses[i].gradient_first != uses[i].gradient_last;
        if (v->data_whole) {
            v->data_place = top;
            top += align_up(shape_size(&v->shape) * batch, PLACE);
        }
    }
    rc = place_whole_gradients(p, uses, batch, &top, e);
    local = place_local(p, uses);
    temporary = temporary_size(p);
    free(uses);
    if (rc < 0)
        return rc;
    bytes = align_up((top + local + temporary) * sizeof(real), HUGE_PAGE);
    if (posix_memalign(&p->memory, HUGE_PAGE, bytes)) {
        p->memory = NULL;
        return error_memory(e, NULL, "for a batch of %d images, which needs %zu MiB", max_batch, bytes >> 20);
    }
    madvise(p->memory, bytes, MADV_HUGEPAGE); /* only a hint, for fewer page-table look-ups */
    p->whole = p->memory;
    p->temporary = p->whole + top;
    p->local = p->temporary + temporary;
    return OK;
}

/* What a layer reads and writes for all images. */
static void want_whole(struct network_plan *p, const struct layer *l)
{
    for (int k = 0; k < l->input_count; k++)
        p->values[p->values[l->inputs[k].value].data].wanted_whole = 1;
    if (l->out >= 0)
        p->values[p->values[l->out].data].wanted_whole = 1;
}

/* What layer i reads after all slices went through a layer that needs the whole batch: each slice's stays then. */
static void want_kept(struct network_plan *p, int i)
{
    for (int k = 0; k < p->layers[i].input_count; k++) {
        const struct value *v = &p->values[p->layers[i].inputs[k].value];
        int j = i;

        while (j > 0 && j > v->producer && p->layers[j].whole == p->layers[j - 1].whole)
            j--;
        if (p->layers[i].inputs[k].value != VALUE_IMAGES && j > v->producer)
            p->values[v->data].wanted_whole = 1;
    }
}

/* ---- inference: layers that finish what another one writes ------------------------------------------------------- */

static int reads(const struct layer *l, int value)
{
    for (int k = 0; k < l->input_count; k++)
        if (l->inputs[k].value == value && !l->inputs[k].gradient_only)
            return 1;
    return 0;
}

/* The layer after l, if it alone reads what l writes, as its first input, while that is in the cache. Or NULL. */
static struct layer *only_reader(const struct network_plan *p, const struct layer *l)
{
    struct layer *next = NULL;

    for (struct layer *k = p->layers + (l - p->layers) + 1; k < p->layers + p->layer_count; k++) {
        if (k->kind->flags & LAYER_TRAINING_ONLY)
            continue;
        if (!next)
            next = k;
        else if (reads(k, l->out))
            return NULL;
    }
    return next && next->segment == l->segment && next->input_count > 0 && next->inputs[0].value == l->out ? next
                                                                                                           : NULL;
}

/* l, which does no more than write its output, takes over what the next layer does to that, if it can. */
static void take_finish(struct network_plan *p, struct layer *l)
{
    struct layer *next = l->kind->take_finish ? only_reader(p, l) : NULL;
    struct layer_finish f = { 0 };

    if (!next || !next->kind->finish || l->input_count == LAYER_INPUTS_MAX ||
        (next->input_count > 1 && next->inputs[1].value == l->out) || !next->kind->finish(next, &f) ||
        !l->kind->take_finish(l, &f))
        return;
    if (!f.scale) {
        l->inputs[l->input_count] = next->inputs[1];
        l->in_shapes[l->input_count++] = next->in_shapes[1];
    }
    l->out = next->out;
    next->taken = 1;
}

int network_plan_finish(struct network_plan *p, int max_batch, int infers, struct error *e)
{
    int rc;

    p->infers = infers;
    if ((rc = make_segments(p, max_batch, e)) < 0 || (rc = plan_gradients(p, e)) < 0 ||
        (rc = place_values(p, max_batch, e)) < 0)
        return rc;
    for (int i = 0; i < p->layer_count; i++) {
        struct layer *l = &p->layers[i];

        if (l->whole)
            want_whole(p, l);
        want_kept(p, i);
        l->infers = infers;
        if (l->kind->make && (rc = l->kind->make(l, p->segments[l->segment].slice, max_batch, e)) < 0)
            return rc;
    }
    for (int i = 0; infers && i < p->layer_count; i++)
        take_finish(p, &p->layers[i]);
    return OK;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static real *value_data(const struct network_plan *p, int value, int first)
{
    const struct value *own = &p->values[p->values[value].data];

    return own->data_whole ? p->whole + own->data_place + (size_t)first * shape_size(&own->shape)
                           : p->local + own->data_place;
}

static real *value_gradient(const struct network_plan *p, int value, int first)
{
    const struct value *own = &p->values[p->values[value].gradient];

    return own->gradient_whole ? p->whole + own->gradient_place + (size_t)first * shape_size(&own->shape)
                               : p->local + own->gradient_place;
}

/* The address of a value's slice. Inference reuses the place of the first images for each slice, except where a layer
 * needs the whole batch: what a slice has needed is not read again. */
static real *slice_data(const struct network_plan *p, const struct run *r, int value, int first)
{
    if (value == VALUE_IMAGES)
        return (real *)(uintptr_t)field_at(r->input, (size_t)(r->first_sample + first));
    return value_data(p, value, r->training || p->infers || p->values[p->values[value].data].wanted_whole ? first : 0);
}

static struct slice make_slice(const struct network_plan *p, const struct layer *l, const struct run *r, int first,
                               int count)
{
    struct slice s = { .first = first, .count = count };

    for (int k = 0; k < l->input_count; k++)
        if (!l->inputs[k].gradient_only)
            s.ins[k] = slice_data(p, r, l->inputs[k].value, first);
    if (l->out >= 0)
        s.out = slice_data(p, r, l->out, first);
    return s;
}

static int skips(const struct layer *l, const struct run *r)
{
    return (!r->training && (l->kind->flags & LAYER_TRAINING_ONLY)) || (!r->batch && (l->kind->flags & LAYER_SCORES));
}

static void layer_forward(struct network_plan *p, struct layer *l, const struct run *r, int first, int count)
{
    const struct slice s = make_slice(p, l, r, first, count);

    l->kind->forward(l, r, &s);
}

void network_plan_begin(struct network_plan *p, const struct run *r)
{
    for (int i = 0; i < p->layer_count; i++)
        if (p->layers[i].kind->forward_begin && !skips(&p->layers[i], r))
            p->layers[i].kind->forward_begin(&p->layers[i], r);
}

static void run_segment(struct network_plan *p, const struct segment *g, const struct run *r, int first, int count)
{
    for (int i = g->first; i < g->last; i++)
        if (!p->layers[i].taken && !skips(&p->layers[i], r))
            layer_forward(p, &p->layers[i], r, first, count);
}

/* Without batch statistics no layer before the dense ones needs the whole batch: a slice goes through all segments
 * before the next one starts, and finds what the one before left in the cache. */
static void plan_infer(struct network_plan *p, const struct run *r)
{
    const struct segment *end = p->segments + p->segment_count;

    for (const struct segment *g = p->segments, *next; g < end; g = next) {
        int slice = g->slice;

        for (next = g + 1; next < end && p->layers[next->first].whole == p->layers[g->first].whole; next++)
            slice = next->slice < slice ? next->slice : slice;
        for (int first = 0; first < r->count; first += slice)
            for (const struct segment *s = g; s < next; s++)
                run_segment(p, s, r, first, r->count - first < slice ? r->count - first : slice);
    }
}

static int leaves(const struct run *r)
{
    return r->leave && r->leave(r->leave_context);
}

int network_plan_forward(struct network_plan *p, const struct run *r)
{
    if (!r->training && !p->infers) {
        plan_infer(p, r);
        return 1;
    }
    for (const struct segment *g = p->segments; g < p->segments + p->segment_count; g++) {
        for (int first = 0; first < r->count; first += g->slice) {
            if (leaves(r))
                return 0;
            run_segment(p, g, r, first, r->count - first < g->slice ? r->count - first : g->slice);
        }
        for (int i = g->first; i < g->last; i++)
            if (p->layers[i].kind->forward_end && r->training)
                p->layers[i].kind->forward_end(&p->layers[i], r);
    }
    return 1;
}

static int runs_again(const struct network_plan *p, const struct layer *l)
{
    return (l->kind->flags & LAYER_AGAIN) && !p->values[p->values[l->out].data].data_whole;
}

static void layer_backward(struct network_plan *p, struct layer *l, const struct run *r, int first, int count)
{
    struct slice s = make_slice(p, l, r, first, count);
    real *temporary = p->temporary;

    if (l->out >= 0)
        s.gradient_out = value_gradient(p, l->out, first);
    for (int k = 0; k < l->input_count; k++) {
        const struct layer_input *in = &l->inputs[k];

        if (adds_later(l, in)) {
            s.gradients_in[k] = temporary;
            temporary += align_up((size_t)count * shape_size(&l->in_shapes[k]), PLACE);
        } else if (writes_gradient(l, in) || in->gradient_only)
            s.gradients_in[k] = value_gradient(p, in->value, first);
    }
    l->kind->backward(l, r, &s);
    for (int k = 0; k < l->input_count; k++)
        if (adds_later(l, &l->inputs[k]))
            activation_add((size_t)count * shape_size(&l->in_shapes[k]), s.gradients_in[k],
                           value_gradient(p, l->inputs[k].value, first));
}

/* 1: the backward pass has nothing to do there. */
static int segment_idle(const struct network_plan *p, const struct segment *g)
{
    for (int i = g->first; i < g->last; i++)
        if (!p->layers[i].idle)
            return 0;
    return 1;
}

static void tell(const struct gradient_sink *sink, size_t low)
{
    if (sink)
        sink->dense(sink->context, low);
}

/* 0: left half-way. */
static int segment_backward(struct network_plan *p, const struct segment *g, const struct run *r, size_t low)
{
    for (int i = g->first; i < g->last; i++)
        if (p->layers[i].kind->backward_begin && !p->layers[i].idle)
            p->layers[i].kind->backward_begin(&p->layers[i], r);
    for (int first = 0; first < r->count; first += g->slice) {
        const int count = r->count - first < g->slice ? r->count - first : g->slice;
        if (low > 0 && leaves(r))
            return 0;
        for (int i = g->first; i < g->last; i++)
            if (runs_again(p, &p->layers[i]))
                layer_forward(p, &p->layers[i], r, first, count);
        for (int i = g->last - 1; i >= g->first; i--)
            if (p->layers[i].kind->backward && !p->layers[i].idle)
                layer_backward(p, &p->layers[i], r, first, count);
    }
    for (int i = g->first; i < g->last; i++) {
        const struct layer *l = &p->layers[i];

        if (l->kind->backward_end && !l->idle)
            l->kind->backward_end(&p->layers[i], r);
        if (l->zero_end > l->zero)
            memset(r->exchange + l->zero, 0, (l->zero_end - l->zero) * sizeof *r->exchange);
    }
    return 1;
}

int network_plan_backward(struct network_plan *p, const struct run *r)
{
    size_t low = r->parameter_count;

    tell(r->sink, low);
    for (const struct segment *g = p->segments + p->segment_count - 1; g >= p->segments; g--) {
        if (!segment_idle(p, g) && !segment_backward(p, g, r, low))
            return 0;
        if (g->low < low) {
            low = g->low;
            tell(r->sink, low);
        }
    }
    return 1;
}

const real *network_plan_logits(const struct network_plan *p)
{
    return value_data(p, p->logits, 0);
}
