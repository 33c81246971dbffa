#include "evaluator/record/evaluation_intent.h"

#include "base/buffer.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/record_frame.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { POINTS_LIMIT = 64 << 20, HEAD = 42 };

void evaluation_intent_release(struct evaluation_intent *i)
{
    free(i->line);
    *i = (struct evaluation_intent){ .step = -1 };
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

/* Of the text behind the head. Without a whole one there is no line: it was not written to its end. */
static int read_line(const char *text, size_t n, struct evaluation_intent *out, struct error *e)
{
    const char *name = memchr(text, ' ', n), *newline = name ? memchr(name, '\n', (size_t)(text + n - name)) : NULL;
    const size_t length = newline ? (size_t)(text + n - newline - 1) : 0;
    unsigned crc;
    int at = 0;

    if (!newline || sscanf(text, "%8x %" SCNu64 " %" SCNu64 " %n", &crc, &out->before, &out->events, &at) != 3 || !at ||
        crc32c(text + 8, n - 8) != crc || newline - text - at > NAME_MAX ||
        memchr(text + at, '/', (size_t)(newline - text - at)))
        return OK;
    snprintf(out->file, sizeof out->file, "%.*s", (int)(newline - text - at), text + at);
    return (out->line = strndup(newline + 1, length)) ? OK : error_memory(e, NULL, "for a line of the ledger");
}

int evaluation_intent_read(const char *eval_directory, struct evaluation_intent *out, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    struct error why = { 0 };
    char path[PATH_MAX];
    long long run, step;
    size_t known;
    int rc;

    *out = (struct evaluation_intent){ .step = -1 };
    if ((rc = file_join(path, sizeof path, eval_directory, ".points", e)) != OK)
        return rc;
    rc = file_read_plain(path, POINTS_LIMIT, &text, &why);
    if (rc == ERR_IO && why.system == ENOENT) {
        buffer_release(&text);
        return OK;
    }
    known = rc == OK ? strspn(buffer_text(&text), "-0123456789 \n") : 0;
    if (rc != OK)
        error_set(e, rc, "%s", why.message);
    else if (known < HEAD && !file_begins(buffer_text(&text) + known, text.length - known, " ")) /* not even zeros */
        rc = error_set(e, ERR_ARG, "%s: is not a file of the evaluator; move it elsewhere", path);
    else if (sscanf(buffer_text(&text), "%20lld %20lld", &run, &step) == 2 && run >= 0 && step >= -1) {
        out->run = run;
        out->step = step;
        if (text.length > HEAD)
            rc = read_line(buffer_text(&text) + HEAD, text.length - HEAD, out, e);
    }
    buffer_release(&text);
    return rc;
}

static int open_points(const char *eval_directory, int flags, char path[PATH_MAX], int *fd, struct error *e)
{
    int rc = file_join(path, PATH_MAX, eval_directory, ".points", e);

    return rc == OK ? file_open_plain(NULL, path, O_WRONLY | flags, fd, e) : rc;
}

int evaluation_intent_write(const char *eval_directory, const struct evaluation_intent *i, struct error *e)
{
    struct buffer rest = BUFFER_EMPTY, text = BUFFER_EMPTY;
    char path[PATH_MAX];
    int fd, rc;

    if ((rc = open_points(eval_directory, O_CREAT, path, &fd, e)) != OK)
        return rc;
    buffer_format(&text, "%20lld %20lld\n", (long long)i->run, (long long)i->step);
    if (i->line) {
        buffer_format(&rest, " %" PRIu64 " %" PRIu64 " %s\n", i->before, i->events, i->file);
        buffer_append_text(&rest, i->line);
        buffer_format(&text, "%08x", crc32c(buffer_text(&rest), rest.length));
        buffer_append(&text, rest.data, rest.length);
    }
    if (!buffer_ok(&text) || !buffer_ok(&rest))
        rc = error_memory(e, path, "for a line of the ledger");
    else if (file_write_at(fd, text.data, text.length, 0) < 0 || ftruncate(fd, (off_t)text.length) < 0)
        rc = error_system(e, "%s: cannot write", path);
    else if (fdatasync(fd) < 0)
        rc = error_system(e, "%s: cannot sync", path);
    buffer_release(&rest);
    buffer_release(&text);
    close(fd);
    return rc;
}

void evaluation_intent_done(const char *eval_directory, struct evaluation_intent *i)
{
    char path[PATH_MAX];
    int fd;

    if (!i->line)
        return;
    free(i->line);
    i->line = NULL;
    if (open_points(eval_directory, 0, path, &fd, NULL) != OK)
        return;
    if (ftruncate(fd, HEAD) < 0)
        errno = 0; /* as the header says */
    close(fd);
}

/* ---- the events -------------------------------------------------------------------------------------------------- */

/* 1: the record there is whole; *end becomes where it ends. */
static int record_whole(int fd, uint64_t at, uint64_t *end)
{
    uint8_t header[RECORD_HEADER], footer[RECORD_FOOTER], piece[1 << 14];
    uint64_t length, done = 0;
    uint32_t crc = 0;

    if (file_read_at(fd, header, sizeof header, at) != sizeof header || !record_header_right(header, &length))
        return 0;
    at += RECORD_HEADER;
    while (done < length) {
        const size_t n = length - done < sizeof piece ? (size_t)(length - done) : sizeof piece;

        if (file_read_at(fd, piece, n, at + done) != (ssize_t)n)
            return 0;
        crc = crc32c_extend(crc, piece, n);
        done += n;
    }
    *end = at + length + RECORD_FOOTER;
    return file_read_at(fd, footer, sizeof footer, at + length) == sizeof footer &&
           get_le32(footer) == crc32c_mask(crc);
}

int evaluation_intent_settle(const char *run_directory, const struct evaluation_intent *i, struct error *e)
{
    struct error why = { 0 };
    uint64_t at = i->before, whole = 0;
    char path[PATH_MAX];
    int fd, rc;

    if ((rc = file_join(path, sizeof path, run_directory, i->file, e)) != OK)
        return rc;
    if ((rc = file_open_plain(NULL, path, O_RDWR, &fd, &why)) != OK)
        return why.system == ENOENT || why.system == ENOTDIR ? 0 : error_copy(e, &why);
    while (whole < i->events && record_whole(fd, at, &at))
        whole++;
    rc = whole == i->events;
    if (!rc && lseek(fd, 0, SEEK_END) > (off_t)i->before && (ftruncate(fd, (off_t)i->before) < 0 || fsync(fd) < 0))
        rc = error_system(e, "%s: cannot cut off events of an evaluation that was not finished", path);
    close(fd);
    return rc;
}
