#include "eventlog/write/event_resume.h"

#include "base/file.h"
#include "eventlog/format/event_encode.h"
#include "eventlog/format/log_name.h"
#include "eventlog/format/record_file.h"
#include "eventlog/format/wire.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

int event_resume_newest(const char *directory, char *path, size_t size, struct error *e)
{
    char newest[NAME_MAX + 1] = "", candidate[PATH_MAX];
    DIR *d = opendir(directory);
    int rc;

    if (!d)
        return error_system(e, "%s: cannot read the directory", directory);
    errno = 0;
    for (struct dirent *entry; (entry = readdir(d)); errno = 0) {
        const char *end = strstr(entry->d_name, ".profile-empty");
        struct stat st;

        if (!strstr(entry->d_name, "tfevents") || (end && !end[strlen(".profile-empty")]) ||
            log_name_length(entry->d_name) < strlen(entry->d_name) || /* compressed, so it is finished */
            strcmp(entry->d_name, newest) <= 0 || strlen(entry->d_name) >= sizeof newest ||
            file_join(candidate, sizeof candidate, directory, entry->d_name, NULL) != OK)
            continue;
        if (stat(candidate, &st) == 0 && S_ISREG(st.st_mode))
            strcpy(newest, entry->d_name);
    }
    rc = errno ? error_system(e, "%s: cannot read the directory", directory) : OK;
    closedir(d);
    if (rc != OK || !*newest)
        return rc;
    rc = file_join(path, size, directory, newest, e);
    return rc == OK ? 1 : rc;
}

static int busy(const char *path, struct error *e)
{
    errno = EBUSY;
    return error_system(e, "%s: is being written; stop its writer first, or begin a new file", path);
}

/* Finds where the whole records of the file end. Damage that no whole record follows is a torn tail, unless no record
 * precedes it either: then this is not an event file, and we must not truncate it. */
static int find_end(struct record_file *f, const char *path, uint64_t *end, struct error *e)
{
    uint64_t damage = UINT64_MAX;
    struct record r;
    int rc;

    while ((rc = record_file_next(f, &r, e)) == RECORD_DATA || rc == RECORD_DAMAGE) {
        if (rc == RECORD_DAMAGE && damage == UINT64_MAX)
            damage = r.offset;
        if (damage != UINT64_MAX && (rc == RECORD_DATA || !damage))
            return error_set(e, ERR_CORRUPT,
                             "%s: damaged at byte %llu, and TensorBoard reads nothing after that; run `eventlog "
                             "repair`, or begin a new file",
                             path, (unsigned long long)damage);
    }
    *end = damage < f->parser.offset ? damage : f->parser.offset;
    return rc < 0 ? rc : OK;
}

int event_resume_open(const struct io *io, const char *path, int *fd, uint64_t *size, uint64_t *cut, struct error *e)
{
    struct record_file f;
    struct stat before, now;
    int rc = record_file_open(&f, path, e);

    *fd = -1;
    *cut = 0;
    if (rc != OK)
        goto out;
    if (fstat(f.fd, &before) < 0) {
        rc = error_system(e, "%s: cannot stat", path);
        goto out;
    }
    if (file_is_written(f.fd)) {
        rc = busy(path, e);
        goto out;
    }
    if ((rc = find_end(&f, path, size, e)) != OK)
        goto out;
    if ((*fd = io->open(io->context, path, O_RDWR | O_APPEND, 0)) < 0) {
        rc = error_system(e, "%s: cannot open for appending", path);
        goto out;
    }
    /* From here on no other writer of this library appends; if one did since the scan, the length has changed. */
    if ((flock(*fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) || fstat(*fd, &now) < 0 ||
        now.st_ino != before.st_ino || now.st_dev != before.st_dev || now.st_size != before.st_size)
        rc = busy(path, e);
    else if ((*cut = (uint64_t)now.st_size - *size) && io->ftruncate(io->context, *fd, (off_t)*size) < 0)
        rc = error_system(e, "%s: cannot cut off its torn tail at byte %llu", path, (unsigned long long)*size);
    if (rc != OK) {
        io->close(io->context, *fd);
        *fd = -1;
    }
out:
    record_file_close(&f);
    return rc;
}

int event_resume_purge(struct buffer *out, int64_t step, double wall_time, struct error *e)
{
    enum { SESSION_LOG = 7, STATUS = 1, START = 1 };
    struct wire body = WIRE_EMPTY;
    size_t session;

    wire_number(&body, 1, wall_time);
    wire_integer(&body, 2, step);
    session = wire_begin(&body, SESSION_LOG);
    wire_integer(&body, STATUS, START);
    wire_end(&body, session);
    for (int i = 0; i < 2 && buffer_ok(&body.bytes); i++)
        event_encode_record(out, body.bytes.data, body.bytes.length);
    wire_release(&body);
    return out->length && buffer_ok(out) ? OK : error_memory(e, NULL, "for a session start");
}
