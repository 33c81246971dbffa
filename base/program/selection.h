/*
 * selection.h - the names that a user asks for by patterns (--run, --tag, --tensor), and an answer where a pattern
 * matches nothing: a mistyped filter is told with the nearest names there are, instead of looking like an empty log.
 * Names are asked for one after the other, as often as one likes; of those that a pattern did not match the nearest
 * few are kept. One thread at a time.
 */
#ifndef BASE_PROGRAM_SELECTION_H
#define BASE_PROGRAM_SELECTION_H

#include "base/program/log.h"
#include "base/program/options.h"

#include <stddef.h>
#include <stdint.h>

enum { SELECTION_NEAREST = 3 };

struct selection_pattern { /* how it went with a pattern */
    int matched;
    struct {
        char *name;
        size_t distance;
    } nearest[SELECTION_NEAREST]; /* nearest first */
};

struct selection {
    struct option_list patterns; /* shell patterns, as option_list_matches(); none: all names are wanted */
    struct selection_pattern *asked; /* of each pattern; NULL before the first question */
    size_t names;                    /* questions so far */
    uint64_t told;                   /* bit i: pattern i was told */
    /* Unless NULL: whether pattern number `i` matches the name, where they are no shell patterns. */
    int (*matches)(const void *context, size_t i, const char *name);
    const void *context;
};

/* 1 if the name is wanted. Without memory a name may be missing among the nearest. */
int selection_wants(struct selection *s, const char *name);

/* Writes a line for each pattern that matched none of the names: "--tag 'los': no tag matches; did you mean 'loss'?";
 * option: "--tag", noun: "tag". Each is told once. Returns how many patterns matched nothing, told now or before. */
size_t selection_tell(struct selection *s, const char *option, const char *noun, struct log *log);

void selection_release(struct selection *s); /* the patterns stay */

#endif
