#include "eventlog/tool/rewrite/rewrite.h"

#include "base/file.h"
#include "base/human.h"
#include "base/json.h"
#include "base/program/terminal.h"
#include "base/unfinished.h"
#include "eventlog/rewrite/log_replace.h"
#include "eventlog/rewrite/log_rewrite.h"
#include "eventlog/tool/output_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FLUSH = 256 * 1024, DAMAGE_LINES = 20 };

/* ERR_ARG: one of the files is not there as it is, so that another cannot take its place. */
static int refuse_packed(struct rewrite *w, struct error *e)
{
    for (const struct log_run *run = NULL; (run = scan_next_run(&w->scan, run));)
        for (size_t k = 0; k < run->file_count; k++) {
            const char *packed = log_input_packed(&w->scan.input, run->files[k]);

            if (packed)
                return error_set(e, ERR_ARG, "%s: is %s, which cannot be changed in place; -o DIR writes a new log",
                                 run->files[k], packed);
        }
    return OK;
}

int rewrite_open(struct rewrite *w, char *const *paths, size_t count)
{
    struct error e = { 0 };
    int status;

    if (output_stream_is(w->output) && w->json) {
        error_set(&e, ERR_ARG, "--json contradicts '-o -', which writes the new log to standard output");
        return scan_fail(&w->scan, &e);
    }
    if (!w->output == !w->in_place) {
        error_set(&e, ERR_ARG,
                  w->output ? "-o DIR contradicts --in-place; give one of them" : "no output given; add -o DIR");
        return scan_fail(&w->scan, &e);
    }
    if ((status = scan_open(&w->scan, paths, count)) != EXIT_DONE || !w->in_place)
        return status;
    if (refuse_packed(w, &e) == OK)
        return EXIT_DONE;
    scan_close(&w->scan);
    return scan_fail(&w->scan, &e);
}

static int same_file(const char *a, const char *b)
{
    struct stat x, y;

    return !strcmp(a, b) || (stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

static void tell_damage(struct rewrite *w, const char *path, const struct record *r, uint64_t number)
{
    static const char *const what[] = { "wrong length CRC; left out everything up to the next record",
                                        "wrong data CRC; left out the record",
                                        "impossible record length; left out the record",
                                        "the compressed file is damaged or cut; left out the rest" };

    if (w->looking_ahead)
        return;
    w->scan.damaged++;
    if (number < DAMAGE_LINES)
        log_line(&w->scan.log, "%s:%llu: %s", path, (unsigned long long)r->offset, what[r->damage]);
    else if (number == DAMAGE_LINES)
        log_line(&w->scan.log, "%s: more damage in this file is only counted", path);
}

static int visit_all(struct rewrite *w, const char *run, struct record_file *f, const char *path, rewrite_visit *visit,
                     void *context, struct error *e)
{
    uint64_t damaged = 0, refused = 0;
    char size[HUMAN_TEXT_MAX];
    struct record r;
    int rc;

    while ((rc = record_file_next(f, &r, e)) == RECORD_DATA || rc == RECORD_DAMAGE) {
        struct event event;

        if (rc == RECORD_DAMAGE)
            tell_damage(w, path, &r, damaged++);
        else if (!log_rewrite_sound(r.data, r.length, &event))
            refused++;
        else if ((rc = visit(context, r.offset, r.data, r.length, &event, e)) != OK)
            return rc;
        if (scan_progress_due(&w->scan))
            scan_progress(&w->scan, run, r.offset);
    }
    scan_progress_end(&w->scan);
    if (w->looking_ahead)
        return rc == RECORD_MORE ? OK : rc;
    if (refused)
        log_line(&w->scan.log,
                 "%s: left out %llu records with correct CRCs at which a TensorBoard loader gives up; run 'eventlog "
                 "verify' to see why",
                 path, (unsigned long long)refused);
    w->scan.damaged += refused;
    if (rc == RECORD_MORE && f->parser.offset < f->size) {
        log_line(&w->scan.log, "%s: left out an incomplete last record of %s", path,
                 human_bytes(f->size - f->parser.offset, size));
        w->torn += f->size - f->parser.offset;
    }
    w->bytes_in += f->size;
    return rc == RECORD_MORE ? OK : rc;
}

int rewrite_read(struct rewrite *w, const char *run, const char *path, rewrite_visit *visit, void *context,
                 struct error *e)
{
    struct record_file f;
    int before = e->code, rc = log_input_open(&w->scan.input, path, &f, e);

    if (rc == OK)
        rc = record_file_check(&f, e);
    if (rc == OK)
        scan_progress_file(&w->scan, path, f.size);
    if (rc == OK)
        rc = visit_all(w, run, &f, path, visit, context, e);
    else if (rc == ERR_IO && !w->in_place && scan_gone(&w->scan, path, e)) {
        e->code = before;
        rc = OK;
    } else if (rc == ERR_IO) {
        w->scan.failed = 1;
        if (!w->looking_ahead)
            log_line(&w->scan.log, "%s", e->message);
        e->code = before;
        rc = OK;
    }
    record_file_close(&f);
    return rc;
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

/* 1 if the path leads to one of the files that are read. */
static int is_input(const struct rewrite *w, const char *path)
{
    for (size_t i = 0; i < w->scan.directory.count; i++)
        for (size_t k = 0; k < w->scan.directory.runs[i].file_count; k++)
            if (same_file(path, w->scan.directory.runs[i].files[k]))
                return 1;
    return 0;
}

/* The struct with its names. */
static int add_file(struct rewrite *w, const char *run, const char *path, struct rewrite_file **out, struct error *e)
{
    struct rewrite_file **bigger = realloc(w->files, (w->count + 1) * sizeof *bigger), *f = calloc(1, sizeof *f);

    if (bigger)
        w->files = bigger;
    if (!bigger || !f || !(f->path = strdup(path)) || !(f->run = strdup(run))) {
        free(f ? f->path : NULL);
        free(f);
        return error_memory(e, path, "for it");
    }
    f->fd = -1;
    w->files[w->count++] = f;
    *out = f;
    return OK;
}

/* And the temporary file beside path. */
static int begin(struct rewrite *w, const char *run, const char *path, struct rewrite_file **out, struct error *e)
{
    const char *base = file_base_name(path);
    char temporary[PATH_MAX];
    struct rewrite_file *f;
    int rc = add_file(w, run, path, &f, e);

    if (rc != OK)
        return rc;
    if (snprintf(temporary, sizeof temporary, "%.*s.eventlog.%ld.%zu.tmp", (int)(base - path), path, (long)getpid(),
                 w->count) >= (int)sizeof temporary)
        return error_set(e, ERR_ARG, "%s: path too long", path);
    f->unfinished = unfinished_begin(AT_FDCWD, temporary);
    unlink(temporary); /* of a killed process with our number */
    if ((f->fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) < 0)
        return error_system(e, "%s: cannot create", temporary);
    if (!(f->temporary = strdup(temporary))) {
        unlink(temporary);
        return error_memory(e, path, "for it");
    }
    *out = f;
    return OK;
}

int rewrite_create(struct rewrite *w, const char *run, const char *name, struct rewrite_file **out, struct error *e)
{
    char directory[PATH_MAX], path[PATH_MAX];
    struct stat st;
    int rc, made;

    *out = NULL;
    if (output_stream_is(w->output)) {
        if (w->count)
            return error_set(e, ERR_ARG, "'-o -' cannot take more than one new file; give a directory");
        return (rc = add_file(w, run, "standard output", out, e)) == OK ? output_stream_open(&(*out)->fd, e) : rc;
    }
    if ((rc = file_join(directory, sizeof directory, w->output, strcmp(run, ".") != 0 ? run : "", e)) != OK ||
        (rc = file_join(path, sizeof path, directory, name, e)) != OK)
        return rc;
    if (!w->force && log_directory_holds_files(directory))
        return error_set(
            e, ERR_ARG, "%s: already holds event files; choose another DIR, or use -f to write beside them", directory);
    if (lstat(path, &st) == 0 && is_input(w, path))
        return error_set(e, ERR_ARG, "%s: is one of the input files; choose another DIR", path);
    made = stat(directory, &st) < 0;
    if ((rc = file_make_directories(directory, e)) == OK && (rc = begin(w, run, path, out, e)) == OK)
        (*out)->made = made;
    return rc;
}

/* The old file is as it was, and nobody writes it. */
static int unchanged(const struct rewrite_file *f, struct error *e)
{
    int fd = open(f->path, O_RDONLY | O_CLOEXEC), rc;

    if (fd < 0)
        return error_system(e, "%s: cannot be opened", f->path);
    rc = log_replace_unchanged(fd, f->path, &f->before, e);
    close(fd);
    return rc;
}

int rewrite_create_in_place(struct rewrite *w, const char *run, const char *given, struct rewrite_file **out,
                            struct error *e)
{
    char path[PATH_MAX];
    int rc;

    *out = NULL;
    if (!realpath(given, path)) /* a link stays a link: the file it leads to is replaced */
        return error_system(e, "%s: cannot be opened", given);
    if ((rc = begin(w, run, path, out, e)) != OK)
        return rc;
    (*out)->in_place = 1;
    if (stat(path, &(*out)->before) < 0)
        return error_system(e, "%s: cannot be opened", path);
    fchmod((*out)->fd, (*out)->before.st_mode & 07777);
    return unchanged(*out, e);
}

int rewrite_flush(struct rewrite *w, struct rewrite_file *f, int end, struct error *e)
{
    int fd;

    if (!buffer_ok(&f->pending))
        return error_memory(e, f->path, "for it");
    if (f->pending.length < FLUSH && !end)
        return OK;
    if (f->pending.length && io_write_full(&io_real, f->fd, f->pending.data, f->pending.length) < 0)
        return error_system(e, "%s: cannot write", f->temporary ? f->temporary : f->path);
    f->bytes += f->pending.length;
    w->bytes_out += f->pending.length;
    buffer_clear(&f->pending);
    if (!end)
        return OK;
    buffer_release(&f->pending);
    if (output_stream_is(w->output)) /* sent by rewrite_commit() */
        return OK;
    fd = f->fd;
    f->fd = -1;
    if (!f->keep_old)
        return sync_group_file(&w->sync, fd, f->temporary, e);
    close(fd);
    return OK;
}

int rewrite_commit(struct rewrite *w, struct error *e)
{
    int rc = w->scan.failed ? error_set(e, ERR_IO, "nothing was written, because not everything could be read")
                            : sync_group_run(&w->sync, e);

    for (size_t i = 0; rc == OK && i < w->count; i++) {
        struct rewrite_file *f = w->files[i];

        if (f->keep_old)
            continue;
        if (f->in_place) {
            if ((rc = unchanged(f, e)) == OK)
                rc = log_replace_exchange(&io_real, f->path, f->temporary, e);
        } else if (output_stream_is(w->output)) {
            rc = output_stream_send(f->fd, e);
            f->fd = -1;
        } else if (rename(f->temporary, f->path) < 0) {
            rc = error_system(e, "%s: cannot rename into place", f->path);
        }
        if (rc == OK) {
            free(f->temporary);
            f->temporary = NULL;
        }
        if (rc == OK && !output_stream_is(w->output))
            rc = sync_group_parent(&w->sync, f->path, e);
    }
    return rc == OK ? sync_group_run(&w->sync, e) : rc;
}

/* The directories that were made for a file which is not there now, as far as nothing else is in them. */
static void remove_empty(char *path)
{
    for (char *slash; (slash = strrchr(path, '/')) && slash != path;) {
        *slash = '\0';
        if (rmdir(path) < 0)
            break;
    }
}

int rewrite_close(struct rewrite *w, int rc, int matched, const struct error *e)
{
    int status;

    w->scan.unmatched += !matched; /* the line on what was done tells it */
    status = rc == OK ? scan_status(&w->scan, matched) : scan_fail(&w->scan, e);

    if (rc == OK && fflush(stdout) != 0) {
        log_line(&w->scan.log, "standard output: cannot write: %s", strerror(errno));
        status = EXIT_USAGE;
    }
    sync_group_release(&w->sync);
    for (size_t i = 0; i < w->count; i++) {
        struct rewrite_file *f = w->files[i];

        if (f->fd >= 0)
            close(f->fd);
        if (f->temporary && unlink(f->temporary) == 0 && f->made)
            remove_empty(f->path);
        unfinished_end(f->unfinished);
        buffer_release(&f->pending);
        free(f->temporary);
        free(f->path);
        free(f->run);
        free(f);
    }
    free(w->files);
    tag_index_release(&w->tags);
    scan_close(&w->scan);
    return status;
}

/* ---- what was done --------------------------------------------------------------------------------------------- */

/* The names of the runs that files were written of, as an array. */
static void append_runs(struct buffer *b, const struct rewrite *w)
{
    struct tag_index seen = TAG_INDEX_EMPTY;

    buffer_append_byte(b, '[');
    for (size_t i = 0; i < w->count; i++) {
        const char *run = w->files[i]->run;

        if (w->files[i]->keep_old || tag_index_find(&seen, run, strlen(run)) != TAG_INDEX_NONE)
            continue;
        buffer_append_text(b, seen.count ? "," : "");
        json_text(b, run);
        b->failed |= tag_index_add(&seen, run, strlen(run)) == TAG_INDEX_NONE;
    }
    buffer_append_byte(b, ']');
    tag_index_release(&seen);
}

size_t rewrite_files(const struct rewrite *w)
{
    size_t files = 0;

    for (size_t i = 0; i < w->count; i++)
        files += !w->files[i]->keep_old;
    return files;
}

void rewrite_print(const struct rewrite *w, const char *word, const char *more)
{
    FILE *out = output_stream_is(w->output) ? stderr : stdout;
    struct buffer b = BUFFER_EMPTY;
    char size[HUMAN_TEXT_MAX], counted[3][HUMAN_TEXT_MAX];
    const size_t files = rewrite_files(w);

    if (w->json) {
        buffer_format(&b, "{\"type\":\"%s\",\"version\":1,\"output\":", word);
        json_text(&b, w->output);
        buffer_append_text(&b, ",\"runs\":");
        append_runs(&b, w);
        buffer_format(&b,
                      ",\"total\":{\"files\":%zu,\"records\":%llu,\"values\":%llu,\"bytes\":%llu,"
                      "\"dropped\":%llu,\"damage\":%llu,\"lost\":%llu%s}}",
                      files, (unsigned long long)w->records, (unsigned long long)w->values,
                      (unsigned long long)w->bytes_out, (unsigned long long)w->dropped,
                      (unsigned long long)w->scan.damaged, (unsigned long long)w->torn, more);
        fprintf(out, "%s\n", buffer_text(&b));
    } else {
        buffer_format(&b, "%s: %s, %s with %s, %s%s",
                      output_stream_is(w->output) ? "standard output"
                      : w->output                 ? w->output
                                                  : "in place",
                      human_count(files, "file", counted[0]), human_count(w->records, "record", counted[1]),
                      human_count(w->values, "value", counted[2]), human_bytes(w->bytes_out, size), more);
        terminal_put_line(out, buffer_text(&b));
    }
    buffer_release(&b);
}
