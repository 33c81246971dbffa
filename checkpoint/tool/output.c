#include "checkpoint/tool/output.h"

#include "base/file.h"
#include "base/program/log.h"
#include "base/program/subcommand.h"
#include "base/program/terminal.h"
#include "base/text.h"
#include "base/unfinished.h"

#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* The extension decides; without one, --json does. */
static int choose_format(struct output *o, struct error *e)
{
    const char *ending = strrchr(file_base_name(o->path), '.');

    if (!ending || ending == file_base_name(o->path))
        return OK;
    if (strcasecmp(ending, ".json") == 0) {
        o->json = 1;
        return OK;
    }
    if (strcasecmp(ending, ".txt") != 0)
        return error_set(e, ERR_ARG, "-o %s: unknown extension '%s'; use .json or .txt", o->path, ending);
    return o->json ? error_set(e, ERR_ARG, "-o %s: a text file, but --json was given; omit one of them", o->path) : OK;
}

static int open_file(struct output *o, struct error *e)
{
    struct stat st;
    int fd;

    if (stat(o->path, &st) == 0 && !S_ISREG(st.st_mode)) { /* a device or a pipe: nothing to rename */
        if (!(o->file = fopen(o->path, "we")))
            return error_system(e, "%s: cannot open", o->path);
        return OK;
    }
    if (!o->force && lstat(o->path, &st) == 0)
        return error_set(e, ERR_ARG, "%s: already exists; use -f to overwrite it", o->path);
    if (snprintf(o->temporary, sizeof o->temporary, "%s.tmp%ld", o->path, (long)getpid()) >= (int)sizeof o->temporary) {
        *o->temporary = '\0';
        return error_set(e, ERR_ARG, "%s: path too long", o->path);
    }
    o->unfinished = unfinished_begin(AT_FDCWD, o->temporary);
    unlink(o->temporary); /* left by a killed process with our process id */
    if ((fd = open(o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) >= 0 && (o->file = fdopen(fd, "w")))
        return OK;
    error_system(e, "%s: cannot create a temporary file beside it", o->path);
    if (fd >= 0) {
        close(fd);
        unlink(o->temporary);
    }
    *o->temporary = '\0';
    return ERR_IO;
}

int output_open(struct output *o, struct error *e)
{
    int rc;

    if (!o->path || strcmp(o->path, "-") == 0) {
        o->path = NULL;
        o->file = stdout;
        return OK;
    }
    return (rc = choose_format(o, e)) == OK ? open_file(o, e) : rc;
}

/* Keeps the first error. */
static void failed(struct output *o, const char *what)
{
    if (o->error.code == OK)
        error_system(&o->error, "%s: cannot %s", o->path ? o->path : "standard output", what);
}

/* Wraps lines that are wider than the terminal between words. */
static void wrap(struct output *o)
{
    size_t columns = (size_t)terminal_columns(fileno(o->file));
    struct buffer whole = o->text;
    char *line = whole.data, *end;

    buffer_init(&o->text);
    for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        text_append_wrapped(&o->text, line, 0, 2, columns);
        buffer_append_byte(&o->text, '\n');
    }
    buffer_append_text(&o->text, line);
    o->text.failed |= whole.failed;
    buffer_release(&whole);
}

void output_put(struct output *o)
{
    if (o->text.length && !o->json && isatty(fileno(o->file)))
        wrap(o);
    if (!buffer_ok(&o->text) && o->error.code == OK)
        error_memory(&o->error, NULL, "for the output");
    if (o->error.code == OK && fwrite(buffer_text(&o->text), 1, o->text.length, o->file) != o->text.length)
        failed(o, "write");
    buffer_clear(&o->text);
}

int output_fail(struct output *o, const struct error *e)
{
    struct log log;

    if (o->file)
        fflush(o->file);
    log_init(&log, o->program, 2);
    log_line(&log, "%s", e->message);
    return EXIT_USAGE;
}

int output_close(struct output *o, int status)
{
    if (o->file) {
        if (o->text.length || !buffer_ok(&o->text))
            output_put(o);
        if (fflush(o->file) != 0 || ferror(o->file) || (*o->temporary && fsync(fileno(o->file)) < 0))
            failed(o, "write");
        if (o->path && fclose(o->file) != 0)
            failed(o, "close");
        o->file = NULL;
    }
    if (*o->temporary && o->error.code == OK && status != EXIT_USAGE && rename(o->temporary, o->path) < 0)
        failed(o, "rename into place");
    if (*o->temporary && (o->error.code != OK || status == EXIT_USAGE))
        unlink(o->temporary);
    unfinished_end(o->unfinished);
    buffer_release(&o->text);
    return o->error.code == OK ? status : output_fail(o, &o->error);
}
