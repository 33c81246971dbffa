#include "dataset/tool/command.h"

#include "base/program/log.h"
#include "base/program/subcommand.h"

#include <stdio.h>

int command_grid(const char *option, const char *text, int most, int *rows, int *columns, struct error *e)
{
    int end = 0, fields = sscanf(text, "%3dx%3d%n", rows, columns, &end);

    if (fields == 1) {
        sscanf(text, "%3d%n", rows, &end);
        *columns = *rows;
    }
    if (fields < 1 || text[end] || *rows < 1 || *columns < 1 || *rows > most || *columns > most)
        return error_set(e, ERR_ARG, "%s %.40s: must be ROWSxCOLUMNS, each 1 to %d, or one number for both", option,
                         text, most);
    return OK;
}

int command_fail(const char *program, const struct error *e)
{
    struct log log;

    log_init(&log, program, 2);
    log_line(&log, "%s", e->message);
    return EXIT_USAGE;
}
