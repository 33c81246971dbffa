#include "trainer/plan/computing.h"

#include <math.h>

void computing_until(struct computing *c, double seconds)
{
    const double more = c->crowding * seconds - c->begun,
                 longest = c->crowding * c->work->backward / (double)COMPUTING_PIECES;
    const int pieces = more > longest && longest > 0 ? (int)fmin(ceil(more / longest), 4 * COMPUTING_PIECES) : 1;

    for (int i = 0; i < pieces; i++)
        c->last = pipeline_then(c->pipeline, c->processor, more > 0 ? more / pieces : 0, 0, c->last);
    if (more > 0)
        c->begun += more;
}
