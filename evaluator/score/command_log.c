#include "evaluator/score/command_log.h"

#include "base/file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void command_log_init(struct command_log *l, size_t limit)
{
    *l = (struct command_log){ .fd = -1, .limit = limit };
}

void command_log_open(struct command_log *l, const char *path)
{
    snprintf(l->path, sizeof l->path, "%s", path);
    file_open_plain(NULL, path, O_WRONLY | O_CREAT | O_APPEND, &l->fd, NULL);
}

void command_log_close(struct command_log *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
    free(l->tail);
    l->tail = NULL;
}

void command_log_note(struct command_log *l, const char *format, ...)
{
    struct timespec now;
    struct tm utc;
    va_list args;
    char date[32];

    if (l->fd < 0)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now.tv_sec, &utc));
    dprintf(l->fd, "%s# %s ", l->in_line ? "\n" : "", date);
    va_start(args, format);
    vdprintf(l->fd, format, args);
    va_end(args);
    dprintf(l->fd, "\n");
    l->in_line = 0;
}

static void put(struct command_log *l, const char *bytes, size_t n)
{
    ssize_t ignored = n ? write(l->fd, bytes, n) : 0; /* the ledger will report a full disk */

    (void)ignored;
    if (n)
        l->in_line = bytes[n - 1] != '\n';
}

/* Copies those of n bytes that the ring has room for to their places. */
static void keep_last(struct command_log *l, const char *bytes, size_t n)
{
    const size_t kept = n < COMMAND_LOG_TAIL ? n : COMMAND_LOG_TAIL;
    const size_t at = (l->beyond + (n - kept)) % COMMAND_LOG_TAIL;
    const size_t first = kept < COMMAND_LOG_TAIL - at ? kept : COMMAND_LOG_TAIL - at;

    memcpy(l->tail + at, bytes + (n - kept), first);
    memcpy(l->tail, bytes + (n - kept) + first, kept - first);
}

void command_log_add(struct command_log *l, const char *bytes, size_t n)
{
    const size_t room = l->limit - COMMAND_LOG_TAIL - l->head, now = n < room ? n : room;
    const uint64_t before = l->beyond;

    if (l->fd < 0)
        return;
    put(l, bytes, now);
    l->head += now;
    if (n == now)
        return;
    if (l->tail || (l->tail = malloc(COMMAND_LOG_TAIL)))
        keep_last(l, bytes + now, n - now);
    l->beyond += n - now;
    if (before <= COMMAND_LOG_TAIL && l->beyond > COMMAND_LOG_TAIL)
        command_log_note(l, "too much output: only the last %d bytes of the rest are kept", COMMAND_LOG_TAIL);
}

void command_log_end(struct command_log *l)
{
    const uint64_t kept = !l->tail ? 0 : l->beyond < COMMAND_LOG_TAIL ? l->beyond : COMMAND_LOG_TAIL;
    const size_t at = l->beyond > kept ? l->beyond % COMMAND_LOG_TAIL : 0;

    if (l->beyond > kept)
        command_log_note(l, "%" PRIu64 " bytes are left out here", l->beyond - kept);
    if (kept) {
        put(l, l->tail + at, (size_t)kept - at);
        put(l, l->tail, at);
    }
    free(l->tail);
    l->tail = NULL;
    l->head = 0;
    l->beyond = 0;
}

void command_log_last_line(const struct command_log *l, char *out, size_t size)
{
    char text[4096], *rest = NULL;
    int fd = l->fd < 0 ? -1 : open(l->path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    ssize_t n;

    *out = '\0';
    if (fd < 0)
        return;
    n = fstat(fd, &st) == 0 ? pread(fd, text, sizeof text - 1, st.st_size > 4095 ? st.st_size - 4095 : 0) : -1;
    close(fd);
    if (n <= 0)
        return;
    text[n] = '\0';
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (strncmp(line, "# ", 2) && line[strspn(line, " \t\r")])
            snprintf(out, size, ": %.*s", 160, line);
    for (; *out; out++)
        if ((unsigned char)*out < ' ' || *out == 0x7f)
            *out = ' ';
}

void command_log_see(const struct command_log *l, char *out, size_t size)
{
    *out = '\0';
    if (l->fd >= 0)
        snprintf(out, size, "; see %.200s", l->path);
}
