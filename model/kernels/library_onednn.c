/* library_onednn.c - one interface to oneDNN 2, whose descriptors are structs, and to 3, where they are handles. */
#include "model/kernels/library_onednn.h"

#include "base/late_library.h"

#include <pthread.h>
#include <string.h>

#define NAME(function) "dnnl_" #function,
struct library_onednn dnnl;
static const char *const names[] = { LIBRARY_ONEDNN_FUNCTIONS(NAME) };

/* Debian's oneDNN takes its number of threads from OpenMP when a primitive is made. Builds without OpenMP leave these
 * NULL. */
static struct {
    int (*get_max_threads)(void);
    void (*set_num_threads)(int n);
} omp;
static const char *const omp_names[] = { "omp_get_max_threads", "omp_set_num_threads" };

static struct error loading;

static void load_onednn(void)
{
    if (late_library_load(ONEDNN_SONAME, names, sizeof names / sizeof *names, &dnnl, &loading) < 0)
        error_prefix(&loading, "convolutions need oneDNN");
    else
        late_library_load(ONEDNN_SONAME, omp_names, 2, &omp, NULL);
}

int library_onednn_load(struct error *e)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load_onednn);
    return error_copy(e, &loading);
}

/* Instruction sets are bit sets without an order: a smaller one may have a larger number. */
int library_onednn_has(int wanted)
{
#ifdef __x86_64__
    return dnnl.get_effective_cpu_isa && ((int)dnnl.get_effective_cpu_isa() & wanted) == wanted;
#else
    (void)wanted;
    return 0;
#endif
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

#if DNNL_VERSION_MAJOR >= 3
#define DESCRIPTOR(layout) ((layout)->descriptor)

dnnl_status_t library_onednn_order(struct onednn_layout *out, const dnnl_dims_t dims, dnnl_data_type_t type,
                                   dnnl_format_tag_t tag)
{
    return dnnl.memory_desc_create_with_tag(&out->descriptor, 4, dims, type, tag);
}

dnnl_status_t library_onednn_matrix(struct onednn_layout *out, const dnnl_dims_t dims, dnnl_data_type_t type,
                                    const dnnl_dims_t strides)
{
    return dnnl.memory_desc_create_with_strides(&out->descriptor, 2, dims, type, strides);
}

void library_onednn_forget(struct onednn_layout *layout)
{
    if (layout->descriptor)
        dnnl.memory_desc_destroy(layout->descriptor);
    layout->descriptor = NULL;
}

static dnnl_status_t find_blocking(struct onednn_blocking *out, const_dnnl_memory_desc_t d)
{
    dnnl_format_kind_t kind = dnnl_format_kind_undef;
    const dnnl_dims_t *sizes, *dimensions, *strides;
    int32_t count = 0;
    dnnl_status_t rc;

    if ((rc = dnnl.memory_desc_query(d, dnnl_query_format_kind, &kind)))
        return rc;
    if (kind != dnnl_blocked)
        return dnnl_unimplemented;
    if ((rc = dnnl.memory_desc_query(d, dnnl_query_inner_nblks_s32, &count)) ||
        (rc = dnnl.memory_desc_query(d, dnnl_query_submemory_offset_s64, &out->offset)) ||
        (rc = dnnl.memory_desc_query(d, dnnl_query_inner_blks, &sizes)) ||
        (rc = dnnl.memory_desc_query(d, dnnl_query_inner_idxs, &dimensions)) ||
        (rc = dnnl.memory_desc_query(d, dnnl_query_strides, &strides)))
        return rc;
    out->bytes = dnnl.memory_desc_get_size(d);
    out->count = count;
    memcpy(out->strides, *strides, sizeof out->strides);
    memcpy(out->sizes, *sizes, sizeof out->sizes);
    memcpy(out->dimensions, *dimensions, sizeof out->dimensions);
    return dnnl_success;
}
#else
#define DESCRIPTOR(layout) (&(layout)->descriptor)

dnnl_status_t library_onednn_order(struct onednn_layout *out, const dnnl_dims_t dims, dnnl_data_type_t type,
                                   dnnl_format_tag_t tag)
{
    return dnnl.memory_desc_init_by_tag(&out->descriptor, 4, dims, type, tag);
}

dnnl_status_t library_onednn_matrix(struct onednn_layout *out, const dnnl_dims_t dims, dnnl_data_type_t type,
                                    const dnnl_dims_t strides)
{
    return dnnl.memory_desc_init_by_strides(&out->descriptor, 2, dims, type, strides);
}

void library_onednn_forget(struct onednn_layout *layout)
{
    (void)layout;
}

static dnnl_status_t find_blocking(struct onednn_blocking *out, const dnnl_memory_desc_t *d)
{
    const dnnl_blocking_desc_t *b = &d->format_desc.blocking;

    if (d->format_kind != dnnl_blocked)
        return dnnl_unimplemented;
    out->bytes = dnnl.memory_desc_get_size(d);
    out->offset = d->offset0;
    out->count = b->inner_nblks;
    memcpy(out->strides, b->strides, sizeof out->strides);
    memcpy(out->sizes, b->inner_blks, sizeof out->sizes);
    memcpy(out->dimensions, b->inner_idxs, sizeof out->dimensions);
    return dnnl_success;
}
#endif

dnnl_status_t library_onednn_memory(dnnl_memory_t *out, const struct onednn_layout *layout, dnnl_engine_t engine)
{
    return dnnl.memory_create(out, DESCRIPTOR(layout), engine, DNNL_MEMORY_NONE);
}

dnnl_status_t library_onednn_kernel(struct onednn_blocking *blocking, dnnl_memory_t *memory,
                                    dnnl_primitive_desc_t convolution, enum onednn_direction direction,
                                    dnnl_engine_t engine)
{
    const dnnl_query_t what = direction == ONEDNN_WEIGHTS ? dnnl_query_diff_weights_md : dnnl_query_weights_md;
    dnnl_status_t rc = find_blocking(blocking, dnnl.primitive_desc_query_md(convolution, what, 0));

    return rc ? rc
              : dnnl.memory_create(memory, dnnl.primitive_desc_query_md(convolution, what, 0), engine,
                                   DNNL_MEMORY_NONE);
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

#if DNNL_VERSION_MAJOR >= 3
dnnl_status_t library_onednn_convolution(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                         enum onednn_direction direction, const struct onednn_convolution *c,
                                         dnnl_primitive_desc_t hint)
{
    const dnnl_memory_desc_t source = c->source.descriptor, kernel = c->kernel.descriptor,
                             result = c->result.descriptor;
    const dnnl_dims_t dense = { 0, 0 };

    switch (direction) {
    case ONEDNN_DATA:
        return dnnl.convolution_backward_data_primitive_desc_create(out, engine, dnnl_convolution_direct, source,
                                                                    kernel, result, c->strides, dense, c->before,
                                                                    c->after, hint, NULL);
    case ONEDNN_WEIGHTS:
        return dnnl.convolution_backward_weights_primitive_desc_create(out, engine, dnnl_convolution_direct, source,
                                                                       kernel, NULL, result, c->strides, dense,
                                                                       c->before, c->after, hint, NULL);
    default:
        return dnnl.convolution_forward_primitive_desc_create(out, engine, dnnl_forward_training,
                                                              dnnl_convolution_direct, source, kernel, NULL, result,
                                                              c->strides, dense, c->before, c->after, NULL);
    }
}

static dnnl_status_t append_sum(dnnl_post_ops_t post)
{
    return dnnl.post_ops_append_sum(post, 1, 0, dnnl_data_type_undef);
}

static dnnl_status_t product_descriptor(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                        const struct onednn_layout *left, const struct onednn_layout *right,
                                        const struct onednn_layout *result, dnnl_primitive_attr_t attributes)
{
    return dnnl.matmul_primitive_desc_create(out, engine, left->descriptor, right->descriptor, NULL, result->descriptor,
                                             attributes);
}
#else
dnnl_status_t library_onednn_convolution(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                         enum onednn_direction direction, const struct onednn_convolution *c,
                                         dnnl_primitive_desc_t hint)
{
    const dnnl_memory_desc_t *source = &c->source.descriptor, *kernel = &c->kernel.descriptor,
                             *result = &c->result.descriptor;
    dnnl_convolution_desc_t d;
    dnnl_status_t rc;

    switch (direction) {
    case ONEDNN_DATA:
        rc = dnnl.convolution_backward_data_desc_init(&d, dnnl_convolution_direct, source, kernel, result, c->strides,
                                                      c->before, c->after);
        break;
    case ONEDNN_WEIGHTS:
        rc = dnnl.convolution_backward_weights_desc_init(&d, dnnl_convolution_direct, source, kernel, NULL, result,
                                                         c->strides, c->before, c->after);
        break;
    default:
        rc = dnnl.convolution_forward_desc_init(&d, dnnl_forward_training, dnnl_convolution_direct, source, kernel,
                                                NULL, result, c->strides, c->before, c->after);
    }
    return rc ? rc : dnnl.primitive_desc_create(out, &d, NULL, engine, hint);
}

static dnnl_status_t append_sum(dnnl_post_ops_t post)
{
    return dnnl.post_ops_append_sum(post, 1);
}

static dnnl_status_t product_descriptor(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                        const struct onednn_layout *left, const struct onednn_layout *right,
                                        const struct onednn_layout *result, dnnl_primitive_attr_t attributes)
{
    dnnl_matmul_desc_t d;
    dnnl_status_t rc = dnnl.matmul_desc_init(&d, &left->descriptor, &right->descriptor, NULL, &result->descriptor);

    return rc ? rc : dnnl.primitive_desc_create(out, &d, attributes, engine, NULL);
}
#endif

/* The result's old values are one more summand. */
static dnnl_status_t make_adding(dnnl_primitive_attr_t *attributes)
{
    dnnl_post_ops_t sum = NULL;
    dnnl_status_t rc;

    if (!(rc = dnnl.primitive_attr_create(attributes)) && !(rc = dnnl.post_ops_create(&sum)) && !(rc = append_sum(sum)))
        rc = dnnl.primitive_attr_set_post_ops(*attributes, sum);
    dnnl.post_ops_destroy(sum);
    return rc;
}

dnnl_status_t library_onednn_product(dnnl_primitive_desc_t *out, dnnl_engine_t engine, const struct onednn_layout *left,
                                     const struct onednn_layout *right, const struct onednn_layout *result, int add)
{
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_status_t rc = add ? make_adding(&attributes) : dnnl_success;

    if (!rc)
        rc = product_descriptor(out, engine, left, right, result, attributes);
    dnnl.primitive_attr_destroy(attributes);
    return rc;
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

int library_onednn_one_thread(void)
{
    const int threads = omp.get_max_threads ? omp.get_max_threads() : 1;

    if (omp.set_num_threads)
        omp.set_num_threads(1);
    return threads;
}

void library_onednn_threads(int threads)
{
    if (omp.set_num_threads)
        omp.set_num_threads(threads);
}
