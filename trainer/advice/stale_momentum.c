#include "trainer/advice/stale_momentum.h"

#include <stdio.h>

#define MUCH 0.9
enum { WORKERS_LEAST = 3 };

const char *stale_momentum_text(int workers, double momentum, char *text, size_t size)
{
    if (workers < WORKERS_LEAST || momentum < MUCH)
        return NULL;
    snprintf(text, size,
             "with %d asynchronous workers gradients are about %d updates old, and momentum %g on top of that may keep "
             "the training from learning anything (in other programs, too); --momentum 0 or a tenth of the learning "
             "rate is safer",
             workers, workers - 1, momentum);
    return text;
}
