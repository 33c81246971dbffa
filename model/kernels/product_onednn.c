#include "model/kernels/product_onednn.h"

#include "model/kernels/bfloat16.h"
#include "model/kernels/library_onednn.h"

#include <stdlib.h>

enum { FORWARD, BACKWARD_DATA, BACKWARD_WEIGHTS, KINDS };
enum { LEFT, RIGHT, RESULT, MATRICES };

/* left (m, k) times right (k, n); the rows of a call are a dimension that is not known before. */
struct multiplication {
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[MATRICES]; /* for `rows` rows */
    dnnl_exec_arg_t arguments[MATRICES];
};

struct product_onednn {
    int rows, inputs, outputs; /* rows: of the calls for which memories are made now */
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    struct multiplication kinds[KINDS];
    uint16_t *x, *w, *dy;
};

/* The layouts of one kind, to forget(), also after an error. A matrix that is transposed is in memory as it was, with
 * its strides exchanged. */
static dnnl_status_t describe(const struct product_onednn *p, int kind, int64_t rows, struct onednn_layout d[MATRICES])
{
    const int64_t in = p->inputs, out = p->outputs;
    const dnnl_dims_t dims[KINDS][MATRICES] = {
        { { rows, in }, { in, out }, { rows, out } },
        { { rows, out }, { out, in }, { rows, in } },
        { { in, rows }, { rows, out }, { in, out } },
    };
    const dnnl_dims_t strides[KINDS][MATRICES] = {
        { { in, 1 }, { out, 1 }, { out, 1 } },
        { { out, 1 }, { 1, out }, { in, 1 } },
        { { 1, in }, { out, 1 }, { out, 1 } },
    };
    dnnl_status_t rc = dnnl_success;

    for (int k = 0; k < MATRICES && !rc; k++)
        rc = library_onednn_matrix(&d[k], dims[kind][k], k == RESULT ? dnnl_f32 : dnnl_bf16, strides[kind][k]);
    return rc;
}

static void forget(struct onednn_layout d[MATRICES])
{
    for (int k = 0; k < MATRICES; k++)
        library_onednn_forget(&d[k]);
}

/* dw is added to. */
static dnnl_status_t make_multiplication(struct product_onednn *p, int kind)
{
    struct onednn_layout d[MATRICES] = { 0 };
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t rc;

    if (!(rc = describe(p, kind, DNNL_RUNTIME_DIM_VAL, d)) &&
        !(rc = library_onednn_product(&pd, p->engine, &d[LEFT], &d[RIGHT], &d[RESULT], kind == BACKWARD_WEIGHTS)))
        rc = dnnl.primitive_create(&p->kinds[kind].primitive, pd);
    dnnl.primitive_desc_destroy(pd);
    forget(d);
    return rc;
}

static void destroy_memories(struct product_onednn *p)
{
    for (int i = 0; i < KINDS * MATRICES; i++) {
        dnnl.memory_destroy(p->kinds[i / MATRICES].memory[i % MATRICES]);
        p->kinds[i / MATRICES].memory[i % MATRICES] = NULL;
    }
    p->rows = 0;
}

static dnnl_status_t make_memories(struct product_onednn *p, int rows)
{
    static const int names[MATRICES] = { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST };
    dnnl_status_t rc = dnnl_success;

    destroy_memories(p);
    for (int kind = 0; kind < KINDS && !rc; kind++) {
        struct multiplication *m = &p->kinds[kind];
        struct onednn_layout d[MATRICES] = { 0 };

        rc = describe(p, kind, rows, d);
        for (int k = 0; k < MATRICES && !rc; k++) {
            rc = library_onednn_memory(&m->memory[k], &d[k], p->engine);
            m->arguments[k] = (dnnl_exec_arg_t){ names[k], m->memory[k] };
        }
        forget(d);
    }
    if (!rc)
        p->rows = rows;
    return rc;
}

int product_onednn_new(struct product_onednn **out, int rows, int inputs, int outputs, struct error *e)
{
    struct product_onednn *p = calloc(1, sizeof *p);
    dnnl_status_t rc = dnnl_success;
    int threads;

    if (!p)
        return error_memory(e, NULL, "for a matrix product");
    p->inputs = inputs;
    p->outputs = outputs;
    p->x = bfloat16_new((size_t)rows * (size_t)inputs);
    p->dy = bfloat16_new((size_t)rows * (size_t)outputs);
    p->w = bfloat16_new((size_t)inputs * (size_t)outputs);
    if (!p->x || !p->dy || !p->w) {
        product_onednn_free(p);
        return error_memory(e, NULL, "for a matrix product");
    }
    threads = library_onednn_one_thread();
    if (!(rc = dnnl.engine_create(&p->engine, dnnl_cpu, 0)))
        rc = dnnl.stream_create(&p->stream, p->engine, dnnl_stream_default_flags);
    for (int kind = 0; kind < KINDS && !rc; kind++)
        rc = make_multiplication(p, kind);
    library_onednn_threads(threads);
    if (rc || (rc = make_memories(p, rows))) {
        product_onednn_free(p);
        return error_set(e, rc == dnnl_out_of_memory ? ERR_NOMEM : ERR_ARG,
                         "oneDNN cannot multiply %d by %d values in bfloat16 (status %d)", inputs, outputs, (int)rc);
    }
    *out = p;
    return OK;
}

void product_onednn_free(struct product_onednn *p)
{
    if (!p)
        return;
    destroy_memories(p);
    for (int kind = 0; kind < KINDS; kind++)
        dnnl.primitive_destroy(p->kinds[kind].primitive);
    dnnl.stream_destroy(p->stream);
    dnnl.engine_destroy(p->engine);
    free(p->x);
    free(p->w);
    free(p->dy);
    free(p);
}

void product_onednn_prepare(struct product_onednn *p, const real *w)
{
    bfloat16_round((size_t)p->inputs * (size_t)p->outputs, w, p->w);
}

static void multiply(struct product_onednn *p, int kind, const void *left, const void *right, real *result)
{
    struct multiplication *m = &p->kinds[kind];
    const void *const data[MATRICES] = { left, right, result };
    const int threads = library_onednn_one_thread();

    for (int k = 0; k < MATRICES; k++)
        dnnl.memory_set_data_handle(m->memory[k], (void *)(uintptr_t)data[k]);
    dnnl.primitive_execute(m->primitive, p->stream, MATRICES, m->arguments);
    library_onednn_threads(threads);
}

int product_onednn_forward(struct product_onednn *p, int rows, const real *x, real *y)
{
    if (p->rows != rows && make_memories(p, rows))
        return 0;
    bfloat16_round((size_t)rows * (size_t)p->inputs, x, p->x);
    multiply(p, FORWARD, p->x, p->w, y);
    return 1;
}

int product_onednn_backward(struct product_onednn *p, int rows, const real *x, const real *dy, real *dw, real *dx)
{
    if (p->rows != rows && make_memories(p, rows))
        return 0;
    bfloat16_round((size_t)rows * (size_t)p->outputs, dy, p->dy);
    if (dw) {
        bfloat16_round((size_t)rows * (size_t)p->inputs, x, p->x);
        multiply(p, BACKWARD_WEIGHTS, p->x, p->dy, dw);
    }
    if (dx)
        multiply(p, BACKWARD_DATA, p->dy, p->w, dx);
    return 1;
}
