/* watch_screen.h for a build without ncurses: it never opens. */
#include "eventlog/tool/watch/watch_screen.h"

int watch_screen_open(struct watch_screen **out, int colour, struct error *e)
{
    (void)colour;
    *out = NULL;
    return error_set(
        e, ERR_ARG,
        "built without ncurses; install libncurses-dev and build again, or use 'eventlog tail -f' and 'eventlog plot'");
}

void watch_screen_close(struct watch_screen *s)
{
    (void)s;
}

int watch_screen_coloured(const struct watch_screen *s)
{
    (void)s;
    return 0;
}

void watch_screen_size(struct watch_screen *s, int *columns, int *rows)
{
    (void)s;
    *columns = *rows = 0;
}

void watch_screen_show(struct watch_screen *s, const struct cell_grid *g)
{
    (void)s;
    (void)g;
}

int watch_screen_next(struct watch_screen *s, struct watch_input *input)
{
    (void)s;
    (void)input;
    return -1;
}
