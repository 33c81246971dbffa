#include "model/file/recipe.h"

#include <math.h>

double rate_curve_rate(const struct rate_curve *c, double base, int64_t step)
{
    int k = c->drops;

    if (c->every > 0)
        return base * pow(c->factor, (double)(step / c->every));
    while (k > 0 && c->at[k - 1] > step)
        k--;
    return k ? base * c->factors[k - 1] : base;
}
