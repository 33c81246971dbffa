#include "evaluator/watch_pair.h"

#include <string.h>

int watch_pair_parse(char *line, char **name, char **directory, struct error *e)
{
    size_t n;

    line += strspn(line, " \t");
    n = strlen(line);
    while (n && strchr(" \t\r", line[n - 1]))
        line[--n] = '\0';
    if (!n || *line == '#')
        return 0;
    *name = line;
    if (!(*directory = strchr(line, '=')) || *directory == line || !(*directory)[1])
        return error_set(e, ERR_ARG, "'%s': not NAME=DIR", line);
    *(*directory)++ = '\0';
    for (const char *part = line, *slash = line; slash; part = slash ? slash + 1 : part) {
        n = (slash = strchr(part, '/')) ? (size_t)(slash - part) : strlen(part);
        if (!n || (n == 1 && *part == '.') || (n == 2 && !strncmp(part, "..", 2)))
            return error_set(e, ERR_ARG, "'%s': not a name for a run; use a relative path without . and ..", line);
    }
    return 1;
}
