#include "eventlog/tool/watch/watch_screen.h"

#include "eventlog/tool/watch/watch_model.h"

#include <curses.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* How long the bytes after an Escape may take, over a network, to count as one key with it. */
enum { ESCAPE_MS = 100, COLOURS = 6 };

struct watch_screen {
    SCREEN *screen;
    int coloured;
    struct buffer line;
};

static int can_place_cursor(void)
{
    const char *sequence = tigetstr("cup");

    return sequence && sequence != (const char *)-1;
}

static void set_up(struct watch_screen *s, int colour)
{
    cbreak();
    noecho();
    nonl();
    nodelay(stdscr, TRUE);
    keypad(stdscr, TRUE);
    curs_set(0);
    set_escdelay(ESCAPE_MS);
    mouseinterval(0); /* a press is a click */
    mousemask(BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
    s->coloured = colour && has_colors() && start_color() == OK && use_default_colors() == OK;
    for (short i = 1; s->coloured && i <= COLOURS; i++)
        init_pair(i, i, -1);
}

int watch_screen_open(struct watch_screen **out, int colour, struct error *e)
{
    struct watch_screen *s;

    *out = NULL;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return error_set(e, ERR_ARG,
                         "standard %s is not a terminal; 'eventlog tail -f' prints points as they come, 'eventlog "
                         "plot' draws curves once",
                         isatty(STDIN_FILENO) ? "output" : "input");
    if (!(s = calloc(1, sizeof *s)))
        return error_memory(e, NULL, "for a screen");
    setlocale(LC_CTYPE, ""); /* which characters the terminal shows; numbers stay as in C */
    if (!(s->screen = newterm(NULL, stdout, stdin)) || !can_place_cursor()) {
        const char *term = getenv("TERM");

        watch_screen_close(s);
        return error_set(e, ERR_ARG,
                         "the terminal '%.40s' (TERM) is not known, or cannot place its cursor; use 'eventlog tail -f' "
                         "or 'eventlog plot'",
                         term ? term : "");
    }
    set_up(s, colour);
    *out = s;
    return 0;
}

void watch_screen_close(struct watch_screen *s)
{
    if (!s)
        return;
    if (s->screen) {
        endwin();
        delscreen(s->screen);
    }
    buffer_release(&s->line);
    free(s);
}

int watch_screen_coloured(const struct watch_screen *s)
{
    return s->coloured;
}

void watch_screen_size(struct watch_screen *s, int *columns, int *rows)
{
    struct winsize size;

    (void)s;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row &&
        is_term_resized(size.ws_row, size.ws_col))
        resizeterm(size.ws_row, size.ws_col);
    getmaxyx(stdscr, *rows, *columns);
}

static attr_t attributes(const struct watch_screen *s, struct cell_look look)
{
    attr_t a = 0;

    a |= look.style & CELL_BOLD ? A_BOLD : 0;
    a |= look.style & CELL_FAINT ? A_DIM : 0;
    a |= look.style & CELL_REVERSE ? A_REVERSE : 0;
    return s->coloured ? a | (attr_t)COLOR_PAIR(look.colour) : a;
}

void watch_screen_show(struct watch_screen *s, const struct cell_grid *g)
{
    erase();
    for (int row = 0; row < g->rows; row++)
        for (int column = 0, from; column < g->columns;) {
            struct cell_look look = g->cells[row * g->columns + column].look;

            buffer_clear(&s->line);
            from = column;
            column = cell_grid_span(g, row, column, &s->line);
            attrset((int)attributes(s, look));
            mvaddstr(row, from, buffer_text(&s->line));
        }
    refresh();
}

/* 1 and *input; 0: nothing that concerns the page. */
static int hear_mouse(struct watch_input *input)
{
    MEVENT event;

    if (getmouse(&event) != OK)
        return 0;
    *input = (struct watch_input){ .kind = WATCH_INPUT_OTHER, .column = event.x, .row = event.y };
    if (event.bstate & BUTTON1_PRESSED)
        input->kind = WATCH_INPUT_CLICK;
    else if (event.bstate & (BUTTON4_PRESSED | BUTTON5_PRESSED))
        input->kind = WATCH_INPUT_WHEEL;
    input->direction = event.bstate & BUTTON4_PRESSED ? -1 : 1;
    return 1;
}

static int key_of(int key)
{
    static const struct {
        int curses, key;
    } keys[] = {
        { KEY_UP, WATCH_KEY_UP },         { KEY_DOWN, WATCH_KEY_DOWN },
        { KEY_LEFT, WATCH_KEY_LEFT },     { KEY_RIGHT, WATCH_KEY_RIGHT },
        { KEY_PPAGE, WATCH_KEY_PAGE_UP }, { KEY_NPAGE, WATCH_KEY_PAGE_DOWN },
        { KEY_HOME, WATCH_KEY_HOME },     { KEY_END, WATCH_KEY_END },
        { KEY_BTAB, WATCH_KEY_BACK_TAB }, { KEY_BACKSPACE, WATCH_KEY_BACKSPACE },
        { KEY_ENTER, WATCH_KEY_ENTER },   { '\r', WATCH_KEY_ENTER },
    };

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].curses == key)
            return keys[i].key;
    return key < 256 ? key : 0;
}

/* A terminal that has gone away is always ready, but nothing can be read from it. */
static int gone(void)
{
    struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
    int waiting = 0;

    return poll(&in, 1, 0) == 1 && (ioctl(STDIN_FILENO, FIONREAD, &waiting) < 0 || !waiting);
}

int watch_screen_next(struct watch_screen *s, struct watch_input *input)
{
    int key = getch();

    (void)s;
    if (key == ERR)
        return gone() ? -1 : 0;
    if (key == KEY_MOUSE && hear_mouse(input))
        return 1;
    *input = (struct watch_input){ .kind = WATCH_INPUT_OTHER, .key = key_of(key) };
    if (input->key)
        input->kind = WATCH_INPUT_KEY;
    return 1;
}
