#include "base/program/log.h"

#include "base/clock.h"
#include "base/human.h"
#include "base/json.h"
#include "base/program/terminal.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 2048 };

static void emit(struct log *l, const char *bytes, size_t n)
{
    ssize_t ignored = write(l->fd, bytes, n); /* there is nowhere to report it */

    (void)ignored;
}

void log_init(struct log *l, const char *program, int fd)
{
    memset(l, 0, sizeof *l);
    l->program = program;
    l->fd = fd;
    l->terminal = isatty(fd);
    l->status_next = l->terminal ? 0 : clock_monotonic() + 60;
}

/* On a terminal wraps between words, so that the terminal wraps nowhere else. */
static void line(struct log *l, const char *before, const char *after, const char *format, va_list args)
{
    struct buffer whole = BUFFER_EMPTY, b = BUFFER_EMPTY;
    char text[LINE_MAX_BYTES];

    vsnprintf(text, sizeof text, format, args);
    if (l->program)
        buffer_format(&whole, "%s: ", l->program);
    text_append_safe(&whole, text, strlen(text)); /* names in it may be from anywhere */
    buffer_append_text(&b, before);
    text_append_wrapped(&b, buffer_text(&whole), 0, 2, l->terminal ? (size_t)terminal_columns(l->fd) : 0);
    buffer_append_text(&b, after);
    if (buffer_ok(&whole) && buffer_ok(&b))
        emit(l, b.data, b.length);
    buffer_release(&whole);
    buffer_release(&b);
}

static void json_line(struct log *l, const char *level, const char *fields, const char *format, va_list args)
{
    struct buffer b = BUFFER_EMPTY;
    char text[LINE_MAX_BYTES];

    vsnprintf(text, sizeof text, format, args);
    buffer_append_text(&b, "{\"time\":");
    json_double(&b, clock_wall());
    buffer_format(&b, ",\"level\":\"%s\",\"program\":", level);
    json_text(&b, l->program ? l->program : "");
    buffer_append_text(&b, ",\"message\":");
    json_text(&b, text);
    if (fields && *fields)
        buffer_format(&b, ",%s", fields);
    buffer_append_text(&b, "}\n");
    if (buffer_ok(&b))
        emit(l, b.data, b.length);
    buffer_release(&b);
}

static void event(struct log *l, const char *level, const char *fields, const char *format, va_list args)
{
    if (l->json)
        json_line(l, level, fields, format, args);
    else
        line(l, l->drawn ? "\r\033[K" : "", "\n", format, args);
    l->drawn = 0;
}

void log_line(struct log *l, const char *format, ...)
{
    char text[LINE_MAX_BYTES];
    va_list args;

    va_start(args, format);
    if (l->kept) {
        vsnprintf(text, sizeof text, format, args);
        buffer_append(l->kept, text, strlen(text) + 1);
    } else {
        event(l, "info", NULL, format, args);
    }
    va_end(args);
}

void log_kept_lines(struct log *l, const struct buffer *kept)
{
    for (size_t at = 0; at < kept->length; at += strlen(buffer_text(kept) + at) + 1)
        log_line(l, "%s", buffer_text(kept) + at);
}

void log_event(struct log *l, const char *level, const char *fields, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    event(l, level, fields, format, args);
    va_end(args);
}

void log_set_json(struct log *l, int json)
{
    l->json = json;
    l->terminal = !json && isatty(l->fd);
    l->status_next = l->terminal ? 0 : clock_monotonic() + 60;
}

/* Writes a line that never wraps: a wider one would scroll the terminal with every redraw. The last column stays free,
 * because some terminals wrap there already. */
static void draw(struct log *l, const char *text, const char *name)
{
    enum { LEAST_OF_NAME = 8 };
    size_t columns = (size_t)terminal_columns(l->fd), room = columns ? columns - 1 : LINE_MAX_BYTES, used;
    struct buffer whole = BUFFER_EMPTY, b = BUFFER_EMPTY;
    int ascii = !terminal_utf8();

    buffer_format(&whole, "%s%s%s", l->program ? l->program : "", l->program ? ": " : "", text);
    buffer_append_text(&b, "\r\033[K");
    used = text_columns(buffer_text(&whole), whole.length);
    text_append_cut(&b, buffer_text(&whole), whole.length, room, ascii);
    if (name && used + 2 + LEAST_OF_NAME <= room) {
        buffer_append_text(&b, ": ");
        text_append_cut(&b, name, strlen(name), room - used - 2, ascii);
    }
    if (buffer_ok(&whole) && buffer_ok(&b))
        emit(l, b.data, b.length);
    buffer_release(&whole);
    buffer_release(&b);
}

static void show(struct log *l, double now, const char *text, const char *name)
{
    if (l->terminal)
        draw(l, text, name);
    else
        log_line(l, "%s%s%s", text, name ? ": " : "", name ? name : "");
    l->drawn = l->terminal;
    l->status_next = now + (l->terminal ? 0.1 : 60);
}

void log_progress(struct log *l, const char *format, ...)
{
    double now = clock_monotonic();
    char text[LINE_MAX_BYTES];
    va_list args;

    if (l->kept || now < l->status_next)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    show(l, now, text, NULL);
}

void log_progress_work(struct log *l, double began, double share, const char *name, const char *format, ...)
{
    double now = clock_monotonic(), spent = now - began;
    char text[LINE_MAX_BYTES], left[HUMAN_TEXT_MAX];
    int n;
    va_list args;

    if (l->kept || now < l->status_next)
        return;
    share = share < 1 ? share : 1; /* the files may have grown meanwhile */
    n = snprintf(text, sizeof text, "%.0f%% of ", 100 * share);
    va_start(args, format);
    n += vsnprintf(text + n, sizeof text - (size_t)n, format, args);
    va_end(args);
    if (spent >= 1 && share > 0 && n < (int)sizeof text)
        snprintf(text + n, sizeof text - (size_t)n, ", %s to go", human_duration(spent * (1 - share) / share, left));
    show(l, now, text, name);
}

void log_progress_end(struct log *l)
{
    if (l->drawn)
        emit(l, "\r\033[K", 4);
    l->drawn = 0;
}
