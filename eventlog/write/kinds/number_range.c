#include "eventlog/write/kinds/number_range.h"

#include "base/bytes.h"
#include "base/vector.h"

#include <float.h>
#include <string.h>

void number_range_begin(struct number_range *r)
{
    for (size_t k = 0; k < NUMBER_RANGE_LANES; k++) {
        r->min[k] = DBL_MAX;
        r->max[k] = -DBL_MAX;
    }
}

/* Clones are static: others would be seen in the static library. */
VECTOR_CLONES static int all_finite(const double *values, size_t n)
{
    enum { EXPONENT = 52 };
    uint64_t odd[NUMBER_RANGE_LANES] = { 0 }, any = 0, bits;
    size_t i;

    for (i = 0; i + NUMBER_RANGE_LANES <= n; i += NUMBER_RANGE_LANES)
        for (size_t k = 0; k < NUMBER_RANGE_LANES; k++) {
            memcpy(&bits, &values[i + k], sizeof bits);
            odd[k] |= (bits & INT64_MAX) + (UINT64_C(1) << EXPONENT);
        }
    for (; i < n; i++)
        odd[0] |= (double_bits(values[i]) & INT64_MAX) + (UINT64_C(1) << EXPONENT);
    for (size_t k = 0; k < NUMBER_RANGE_LANES; k++)
        any |= odd[k];
    return !(any >> 63); /* no exponent is all ones */
}

int number_range_finite(const double *values, size_t n)
{
    return all_finite(values, n);
}

VECTOR_CLONES static void extend(struct number_range *r, const double *values, size_t n)
{
    struct number_range l = *r;
    size_t i;

    for (i = 0; i + NUMBER_RANGE_LANES <= n; i += NUMBER_RANGE_LANES)
        for (size_t k = 0; k < NUMBER_RANGE_LANES; k++) {
            double x = values[i + k];

            l.min[k] = x < l.min[k] ? x : l.min[k];
            l.max[k] = x > l.max[k] ? x : l.max[k];
        }
    for (; i < n; i++) {
        double x = values[i];

        l.min[0] = x < l.min[0] ? x : l.min[0];
        l.max[0] = x > l.max[0] ? x : l.max[0];
    }
    *r = l;
}

void number_range_extend(struct number_range *r, const double *values, size_t n)
{
    extend(r, values, n);
}

void number_range_end(const struct number_range *r, double *min, double *max)
{
    *min = r->min[0];
    *max = r->max[0];
    for (size_t k = 1; k < NUMBER_RANGE_LANES; k++) {
        *min = r->min[k] < *min ? r->min[k] : *min;
        *max = r->max[k] > *max ? r->max[k] : *max;
    }
}
