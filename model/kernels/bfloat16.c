#include "model/kernels/bfloat16.h"

#include "base/vector.h"
#include "model/kernels/bfloat16_avx512.h"
#include "model/kernels/convolution.h"
#if CONVOLUTION_ONEDNN
#include "model/kernels/library_onednn.h"
#endif

/* Whoever keeps oneDNN from these instructions means all that computes. */
enum bfloat16_units bfloat16_units(void)
{
#if CONVOLUTION_ONEDNN
    if (library_onednn_has(dnnl_cpu_isa_avx512_core_amx))
        return BFLOAT16_AMX;
    if (!library_onednn_has(dnnl_cpu_isa_avx512_core_bf16))
        return BFLOAT16_NONE;
#endif
#if BFLOAT16_AVX512_BUILT
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bf16"))
        return BFLOAT16_AVX512;
#endif
    return BFLOAT16_NONE;
}

int bfloat16_is_fast(void)
{
#if BFLOAT16_AVX512_BUILT
    if (bfloat16_units() == BFLOAT16_AVX512)
        return __builtin_cpu_is("amd") != 0;
#endif
    return bfloat16_units() == BFLOAT16_AMX;
}

/* Adds half of the last place that stays, less one bit if that place is even. A NaN is not rounded, which might make an
 * infinity of it, but made quiet. */
VECTOR_BODY uint16_t rounded(real x)
{
    const float narrow = (float)x;
    uint32_t bits;

    memcpy(&bits, &narrow, sizeof bits);
    const uint32_t nan = (bits >> 16) | 0x40, near = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? nan : near);
}

uint16_t bfloat16_of(real x)
{
    return rounded(x);
}

float bfloat16_wide(uint16_t x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float wide;

    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

uint16_t *bfloat16_new(size_t count)
{
    void *memory;

    return posix_memalign(&memory, 64, count * sizeof(uint16_t)) ? NULL : memory;
}

VECTOR_CLONES void bfloat16_round(size_t n, const real *restrict from, uint16_t *restrict to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = rounded(from[i]);
}
