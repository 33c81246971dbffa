#include "trainer/advice/share.h"

#include <stdio.h>

const char *share_text(const struct shard *s, const struct dataset *d, const char *who, char *text, size_t size)
{
    if (s->kind == SHARD_FILES)
        snprintf(text, size, "%s reads %s: %zu %s", who, d->files, d->count, dataset_unit(d));
    else
        snprintf(text, size, "each of %d workers reads %s: %zu %s, %s", s->count, d->files, d->count, dataset_unit(d),
                 s->kind == SHARD_RECORDS ? "of which it takes its part of each epoch"
                                          : "all of them in an order of its own");
    return text;
}
