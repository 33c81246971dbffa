/*
 * sample_hints.h - the value of --samples-per-plugin, "scalars=500,images=all": at most how many points of a series of
 * each plugin are given. Pure.
 */
#ifndef EVENTLOG_SERVER_SAMPLE_HINTS_H
#define EVENTLOG_SERVER_SAMPLE_HINTS_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct sample_hint {
    const char *plugin; /* length bytes, borrowed from the text */
    size_t length;
    uint64_t most; /* UINT64_MAX: all */
};

struct sample_hints {
    struct sample_hint *items; /* the last one for a plugin counts */
    size_t count, capacity;
};

/* OK, then sample_hints_release() it; ERR_ARG: not such a text; ERR_NOMEM. The text "" is right and says nothing. */
int sample_hints_read(struct sample_hints *h, const char *text, struct error *e);
void sample_hints_release(struct sample_hints *h);

uint64_t sample_hints_most(const struct sample_hints *h, const char *plugin, size_t n);

#endif
