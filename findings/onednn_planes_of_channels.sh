#!/usr/bin/env bash
# oneDNN 2.6.3 (Debian 12's packages), with its kernels for AVX2: the weight gradient of a convolution whose input lies in planes
# (nchw) and whose result in blocks of 8 channels (nChw8c), as its own AVX2 kernels like them for a network's first layer, is
# computed by a kernel of its own for exactly 3 input channels, and for 1, 2, 4 and more by its scalar reference, "ref:any",
# although the forward convolution has a kernel for each of 1 to 4 channels. 1 channel takes some hundred times as long as 3: a
# photograph in grey trains slower than one in colour. The same names were seen with Debian 13's oneDNN 3. The library does
# not say so unless asked (ONEDNN_VERBOSE=1). With nhwc on both sides, or planes on both, it has kernels for all.
# Guess before: the fewer channels, the faster. Needs gcc, Debian 12 and a processor with AVX2.
# Seen: "1 channel: forward jit:avx2, gradient ref:any, 9.6 ms", "3 channels: forward jit:avx2, gradient jit:avx2, 0.034 ms".
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download -q libdnnl2=2.6.3-1 libdnnl-dev=2.6.3-1 >/dev/null 2>&1 ||
    { echo "these packages are Debian 12's, by apt-get download" >&2; exit 3; }
for package in *.deb; do dpkg -x "$package" .; done
cat >gradient.c <<'C'
#include <dnnl.h>
#include <stdio.h>
#include <time.h>

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* The names of what computes it, and the milliseconds of the best of five gradients. */
static int measure(dnnl_engine_t engine, dnnl_stream_t stream, int channels)
{
    const dnnl_dims_t source = { 1, channels, 28, 28 }, kernel = { 32, channels, 5, 5 }, result = { 1, 32, 28, 28 };
    const dnnl_dims_t stride = { 1, 1 }, padding = { 2, 2 };
    dnnl_memory_desc_t from, by, to;
    dnnl_convolution_desc_t forward, gradient;
    dnnl_primitive_desc_t hint, chosen;
    dnnl_primitive_t primitive;
    dnnl_memory_t x, dw, dy;
    const char *forward_name, *gradient_name;
    double best = 1e9;

    if (dnnl_memory_desc_init_by_tag(&from, 4, source, dnnl_f32, dnnl_nchw) ||
        dnnl_memory_desc_init_by_tag(&by, 4, kernel, dnnl_f32, dnnl_format_tag_any) ||
        dnnl_memory_desc_init_by_tag(&to, 4, result, dnnl_f32, dnnl_nChw8c) ||
        dnnl_convolution_forward_desc_init(&forward, dnnl_forward_training, dnnl_convolution_direct, &from, &by, NULL, &to,
                                           stride, padding, padding) ||
        dnnl_primitive_desc_create(&hint, &forward, NULL, engine, NULL) ||
        dnnl_convolution_backward_weights_desc_init(&gradient, dnnl_convolution_direct, &from, &by, NULL, &to, stride, padding,
                                                    padding) ||
        dnnl_primitive_desc_create(&chosen, &gradient, NULL, engine, hint) || dnnl_primitive_create(&primitive, chosen) ||
        dnnl_memory_create(&x, &from, engine, DNNL_MEMORY_ALLOCATE) ||
        dnnl_memory_create(&dw, dnnl_primitive_desc_query_md(chosen, dnnl_query_diff_weights_md, 0), engine,
                           DNNL_MEMORY_ALLOCATE) ||
        dnnl_memory_create(&dy, &to, engine, DNNL_MEMORY_ALLOCATE))
        return 1;
    dnnl_primitive_desc_query(hint, dnnl_query_impl_info_str, 0, &forward_name);
    dnnl_primitive_desc_query(chosen, dnnl_query_impl_info_str, 0, &gradient_name);
    for (int round = 0; round < 5; round++) {
        const dnnl_exec_arg_t arguments[] = {
            { DNNL_ARG_SRC, x }, { DNNL_ARG_DIFF_WEIGHTS, dw }, { DNNL_ARG_DIFF_DST, dy }
        };
        const double begin = now();

        dnnl_primitive_execute(primitive, stream, 3, arguments);
        dnnl_stream_wait(stream);
        best = now() - begin < best ? now() - begin : best;
    }
    printf("%d %s %s %.3f\n", channels, forward_name, gradient_name, best);
    return 0;
}

int main(void)
{
    dnnl_engine_t engine;
    dnnl_stream_t stream;

    if (dnnl_engine_create(&engine, dnnl_cpu, 0) || dnnl_stream_create(&stream, engine, dnnl_stream_default_flags))
        return 1;
    for (int channels = 1; channels <= 4; channels++)
        if (measure(engine, stream, channels))
            return 1;
    return 0;
}
C
library=$(dirname "$(find usr/lib -name libdnnl.so.2)")
gcc -O1 -Iusr/include -o gradient gradient.c -L"$library" -l:libdnnl.so.2 -Wl,-rpath,"$work/$library"
OMP_NUM_THREADS=1 DNNL_MAX_CPU_ISA=AVX2 ./gradient >seen
awk '{ printf "%d channel%s: forward %s, gradient %s, %.3g ms\n", $1, ($1 == 1 ? "" : "s"), $2, $3, $4 }' seen
awk '$2 != "jit:avx2" || $3 != ($1 == 3 ? "jit:avx2" : "ref:any") { exit 1 }' seen ||
    { echo "CHANGED: other implementations" >&2; exit 1; }
