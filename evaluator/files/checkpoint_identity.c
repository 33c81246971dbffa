#include "evaluator/files/checkpoint_identity.h"

#include <stdio.h>
#include <string.h>

struct checkpoint_identity checkpoint_identity_of(const char *name, int64_t step)
{
    struct checkpoint_identity identity = { .step = step };

    snprintf(identity.name, sizeof identity.name, "%s", name);
    return identity;
}

int checkpoint_identity_same(const struct checkpoint_identity *a, const struct checkpoint_identity *b)
{
    return a->step == b->step && a->digest == b->digest && !strcmp(a->name, b->name);
}
