/*
 * library_onednn.h - oneDNN, loaded when a network is made: the functions that kernels call, and the instruction sets
 * that it uses. Only where the build found oneDNN.
 */
#ifndef MODEL_KERNELS_LIBRARY_ONEDNN_H
#define MODEL_KERNELS_LIBRARY_ONEDNN_H

#include "base/error.h"

#include <dnnl.h>

#define LIBRARY_ONEDNN_FUNCTIONS(ROW) \
    ROW(convolution_backward_data_desc_init) \
    ROW(convolution_backward_weights_desc_init) \
    ROW(convolution_forward_desc_init) \
    ROW(engine_create) \
    ROW(engine_destroy) \
    ROW(get_effective_cpu_isa) \
    ROW(matmul_desc_init) \
    ROW(memory_create) \
    ROW(memory_desc_get_size) \
    ROW(memory_desc_init_by_strides) \
    ROW(memory_desc_init_by_tag) \
    ROW(memory_destroy) \
    ROW(memory_set_data_handle) \
    ROW(post_ops_append_sum) \
    ROW(post_ops_create) \
    ROW(post_ops_destroy) \
    ROW(primitive_attr_create) \
    ROW(primitive_attr_destroy) \
    ROW(primitive_attr_set_post_ops) \
    ROW(primitive_create) \
    ROW(primitive_desc_create) \
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

/* Between the two the calling thread starts no others: convolutions take their number of threads when they are made,
 * matrix products when they are run. The first returns what the second takes. */
int library_onednn_one_thread(void);
void library_onednn_threads(int threads);

#endif
