#include "eventlog/tool/picture/run_style.h"

#include <ctype.h>
#include <string.h>

/* The names of --run-option, and one of its options that makes another strategy. The longest name that fits counts. */
static const struct {
    const char *name;
    int colour;
} strategies[] = {
    { "mpi", 0 }, { "ps", 1 }, { "ps-async", 2 }, { "hybrid", 3 }, { "mirrored", 4 }, { "ring", 5 }, { "single", 6 },
};

/* 1: what follows a strategy's name in a directory's of n bytes belongs to it: nothing, or what ends with workers. */
static int belongs(const char *rest, size_t n)
{
    return n == 0 || (rest[0] == '-' && isdigit((unsigned char)rest[n - 1]));
}

int run_strategy_colour(const char *name)
{
    size_t longest = 0;
    int colour = -1;

    for (const char *part = name; colour < 0 && *part; part += strcspn(part, "/"), part += *part == '/') {
        const size_t n = strcspn(part, "/");

        for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
            const size_t length = strlen(strategies[i].name);

            if (length > longest && length <= n && !strncmp(part, strategies[i].name, length) &&
                belongs(part + length, n - length)) {
                longest = length;
                colour = strategies[i].colour;
            }
        }
    }
    return colour;
}

void run_styles(const char *(*name)(const void *context, size_t run), const void *context, size_t count, size_t *styles)
{
    size_t drawn[RUN_COLOURS] = { 0 }, other = 0;

    for (size_t i = 0; i < count; i++) {
        const int colour = run_strategy_colour(name(context, i));

        styles[i] = colour < 0 ? (size_t)-1 : (size_t)colour + RUN_COLOURS * drawn[colour]++;
    }
    for (size_t i = 0; i < count; i++) {
        if (styles[i] != (size_t)-1)
            continue;
        while (drawn[other % RUN_COLOURS]) /* no strategy has the last one */
            other++;
        styles[i] = other++;
    }
}
