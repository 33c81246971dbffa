#include "trainer/advice/share.h"

#include <stdio.h>

const char *share_text(const struct shard *s, const struct dataset *d, const char *who, char *text, size_t size)
{
    if (s->kind == SHARD_FILES)
        snprintf(text, size, "%s reads %s: %zu images", who, d->files, d->count);
    else
        snprintf(text, size, "each of %d workers reads %s: %zu images, %s", s->count, d->files, d->count,
                 s->kind == SHARD_RECORDS ? "of which it takes its part of each epoch"
                                          : "all of them in an order of its own");
    return text;
}
