#include "eventlog/write/event_file.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "eventlog/format/event_encode.h"
#include "eventlog/format/record.h"
#include "eventlog/write/event_resume.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- event name -------------------------------------------------------------------------------------------------- */

/*
 * Makes names of event files, events.out.tfevents.<seconds>.<host>.<pid>.<n><suffix>, that sort after
 * those already there: TensorBoard reads files in byte order of their names, and its Python loader never goes back to a
 * lower one. The seconds are the current time; files that a process makes in the same second differ by the counter. If
 * such a name does not sort after the greatest one in the directory (a clock set back, another process in the same
 * second), its seconds are one more than those of that name.
 */

struct event_name {
    char host[HOST_NAME_MAX + 1];
    long long seconds;
    long pid, counter;
};

enum { COUNTER_MAX = 999999 };

static const char PREFIX[] = "events.out.tfevents.";
enum { PREFIX_LENGTH = sizeof PREFIX - 1, SECONDS_DIGITS = 10 };
static const long long SECONDS_MAX = 9999999998;

/* The seconds in the name of an event file, or -1 if the name does not have that pattern. */
static long long name_seconds(const char *name)
{
    char digits[SECONDS_DIGITS + 1];

    if (strncmp(name, PREFIX, PREFIX_LENGTH) != 0)
        return -1;
    memcpy(digits, name + PREFIX_LENGTH, strnlen(name + PREFIX_LENGTH, SECONDS_DIGITS));
    for (int i = 0; i < SECONDS_DIGITS; i++)
        if (!isdigit((unsigned char)name[PREFIX_LENGTH + i]))
            return -1;
    digits[SECONDS_DIGITS] = '\0';
    return name[PREFIX_LENGTH + SECONDS_DIGITS] == '.' ? strtoll(digits, NULL, 10) : -1;
}

/* Remembers the name if it has the pattern and is greater. */
static void take_greater(const char *name, char *out, size_t size)
{
    long long seconds = name_seconds(name);

    if (seconds >= 0 && seconds < SECONDS_MAX && strcmp(name, out) > 0 && strlen(name) < size)
        strcpy(out, name);
}

/* The name of the current file if it has the pattern, else the greatest one in the directory; "" if there is none or
 * the directory cannot be listed: O_EXCL decides in any case. */
static void greatest_name(const char *directory, const char *current, char *out, size_t size)
{
    DIR *d;

    *out = '\0';
    if (current)
        take_greater(current, out, size);
    if (*out || !directory || !(d = opendir(directory)))
        return;
    for (struct dirent *entry; (entry = readdir(d));)
        take_greater(entry->d_name, out, size);
    closedir(d);
}

static void host_name(char *host, size_t size)
{
    *host = '\0';
    if (gethostname(host, size - 1) < 0 || !*host || !utf8_valid(host, strlen(host), NULL))
        strcpy(host, "localhost");
    for (char *p = host; *p; p++)
        if (*p == '/')
            *p = '_';
}

static int write_name(const struct event_name *p, const char *directory, const char *suffix, char *out, size_t size,
                      struct error *e)
{
    int n = snprintf(out, size, "%s%010lld.%s.%ld.%06ld%s", PREFIX, p->seconds, p->host, p->pid, p->counter, suffix);

    return n >= 0 && (size_t)n < size
               ? OK
               : error_set(e, ERR_ARG, "%s: file name too long with the suffix '%.40s...'", directory, suffix);
}

/* Makes a name after `current`, the name of the current file, or with NULL after all others in the directory. Listing a
 * directory takes time in proportion to its files, so a writer does it once. ERR_ARG: too long with the suffix. */
static int event_name_first(struct event_name *p, const char *directory, const char *suffix, const char *current,
                            char *out, size_t size, struct error *e)
{
    char greatest[NAME_MAX + 1], host[HOST_NAME_MAX + 32];
    long long there;
    size_t n;

    *p = (struct event_name){ .seconds = (long long)clock_wall(), .pid = (long)getpid() };
    host_name(p->host, sizeof p->host);
    greatest_name(directory, current, greatest, sizeof greatest);
    there = *greatest ? name_seconds(greatest) : -1;
    if (there > p->seconds)
        p->seconds = there;
    n = (size_t)snprintf(host, sizeof host, "%s.%ld.", p->host, p->pid);
    if (there == p->seconds && strncmp(greatest + PREFIX_LENGTH + SECONDS_DIGITS + 1, host, n) == 0) {
        const char *digits = greatest + PREFIX_LENGTH + SECONDS_DIGITS + 1 + n;

        if (isdigit((unsigned char)*digits))
            p->counter = strtol(digits, NULL, 10) % COUNTER_MAX + 1;
    }
    if (write_name(p, directory, suffix, out, size, e) != OK)
        return ERR_ARG;
    if (strcmp(out, greatest) > 0)
        return OK;
    p->seconds++;
    p->counter = 0;
    return write_name(p, directory, suffix, out, size, e);
}

/* The next name, if that one is taken. ERR_IO: there are no more. */
static int event_name_next(struct event_name *p, const char *directory, const char *suffix, char *out, size_t size,
                           struct error *e)
{
    if (++p->counter > COUNTER_MAX)
        return error_set(e, ERR_IO, "%s: no free name for another event file in this second", directory);
    return write_name(p, directory, suffix, out, size, e);
}

/* ---- event file -------------------------------------------------------------------------------------------------- */

enum { COPY_BYTES = 1 << 18 };

static const double LOOK_SECONDS = 1;

struct event_file_name {
    struct event_file_name *older;
    uint64_t events; /* of an older file */
    char path[];
};

const char *event_file_path(const struct event_file *f)
{
    return f->names ? f->names->path : "";
}

const char *event_file_directory(const struct event_file *f)
{
    return f->directory;
}

static int remember(struct event_file *f, const char *path, struct error *e)
{
    size_t n = strlen(path) + 1;
    struct event_file_name *name = malloc(sizeof *name + n);

    if (!name)
        return error_memory(e, path, "for it");
    memcpy(name->path, path, n);
    name->older = f->names;
    name->events = 0;
    f->names = name;
    return OK;
}

static void forget(struct event_file *f)
{
    struct event_file_name *older = f->names->older;

    free(f->names);
    f->names = older;
}

/* A failed call, for the statistics. e is not NULL. */
static int failed(struct event_file *f, const struct error *e)
{
    f->errors++;
    f->last = *e;
    return e->code;
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

/* How many of the first n bytes are whole records. */
static size_t whole_records(const uint8_t *bytes, size_t n, uint64_t *count)
{
    size_t whole = 0;

    for (*count = 0; n - whole >= RECORD_OVERHEAD; ++*count) {
        uint64_t record = get_le64(bytes + whole) + RECORD_OVERHEAD;

        if (record > n - whole)
            break;
        whole += (size_t)record;
    }
    return whole;
}

uint64_t event_file_records(const uint8_t *records, size_t n)
{
    uint64_t count;

    whole_records(records, n, &count);
    return count;
}

static int cut_back(struct event_file *f, struct error *e)
{
    if (f->io->ftruncate(f->io->context, f->fd, (off_t)f->size) < 0)
        return error_system(e, "%s: cannot cut the file back to its last complete record, at byte %llu",
                            event_file_path(f), (unsigned long long)f->size);
    f->torn = 0;
    return OK;
}

int event_file_write(struct event_file *f, const uint8_t *records, size_t n, size_t *whole, struct error *e)
{
    struct error own = { 0 };
    size_t done = 0;
    uint64_t count;
    int system = 0;

    *whole = 0;
    if (f->torn && cut_back(f, &own) != OK)
        goto fail;
    while (done < n && !system) {
        ssize_t written = f->io->write(f->io->context, f->fd, records + done, n - done);

        f->writes++;
        if (written > 0)
            done += (size_t)written;
        else if (written == 0)
            system = ENOSPC;
        else if (errno != EINTR)
            system = errno;
    }
    *whole = done == n ? n : whole_records(records, done, &count);
    f->size += *whole;
    f->bytes += *whole;
    f->events += event_file_records(records, *whole);
    f->unsynced |= *whole > 0;
    if (!system)
        return OK;
    errno = system;
    error_system(&own, "%s: cannot write; %zu bytes of events remain in memory", event_file_path(f), n - *whole);
    if (done > *whole) {
        f->torn = 1;
        cut_back(f, NULL);
    }
fail:
    if (e)
        *e = own;
    return failed(f, &own);
}

int event_file_sync(struct event_file *f, struct error *e)
{
    struct error own = { 0 };
    int rc;

    f->last_sync = clock_monotonic();
    if ((rc = event_file_keep(f, 1, e)) != OK)
        return rc;
    if (f->io->fsync(f->io->context, f->fd) < 0)
        error_system(&own, "%s: cannot sync", event_file_path(f));
    else
        f->unsynced = 0;
    f->syncs++;
    /* The name must be synced as well, once. */
    if (!own.code && !f->named && (f->apart || file_sync_parent(f->io, event_file_path(f), &own) == OK))
        f->named = 1;
    if (own.code && e)
        *e = own;
    return own.code ? failed(f, &own) : OK;
}

int event_file_sync_when_due(struct event_file *f, double now, double *next, struct error *e)
{
    int rc = OK;

    *next = INFINITY;
    if (f->sync != EVENTLOG_SYNC_EVERY || !f->unsynced)
        return OK;
    if (now - f->last_sync >= f->sync_seconds)
        rc = event_file_sync(f, e);
    if (f->unsynced)
        *next = f->last_sync + f->sync_seconds;
    return rc;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static int make_file(struct event_file *f, struct error *e)
{
    const char *current = f->names ? file_base_name(f->names->path) : NULL;
    char name[NAME_MAX + 1], path[PATH_MAX];
    struct event_name parts;
    int rc = event_name_first(&parts, f->directory, f->suffix, current, name, sizeof name, e);

    while (rc == OK) {
        int system;

        if (f->apart)
            strcpy(path, name);
        else if ((rc = file_join(path, sizeof path, f->directory, name, e)) != OK)
            return rc;
        if ((rc = remember(f, path, e)) != OK)
            return rc;
        f->fd = f->io->open(f->io->context, path, O_RDWR | O_CREAT | O_EXCL | O_APPEND, 0666);
        if (f->fd >= 0) {
            /* Tells others that would append to this file that it is in use. Not all file systems have locks. */
            if (!f->apart)
                flock(f->fd, LOCK_EX | LOCK_NB);
            return OK;
        }
        system = errno;
        forget(f);
        errno = system;
        if (errno != EEXIST)
            return error_system(e, "%s: cannot create", path);
        rc = event_name_next(&parts, f->directory, f->suffix, name, sizeof name, e);
    }
    return rc;
}

static int first_record(struct event_file *f, struct error *e)
{
    struct buffer first = BUFFER_EMPTY;
    int rc = event_encode_start(&first, clock_wall(), f->source, e);
    size_t whole;

    if (rc == OK)
        rc = event_file_write(f, (const uint8_t *)first.data, first.length, &whole, e);
    f->events = 0;
    buffer_release(&first);
    return rc;
}

/* Copies all whole records of another file. ERR_CORRUPT: it cannot be read. */
static int copy(struct event_file *f, const struct event_file *from, struct error *e)
{
    uint8_t *bytes = malloc(COPY_BYTES);
    int rc = bytes ? OK : error_memory(e, event_file_path(f), "for a copy");

    while (rc == OK && f->size < from->size) {
        size_t left = from->size - f->size < COPY_BYTES ? (size_t)(from->size - f->size) : COPY_BYTES;
        ssize_t n = file_read_at(from->fd, bytes, left, f->size);

        if (n <= 0)
            rc = error_set(e, ERR_CORRUPT, "%s: cannot be read", event_file_path(from));
        else if (io_write_full(f->io, f->fd, bytes, (size_t)n) < 0)
            rc = error_system(e, "%s: cannot write", event_file_path(f));
        else
            f->size += (uint64_t)n;
    }
    f->events = from->events;
    f->unsynced = 1;
    free(bytes);
    return rc;
}

/* Makes a file where there is none, with the records of another one, or with a first record. */
static int file_begin(struct event_file *f, const struct event_file *from, struct error *e)
{
    int rc;

    f->size = 0;
    f->torn = f->named = f->unsynced = 0;
    f->last_sync = f->looked = clock_monotonic();
    if ((rc = make_file(f, e)) != OK)
        return rc;
    if ((rc = from ? copy(f, from, e) : first_record(f, e)) == OK) {
        f->files++;
        return OK;
    }
    f->io->close(f->io->context, f->fd);
    f->io->unlink(f->io->context, event_file_path(f));
    f->fd = -1;
    forget(f);
    return rc;
}

/* The same in place of the current one, which stays in use on error. */
static int follow(struct event_file *f, int with_its_records, struct error *e)
{
    struct event_file old = *f;
    struct error own = { 0 };
    int rc = file_begin(f, with_its_records ? &old : NULL, e);

    if (rc != OK) {
        f->fd = old.fd;
        f->size = old.size;
        f->events = old.events;
        f->torn = old.torn;
        f->named = old.named;
        f->unsynced = old.unsynced;
        f->last_sync = old.last_sync;
        return rc;
    }
    f->names->older->events = with_its_records ? 0 : old.events;
    if (f->io->close(f->io->context, old.fd) < 0) {
        error_system(&own, "%s: cannot close", f->names->older->path);
        failed(f, &own);
    }
    return OK;
}

static void file_release(struct event_file *f)
{
    while (f->names)
        forget(f);
    free(f->directory);
    free(f->suffix);
    free(f->source);
    memset(f, 0, sizeof *f);
    f->fd = -1;
}

static int set_up(struct event_file *f, const struct io *io, const char *directory, const char *suffix,
                  const char *source, struct error *e)
{
    struct buffer first = BUFFER_EMPTY;
    int rc;

    memset(f, 0, sizeof *f);
    f->io = io;
    f->fd = -1;
    f->apart = !directory;
    f->directory = strdup(directory ? directory : "");
    f->suffix = strdup(suffix);
    f->source = strdup(source);
    if (!f->directory || !f->suffix || !f->source)
        return error_memory(e, directory, "for it");
    rc = event_encode_start(&first, clock_wall(), source, e);
    f->first = first.length;
    buffer_release(&first);
    return rc;
}

/* After chdir() a relative path would name another directory. */
static void fix_directory(struct event_file *f)
{
    char *absolute = f->apart || f->directory[0] == '/' ? NULL : realpath(f->directory, NULL);

    if (absolute) {
        free(f->directory);
        f->directory = absolute;
    }
}

int event_file_create(struct event_file *f, const struct io *io, const char *directory, const char *suffix,
                      const char *source, struct error *e)
{
    int rc = set_up(f, io, directory, suffix, source, e);

    if (rc == OK)
        rc = file_begin(f, NULL, e);
    if (rc == OK)
        fix_directory(f);
    else
        file_release(f);
    return rc;
}

int event_file_append(struct event_file *f, const struct io *io, const char *directory, const char *suffix,
                      const char *source, struct error *e)
{
    char path[PATH_MAX];
    uint64_t cut = 0;
    int rc = set_up(f, io, directory, suffix, source, e);

    if (rc == OK)
        rc = event_resume_newest(directory, path, sizeof path, e);
    if (rc > 0 && (rc = remember(f, path, e)) == OK &&
        (rc = event_resume_open(io, path, &f->fd, &f->size, &cut, e)) == OK) {
        if (!cut) {
            f->files = 1;
            f->unsynced = 1;
            f->last_sync = clock_monotonic();
            if (!f->size && (rc = first_record(f, e)) != OK)
                f->io->close(f->io->context, f->fd);
        } else {
            f->io->close(f->io->context, f->fd);
            f->fd = -1;
        }
    }
    if (rc == OK && f->fd < 0) /* there is none yet, or its tail was torn */
        rc = file_begin(f, NULL, e);
    if (rc == OK)
        fix_directory(f);
    else
        file_release(f);
    return rc;
}

int event_file_next(struct event_file *f, struct error *e)
{
    struct error own = { 0 };
    int rc;

    if ((rc = event_file_keep(f, 1, e)) != OK)
        return rc;
    if (f->sync != EVENTLOG_SYNC_NEVER && f->unsynced)
        event_file_sync(f, NULL); /* a failure is counted in the statistics */
    if (follow(f, 0, &own) == OK)
        return OK;
    error_prefix(&own, "events go on in %s", event_file_path(f));
    if (e)
        *e = own;
    return failed(f, &own);
}

/* ---- files that are deleted, moved or replaced ------------------------------------------------------------------- */

/* stat() of one of the writer's files, at its path, whatever the working directory is. */
static int look(const struct event_file *f, const struct event_file_name *name, struct stat *st)
{
    char path[PATH_MAX];

    errno = 0;
    return file_join(path, sizeof path, f->directory, file_base_name(name->path), NULL) == OK ? stat(path, st) : -1;
}

static int is_gone(const struct event_file *f)
{
    struct stat held, there;

    if (fstat(f->fd, &held) < 0 || !held.st_nlink)
        return 1;
    if (look(f, f->names, &there) < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == ESTALE;
    /* Some network file systems give a file a new inode number each time; then at least its length must match. */
    return (there.st_ino != held.st_ino || there.st_dev != held.st_dev) && there.st_size != held.st_size;
}

/* Files before the current one are no longer open. */
static void count_lost(struct event_file *f)
{
    struct stat st;

    for (struct event_file_name *name = f->names->older; name; name = name->older)
        if (name->events && look(f, name, &st) < 0 && (errno == ENOENT || errno == ENOTDIR)) {
            f->lost += name->events;
            name->events = 0;
        }
}

int event_file_make_again(struct event_file *f, struct error *e)
{
    const char *path = event_file_path(f);
    const uint64_t lost = f->lost;
    struct error own = { 0 };
    int rc;

    f->looked = clock_monotonic();
    if (f->apart || !(f->gone = is_gone(f)))
        return OK;
    if ((rc = file_make_directories(f->directory, &own)) == OK && (rc = follow(f, 1, &own)) == ERR_CORRUPT &&
        (rc = follow(f, 0, &own)) == OK) { /* on NFS what another host deleted cannot even be read */
        f->lost += f->names->older->events;
        f->names->older->events = 0;
    }
    if (rc != OK) {
        error_prefix(&own, "%s: deleted, moved or replaced, and cannot be made again", path);
        if (e)
            *e = own;
        return failed(f, &own);
    }
    f->gone = 0;
    count_lost(f);
    if (f->lost == lost && f->leave_lost)
        return OK; /* said before */
    if (f->lost == lost)
        error_set(&f->notice, ERR_IO, "%s: deleted, moved or replaced; its events are in %s now", path,
                  file_base_name(event_file_path(f)));
    else
        error_set(&f->notice, ERR_IO, "%s: deleted, moved or replaced; %llu events are lost, later ones go to %s", path,
                  (unsigned long long)(f->lost - lost), file_base_name(event_file_path(f)));
    f->notice.system = ENOENT;
    failed(f, &f->notice);
    return OK;
}

int event_file_keep(struct event_file *f, int always, struct error *e)
{
    const double now = clock_monotonic();
    struct error own = { 0 };

    if (f->apart || (!always && now - f->looked < LOOK_SECONDS))
        return OK;
    if (!f->leave_lost)
        return event_file_make_again(f, e);
    f->looked = now;
    if (!(f->gone = is_gone(f)))
        return OK;
    error_set(&own, ERR_IO, "%s: deleted, moved or replaced", event_file_path(f));
    own.system = ENOENT;
    if (e)
        *e = own;
    return failed(f, &own);
}

int event_file_notice(struct event_file *f, struct error *e)
{
    struct error notice = f->notice;

    f->notice.code = OK;
    if (notice.code != OK && e)
        *e = notice;
    return notice.code;
}

uint64_t event_file_lost(const struct event_file *f)
{
    return f->lost + (f->gone ? f->events : 0);
}

void event_file_remove(struct event_file *f)
{
    f->io->close(f->io->context, f->fd);
    f->io->unlink(f->io->context, event_file_path(f));
    file_release(f);
}

int event_file_close(struct event_file *f, struct error *e)
{
    int rc = OK;

    if (f->fd >= 0 && f->io->close(f->io->context, f->fd) < 0)
        rc = error_system(e, "%s: cannot close", event_file_path(f));
    file_release(f);
    return rc;
}
