#include "trainer/collective/addition.h"

#include "base/vector.h"

VECTOR_BODY void add_some(real *out, const real *a, const real *b, int count)
{
    VECTOR_LOOP
    for (int i = 0; i < count; i++)
        out[i] = a[i] + b[i];
}

VECTOR_CLONES void addition_both(real *out, const real *a, const real *b, size_t count)
{
    size_t i = 0;

    VECTOR_EACH(i, count, width, add_some(out + i, a + i, b + i, width));
}
