/* Sizes and names of element types; the numbers are TensorFlow's DataType, but for TENSOR_E8M0. */
#include "checkpoint/tensor_bundle.h"

static const struct {
    const char *name;
    unsigned char size; /* bytes of an element; 0: not fixed */
} types[] = {
    [1] = { "float32", 4 },
    [2] = { "float64", 8 },
    [3] = { "int32", 4 },
    [4] = { "uint8", 1 },
    [5] = { "int16", 2 },
    [6] = { "int8", 1 },
    [7] = { "string", 0 },
    [8] = { "complex64", 8 },
    [9] = { "int64", 8 },
    [10] = { "bool", 1 },
    [11] = { "qint8", 1 },
    [12] = { "quint8", 1 },
    [13] = { "qint32", 4 },
    [14] = { "bfloat16", 2 },
    [15] = { "qint16", 2 },
    [16] = { "quint16", 2 },
    [17] = { "uint16", 2 },
    [18] = { "complex128", 16 },
    [19] = { "float16", 2 },
    [20] = { "resource", 0 },
    [21] = { "variant", 0 },
    [22] = { "uint32", 4 },
    [23] = { "uint64", 8 },
    [24] = { "float8_e5m2", 1 },
    [25] = { "float8_e4m3fn", 1 },
    [26] = { "float8_e4m3fnuz", 1 },
    [27] = { "float8_e4m3b11fnuz", 1 },
    [28] = { "float8_e5m2fnuz", 1 },
    [29] = { "int4", 1 },
    [30] = { "uint4", 1 },
    [31] = { "int2", 1 },
    [32] = { "uint2", 1 },
    [TENSOR_FLOAT4] = { "float4_e2m1fn", 1 },
    [TENSOR_E8M0] = { "float8_e8m0fnu", 1 },
};

enum { TYPES = sizeof types / sizeof *types };

size_t tensor_type_size(int type)
{
    return type > 0 && type < TYPES ? types[type].size : 0;
}

const char *tensor_type_name(int type)
{
    return type > 0 && type < TYPES && types[type].name ? types[type].name : "unknown";
}

int tensor_type_is_float(int type)
{
    return type == TENSOR_FLOAT || type == TENSOR_DOUBLE || type == TENSOR_HALF || type == TENSOR_BFLOAT16;
}
