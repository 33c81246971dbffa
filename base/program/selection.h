/*
 * selection.h - selects names by the user's patterns (--run, --tag, --tensor), and reports patterns that match nothing
 * with the nearest existing names, so that a mistyped filter does not look like an empty log. Names are checked one
 * after the other, any number of times; for each pattern without a match the nearest few are kept. One thread at a
 * time.
 */
#ifndef BASE_PROGRAM_SELECTION_H
#define BASE_PROGRAM_SELECTION_H

#include "base/program/log.h"
#include "base/program/options.h"

#include <stddef.h>
#include <stdint.h>

enum { SELECTION_NEAREST = 3 };

/* the results of one pattern */
struct selection_pattern {
    int matched;
    struct {
        char *name;
        size_t distance;
    } nearest[SELECTION_NEAREST]; /* nearest first */
};

struct selection {
    struct option_list patterns;     /* shell patterns, as option_list_matches(); none: all names match */
    struct selection_pattern *asked; /* of each pattern; NULL before the first name */
    size_t names;                    /* names checked so far */
    uint64_t told;                   /* bit i: pattern i was reported */
    /* If not NULL: 1 if pattern number `i` matches the name, instead of shell patterns. */
    int (*matches)(const void *context, size_t i, const char *name);
    const void *context;
};

/* 1 if the name is selected. Out of memory, a name may be missing among the nearest. */
int selection_wants(struct selection *s, const char *name);

/* Writes a line for each pattern that matched no name: "--tag 'los': no tag matches; did you mean 'loss'?"; option:
 * "--tag", noun: "tag". Reports each once. Returns how many patterns matched nothing, reported now or before. */
size_t selection_tell(struct selection *s, const char *option, const char *noun, struct log *log);

void selection_release(struct selection *s); /* keeps the patterns */

#endif
