#include "eventlog/rewrite/log_repair.h"

#include "base/file.h"
#include "base/human.h"
#include "eventlog/check/log_check.h"
#include "eventlog/rewrite/log_replace.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 64 * 1024 };

/* ---- copying --------------------------------------------------------------------------------------------------- */

struct copy {
    const struct io *io;
    int fd;
    const char *to;
    struct buffer pending;
};

static int flush(struct copy *c, struct error *e)
{
    if (!buffer_ok(&c->pending))
        return error_memory(e, c->to, "for it");
    if (c->fd >= 0 && c->pending.length && io_write_full(c->io, c->fd, c->pending.data, c->pending.length) < 0)
        return error_system(e, "%s: cannot write", c->to);
    buffer_clear(&c->pending);
    return OK;
}

static int repair_keep(struct copy *c, const struct record *record, struct eventlog_repair *r, struct error *e)
{
    size_t place;

    if (log_check_data(record->data, record->length, &place) != LOG_KINDS) {
        r->refused++;
        return OK;
    }
    r->records++;
    r->bytes += record->length + RECORD_OVERHEAD;
    if (c->fd < 0)
        return OK;
    buffer_append(&c->pending, record->data - RECORD_HEADER, record->length + RECORD_OVERHEAD);
    return c->pending.length < BLOCK ? OK : flush(c, e);
}

/* Continues with the first whole record that begins in [from, to): 1, or 0 if there is none. */
static int resume_at(struct record_file *f, uint64_t from, uint64_t to, struct error *e)
{
    uint64_t place;
    const int found = record_file_find(f, from, to, &place);

    if (found < 0)
        return error_system(e, "%s: cannot be read", f->path);
    if (found)
        record_parser_init(&f->parser, place, 0);
    return found;
}

/* After a damaged record. If no record follows where its length says, it was torn, and others are in the bytes that it
 * covers. */
static int resume(struct record_file *f, const struct record *record, struct error *e)
{
    const uint64_t behind = f->parser.offset;

    if (behind == f->size)
        return record->damage == RECORD_BAD_DATA_CRC ? resume_at(f, record->offset + 1, behind, e) : 0;
    if (record->damage == RECORD_BAD_LENGTH_CRC || behind <= record->offset)
        return 0;
    switch (record_file_holds(f, behind)) {
    case 0: return resume_at(f, record->offset + 1, behind, e);
    case 1: return 0;
    default: return error_system(e, "%s: cannot be read", f->path);
    }
}

/* Copies the sound records of an open file; c->fd < 0: only counts them. */
static int copy_records(struct record_file *f, struct copy *c, struct eventlog_repair *r, struct error *e)
{
    struct record record;
    int rc = OK;

    for (;;) {
        uint64_t next;

        if ((rc = record_file_next(f, &record, e)) < 0)
            break;
        if (rc == RECORD_DATA) {
            if ((rc = repair_keep(c, &record, r, e)) != OK)
                break;
            continue;
        }
        if (rc == RECORD_DAMAGE) {
            r->places++;
            if ((rc = resume(f, &record, e)) < 0)
                break;
            continue;
        }
        /* The end. A record longer than what is left may be torn, with others behind it. */
        next = f->parser.offset;
        if (next < f->size && (rc = resume_at(f, next + 1, f->size, e)) != 0) {
            if (rc < 0)
                break;
            r->places++;
            continue;
        }
        r->cut = f->size - next;
        rc = OK;
        break;
    }
    r->size = f->size;
    return rc == OK ? flush(c, e) : rc;
}

static int copy_file(struct record_file *f, const struct io *io, int fd, const char *to, struct eventlog_repair *r,
                     struct error *e)
{
    struct copy c = { io ? io : &io_real, fd, to, BUFFER_EMPTY };
    int rc;

    memset(r, 0, sizeof *r);
    rc = copy_records(f, &c, r, e);
    buffer_release(&c.pending);
    return rc;
}

int log_repair_copy(const struct io *io, const char *path, int fd, const char *to, struct eventlog_repair *r,
                    struct error *e)
{
    struct record_file f;
    int rc = record_file_open(&f, path, e);

    if (rc == OK)
        rc = copy_file(&f, io, fd, to, r, e);
    record_file_close(&f);
    return rc;
}

/* A file of which nothing is left is no repair of it. */
static int check_kept(const char *path, const struct eventlog_repair *r, struct error *e)
{
    char places[HUMAN_TEXT_MAX], refused[HUMAN_TEXT_MAX], cut[HUMAN_TEXT_MAX];

    if (r->records || (!r->size && !r->places))
        return OK;
    return error_set(e, ERR_CORRUPT, "%s: nothing in it can be kept: %s, %s that are not events, a tail of %s", path,
                     human_count(r->places, "damaged place", places), human_count(r->refused, "record", refused),
                     human_bytes(r->cut, cut));
}

int log_repair_into(struct log_input *in, const char *path, int fd, const char *to, struct eventlog_repair *r,
                    struct error *e)
{
    struct record_file f;
    int rc = log_input_open(in, path, &f, e);

    if (rc == OK)
        rc = record_file_check(&f, e);
    if (rc == OK && (rc = copy_file(&f, NULL, fd, to, r, e)) == OK)
        rc = check_kept(path, r, e);
    record_file_close(&f);
    return rc;
}

/* ---- files ----------------------------------------------------------------------------------------------------- */

/* Writes the sound records of path to the new file. */
static int write_new(const struct log_replace_file *new, struct record_file *f, const char *path,
                     const struct stat *from, struct eventlog_repair *r, struct error *e)
{
    int rc = copy_file(f, new->io, new->fd, new->temporary, r, e);

    if (rc == OK)
        rc = check_kept(path, r, e);
    if (rc == OK && from->st_mode)
        fchmod(new->fd, from->st_mode & 07777); /* the same users may read it */
    return rc;
}

int log_repair_to(const struct io *io, struct log_input *in, const char *path, const char *to, int force,
                  struct eventlog_repair *r, struct error *e)
{
    struct log_replace_file new;
    struct record_file f;
    struct stat from = { 0 }, st;
    int rc = log_input_open(in, path, &f, e);

    if (rc == OK)
        rc = record_file_check(&f, e);
    if (rc == OK && stat(path, &from) < 0)
        from = (struct stat){ 0 }; /* standard input, or a member of an archive */
    if (rc == OK && stat(to, &st) == 0 && st.st_dev == from.st_dev && st.st_ino == from.st_ino)
        rc = error_set(e, ERR_ARG, "%s: is the damaged file itself; use --in-place to repair it there", to);
    else if (rc == OK && !force && lstat(to, &st) == 0)
        rc = error_set(e, ERR_ARG, "%s: already exists; use -f to overwrite it", to);
    if (rc == OK && (rc = log_replace_open(&new, io ? io : &io_real, to, e)) == OK)
        rc = log_replace_close(&new, to, -1, NULL, write_new(&new, &f, path, &from, r, e), e);
    r->changed = rc == OK;
    record_file_close(&f);
    return rc;
}

int log_repair_in_place(const struct io *io, const char *given, struct eventlog_repair *r, struct error *e)
{
    char path[PATH_MAX];
    struct log_replace_file new;
    struct record_file f;
    struct stat before;
    int rc;

    *r = (struct eventlog_repair){ 0 };
    io = io ? io : &io_real;
    if (!realpath(given, path)) /* a link stays a link: the file it leads to is replaced */
        return error_system(e, "%s: cannot be opened", given);
    if ((rc = record_file_open(&f, path, e)) != OK || (rc = record_file_check(&f, e)) != OK)
        goto out;
    if (fstat(f.fd, &before) < 0) {
        rc = error_system(e, "%s: cannot stat", path);
        goto out;
    }
    if ((rc = log_replace_unchanged(f.fd, path, &before, e)) != OK || (rc = copy_file(&f, io, -1, path, r, e)) != OK ||
        r->bytes == r->size)
        goto out;
    record_parser_init(&f.parser, 0, 0);
    if ((rc = log_replace_open(&new, io, path, e)) == OK)
        rc = log_replace_close(&new, path, f.fd, &before, write_new(&new, &f, path, &before, r, e), e);
    r->changed = rc == OK;
out:
    record_file_close(&f);
    return rc;
}
