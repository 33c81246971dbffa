/*
 * library_onednn.h - oneDNN 2 or 3, loaded when a network is made: the functions that kernels call, and the instruction
 * sets that it uses. What differs between the two versions, which have descriptors of memory and of operations, is
 * behind the functions below; what is the same is called as dnnl.FUNCTION. Only where the build found oneDNN.
 */
#ifndef MODEL_KERNELS_LIBRARY_ONEDNN_H
#define MODEL_KERNELS_LIBRARY_ONEDNN_H

#include "base/error.h"

#include <dnnl.h>

#include <stddef.h>
#include <stdint.h>

#if DNNL_VERSION_MAJOR >= 3
#define LIBRARY_ONEDNN_OF_VERSION(ROW) \
    ROW(convolution_backward_data_primitive_desc_create) \
    ROW(convolution_backward_weights_primitive_desc_create) \
    ROW(convolution_forward_primitive_desc_create) \
    ROW(matmul_primitive_desc_create) \
    ROW(memory_desc_create_with_strides) \
    ROW(memory_desc_create_with_tag) \
    ROW(memory_desc_destroy) \
    ROW(memory_desc_query)
#else
#define LIBRARY_ONEDNN_OF_VERSION(ROW) \
    ROW(convolution_backward_data_desc_init) \
    ROW(convolution_backward_weights_desc_init) \
    ROW(convolution_forward_desc_init) \
    ROW(matmul_desc_init) \
    ROW(memory_desc_init_by_strides) \
    ROW(memory_desc_init_by_tag) \
    ROW(primitive_desc_create)
#endif
#define LIBRARY_ONEDNN_FUNCTIONS(ROW) \
    LIBRARY_ONEDNN_OF_VERSION(ROW) \
    ROW(engine_create) \
    ROW(engine_destroy) \
    ROW(get_effective_cpu_isa) \
    ROW(memory_create) \
    ROW(memory_desc_get_size) \
    ROW(memory_destroy) \
    ROW(memory_set_data_handle) \
    ROW(post_ops_append_sum) \
    ROW(post_ops_create) \
    ROW(post_ops_destroy) \
    ROW(primitive_attr_create) \
    ROW(primitive_attr_destroy) \
    ROW(primitive_attr_set_post_ops) \
    ROW(primitive_create) \
    ROW(primitive_desc_destroy) \
    ROW(primitive_desc_query_md) \
    ROW(primitive_destroy) \
    ROW(primitive_execute) \
    ROW(stream_create) \
    ROW(stream_destroy)

#define LIBRARY_ONEDNN_MEMBER(function) __typeof__(dnnl_##function) *function;
/* dnnl.primitive_execute is dnnl_primitive_execute, and so on. Set by library_onednn_load(), then constant. */
extern struct library_onednn {
    LIBRARY_ONEDNN_FUNCTIONS(LIBRARY_ONEDNN_MEMBER)
} dnnl;

/* Loads the library; must be called first; may be repeated, in any thread. ERR_IO. */
int library_onednn_load(struct error *e);

/* 1: the library uses the instruction set `wanted` (dnnl_cpu_isa_t) here. 0 before it is loaded. */
int library_onednn_has(int wanted);

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* How a tensor lies in memory. All zero: none. */
struct onednn_layout {
    dnnl_memory_desc_t descriptor;
};

/* Four dimensions in an order of oneDNN's; dnnl_format_tag_any: as the operation likes it. library_onednn_forget() it,
 * also after an error. */
dnnl_status_t library_onednn_order(struct onednn_layout *out, const dnnl_dims_t dims, dnnl_data_type_t type,
                                   dnnl_format_tag_t tag);
/* Two dimensions. */
dnnl_status_t library_onednn_matrix(struct onednn_layout *out, const dnnl_dims_t dims, dnnl_data_type_t type,
                                    const dnnl_dims_t strides);
void library_onednn_forget(struct onednn_layout *layout);
/* Memory in that layout, whose data is to be set. dnnl.memory_destroy() it. */
dnnl_status_t library_onednn_memory(dnnl_memory_t *out, const struct onednn_layout *layout, dnnl_engine_t engine);

/* Where the elements of four dimensions are: strides of blocks, and in a block blocks of other dimensions, the last one
 * innermost. Counted in elements. */
struct onednn_blocking {
    size_t bytes; /* of all, with padding */
    int64_t offset, strides[4];
    dnnl_dims_t sizes, dimensions; /* (count) of the inner blocks */
    int count;
};

/* ---- operations -------------------------------------------------------------------------------------------------- */

/* Source and result or their gradients, and the kernel or its gradient. */
struct onednn_convolution {
    struct onednn_layout source, kernel, result;
    dnnl_dims_t strides, before, after;
};
enum onednn_direction { ONEDNN_FORWARD, ONEDNN_DATA, ONEDNN_WEIGHTS };
/* hint: a forward one of the same shapes, for the others. dnnl.primitive_desc_destroy() it. */
dnnl_status_t library_onednn_convolution(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                                         enum onednn_direction direction, const struct onednn_convolution *c,
                                         dnnl_primitive_desc_t hint);
/* How the convolution wants its kernel, or gives its gradient: blocking, and memory for it, whose data is to be set.
 * dnnl_unimplemented: not in blocks. */
dnnl_status_t library_onednn_kernel(struct onednn_blocking *blocking, dnnl_memory_t *memory,
                                    dnnl_primitive_desc_t convolution, enum onednn_direction direction,
                                    dnnl_engine_t engine);
/* left times right; add: to what is in result. */
dnnl_status_t library_onednn_product(dnnl_primitive_desc_t *out, dnnl_engine_t engine, const struct onednn_layout *left,
                                     const struct onednn_layout *right, const struct onednn_layout *result, int add);

/* ---- threads ----------------------------------------------------------------------------------------------------- */

/* Between the two the calling thread starts no others: convolutions take their number of threads when they are made,
 * matrix products when they are run. The first returns what the second takes. */
int library_onednn_one_thread(void);
void library_onednn_threads(int threads);

#endif
