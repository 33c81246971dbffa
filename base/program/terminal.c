#include "base/program/terminal.h"

#include "base/text.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMNS_LEAST = 20, COLUMNS_MOST = 10000 };

int terminal_columns(int fd)
{
    const char *text = getenv("COLUMNS");
    long columns = text ? strtol(text, NULL, 10) : 0;
    struct winsize size;

    if (columns <= 0 && isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col)
        columns = size.ws_col;
    else if (columns <= 0)
        return 0;
    return columns < COLUMNS_LEAST ? COLUMNS_LEAST : columns > COLUMNS_MOST ? COLUMNS_MOST : (int)columns;
}

int terminal_coloured(int fd, const char *choice)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

    if (strcmp(choice, "auto") != 0)
        return !strcmp(choice, "always");
    return isatty(fd) && !(no && *no) && !(term && !strcmp(term, "dumb"));
}

int terminal_utf8(void)
{
    locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    int utf8;

    if (!locale)
        return 0;
    utf8 = !strcmp(nl_langinfo_l(CODESET, locale), "UTF-8");
    freelocale(locale);
    return utf8;
}

void terminal_put_line(FILE *out, const char *line)
{
    size_t columns = isatty(fileno(out)) ? (size_t)terminal_columns(fileno(out)) : 0;
    struct buffer safe = BUFFER_EMPTY, b = BUFFER_EMPTY;

    text_append_safe(&safe, line, strlen(line));
    text_append_wrapped(&b, buffer_text(&safe), 0, 2, columns);
    buffer_append_byte(&b, '\n');
    fputs(buffer_text(&b), out);
    buffer_release(&safe);
    buffer_release(&b);
}
