/* eventlog archive: finished logs in one compressed file. */
#include "base/file.h"
#include "base/json.h"
#include "eventlog/log_archive.h"
#include "eventlog/log_replace.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct found { /* a file that goes in */
    char *name, *path;
    struct stat before;
};

struct archiving {
    struct log log;
    const char *output;
    int force, delete, json;
    int64_t level;
    struct found *files;
    size_t count, capacity, skipped;
    uint64_t bytes, done, packed;
    struct stat target; /* of the output, if it is there already */
    int has_target;
};

/* ---- what goes in ---------------------------------------------------------------------------------------------- */

static int add(struct archiving *a, const char *name, const char *path, const struct stat *st, struct error *e)
{
    struct found *f;

    if (!log_archive_name_allowed(name, strlen(name)))
        return error_set(e, ERR_ARG, "%s: the name cannot be in an archive", path);
    if (a->count == a->capacity) {
        if (!(f = realloc(a->files, (a->capacity * 2 + 32) * sizeof *f)))
            return error_set(e, ERR_NOMEM, "%s: out of memory while listing", path);
        a->files = f;
        a->capacity = a->capacity * 2 + 32;
    }
    f = &a->files[a->count];
    *f = (struct found){ strdup(name), strdup(path), *st };
    if (!f->name || !f->path) {
        free(f->name);
        free(f->path);
        return error_set(e, ERR_NOMEM, "%s: out of memory while listing", path);
    }
    a->count++;
    a->bytes += (uint64_t)st->st_size;
    return OK;
}

/* Where in a path its last part begins, which is where names in the archive begin; its length for "." and the like. */
static size_t last_part(const char *path)
{
    size_t n = strlen(path), from;

    while (n && path[n - 1] == '/')
        n--;
    for (from = n; from && path[from - 1] != '/';)
        from--;
    if (n - from <= 2 && !strncmp(path + from, "..", n - from))
        return n;
    return from;
}

static int list(struct archiving *a, char *path, struct error *e)
{
    char *paths[] = { path, NULL };
    FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL);
    size_t start = last_part(path);
    int rc = tree ? OK : error_system(e, "%s: cannot be read", path);

    for (FTSENT *entry; rc == OK && (entry = fts_read(tree));) {
        const char *name = entry->fts_path + start;

        switch (entry->fts_info) {
        case FTS_F:
            if (a->has_target && entry->fts_statp->st_ino == a->target.st_ino &&
                entry->fts_statp->st_dev == a->target.st_dev)
                break; /* the archive that is to be replaced */
            while (*name == '/')
                name++;
            rc = add(a, name, entry->fts_path, entry->fts_statp, e);
            break;
        case FTS_DNR:
        case FTS_ERR:
        case FTS_NS:
            rc = error_set(e, ERR_IO, "%s: cannot be read: %s", entry->fts_path, strerror(entry->fts_errno));
            break;
        case FTS_D:
        case FTS_DP:
            break;
        default: /* links, sockets, pipes */
            log_line(&a->log, "%s: is no regular file and stays out", entry->fts_path);
            a->skipped++;
        }
    }
    if (tree)
        fts_close(tree);
    return rc;
}

static int by_name(const void *x, const void *y)
{
    const struct found *a = x, *b = y;

    return strcmp(a->name, b->name);
}

/* ---- packing --------------------------------------------------------------------------------------------------- */

/* Unless forced: the file is as it was, and nobody writes it. */
static int unchanged(const struct archiving *a, int fd, const struct found *f, struct error *e)
{
    int rc = a->force ? OK : log_replace_unchanged(fd, f->path, &f->before, e);

    return rc != ERR_ARG ? rc : error_set(e, rc, "%s: is being written; end its writer first, or -f archives what is "
                                          "there now", f->path);
}

static int pack_one(struct archiving *a, struct log_archive_writer *w, struct found *f, struct error *e)
{
    int fd = open(f->path, O_RDONLY | O_CLOEXEC), rc;
    const struct timespec *t = &f->before.st_mtim;

    if (fd < 0)
        return error_system(e, "%s: cannot be opened", f->path);
    log_progress(&a->log, "%s: %.0f%%", f->name, 100.0 * (double)a->done / (double)(a->bytes ? a->bytes : 1));
    if ((rc = unchanged(a, fd, f, e)) == OK)
        rc = log_archive_writer_add(w, f->name, f->before.st_mode & LOG_ARCHIVE_MODE,
                                    (int64_t)t->tv_sec * 1000000000 + t->tv_nsec, fd, f->path, NULL, e);
    if (rc == OK)
        rc = unchanged(a, fd, f, e);
    a->done += (uint64_t)f->before.st_size;
    close(fd);
    return rc;
}

static int pack_all(struct archiving *a, const char *temporary, struct error *e)
{
    struct log_archive_writer *w = NULL;
    struct stat st;
    int fd, rc;

    unlink(temporary); /* of a killed process with our number */
    if ((fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) < 0)
        return error_system(e, "%s: cannot create", temporary);
    rc = log_archive_writer_new(&w, fd, temporary, (int)a->level, e);
    for (size_t i = 0; rc == OK && i < a->count; i++)
        rc = pack_one(a, w, &a->files[i], e);
    log_progress_end(&a->log);
    if (rc == OK)
        rc = log_archive_writer_finish(w, e);
    if (rc == OK && fsync(fd) < 0)
        rc = error_system(e, "%s: cannot sync", temporary);
    if (fstat(fd, &st) == 0)
        a->packed = (uint64_t)st.st_size;
    if (close(fd) < 0 && rc == OK)
        rc = error_system(e, "%s: cannot close", temporary);
    log_archive_writer_free(w);
    return rc;
}

static int archive(struct archiving *a, struct error *e)
{
    char temporary[PATH_MAX];
    struct stat st;
    int rc;

    if (lstat(a->output, &st) == 0 && !a->force)
        return error_set(e, ERR_ARG, "%s: exists already; -f writes over it", a->output);
    for (size_t i = 1; i < a->count; i++)
        if (!strcmp(a->files[i - 1].name, a->files[i].name))
            return error_set(e, ERR_ARG, "%s and %s would have one name in the archive", a->files[i - 1].path,
                             a->files[i].path);
    if ((rc = log_replace_temporary_name(temporary, sizeof temporary, a->output, e)) != OK)
        return rc;
    if ((rc = pack_all(a, temporary, e)) == OK && rename(temporary, a->output) < 0)
        rc = error_system(e, "%s: cannot be put in its place", a->output);
    if (rc != OK) {
        unlink(temporary);
        return rc;
    }
    return file_sync_parent(&io_real, a->output, e);
}

/* ---- --delete -------------------------------------------------------------------------------------------------- */

struct comparison {
    int fd;
    const char *path;
};

static int compare(void *context, const void *bytes, size_t n, struct error *e)
{
    const struct comparison *c = context;
    const char *p = bytes;
    char mine[16384];

    while (n) {
        ssize_t got = read(c->fd, mine, n < sizeof mine ? n : sizeof mine);

        if (got <= 0 || memcmp(mine, p, (size_t)got) != 0)
            return error_set(e, ERR_CORRUPT, "%s: is not what the archive holds; nothing is deleted", c->path);
        p += got;
        n -= (size_t)got;
    }
    return OK;
}

/* Every member read back from the disk and compared with its file. */
static int check_all(struct archiving *a, struct error *e)
{
    struct log_archive archive;
    int rc = log_archive_open(&archive, a->output, e);

    if (rc == OK && archive.count != a->count)
        rc = error_set(e, ERR_CORRUPT, "%s: does not hold all files; nothing is deleted", a->output);
    for (size_t i = 0; rc == OK && i < a->count; i++) {
        struct found *f = &a->files[i];
        struct comparison c = { open(f->path, O_RDONLY | O_CLOEXEC), f->path };

        if (c.fd < 0) {
            rc = error_system(e, "%s: cannot be opened; nothing is deleted", f->path);
            break;
        }
        log_progress(&a->log, "%s: checked", f->name);
        rc = log_archive_read(&archive, &archive.entries[i], compare, &c, e);
        if (rc == OK && read(c.fd, (char[1]){ 0 }, 1) != 0)
            rc = error_set(e, ERR_CORRUPT, "%s: is longer than what the archive holds; nothing is deleted", f->path);
        if (rc == OK)
            rc = log_replace_unchanged(c.fd, f->path, &f->before, e);
        close(c.fd);
    }
    log_progress_end(&a->log);
    log_archive_release(&archive);
    return rc;
}

static int delete_all(struct archiving *a, char *const *paths, size_t count, struct error *e)
{
    int rc = check_all(a, e);

    for (size_t i = 0; rc == OK && i < a->count; i++)
        if (unlink(a->files[i].path) < 0 && errno != ENOENT) /* a path within another one's was there twice */
            rc = error_system(e, "%s: cannot be deleted", a->files[i].path);
    for (size_t i = 0; rc == OK && i < count; i++) { /* directories that nothing is left in */
        char *roots[] = { paths[i], NULL };
        FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);

        for (FTSENT *entry; tree && (entry = fts_read(tree));)
            if (entry->fts_info == FTS_DP)
                rmdir(entry->fts_path);
        if (tree)
            fts_close(tree);
    }
    return rc;
}

/* ---- the command line ------------------------------------------------------------------------------------------ */

static void print(const struct archiving *a)
{
    struct buffer b = BUFFER_EMPTY;

    if (a->json) {
        buffer_append_text(&b, "{\"type\":\"archive\",\"version\":1,\"output\":");
        json_text(&b, a->output);
        buffer_format(&b, ",\"files\":%zu,\"bytes\":%llu,\"packed\":%llu,\"skipped\":%zu,\"deleted\":%s}\n", a->count,
                      (unsigned long long)a->bytes, (unsigned long long)a->packed, a->skipped,
                      a->delete ? "true" : "false");
    } else {
        buffer_format(&b, "%s: %zu files, %llu bytes in %llu%s\n", a->output, a->count, (unsigned long long)a->bytes,
                      (unsigned long long)a->packed, a->delete ? "; checked, and the files deleted" : "");
    }
    fputs(buffer_text(&b), stdout);
    buffer_release(&b);
}

int command_archive(int argc, char **argv)
{
    struct archiving a = { .level = 6 };
    struct option table[] = {
        { OPTION_TEXT, 'o', "output", &a.output, "FILE", .help = "the archive, logs.tfz for example; put there whole "
          "by rename" },
        { OPTION_FLAG, 0, "delete", &a.delete, .help = "delete the files once the archive is on disk and every "
          "member has been read back and compared; also directories that are empty then" },
        { OPTION_INT, 0, "level", &a.level, "N", .help = "1 fast to 9 small (default 6)", .minimum = 1, .maximum = 9 },
        { OPTION_FLAG, 'f', "force", &a.force, .help = "write over an existing FILE; take logs that somebody writes "
          "as they are now" },
        { OPTION_FLAG, 0, "json", &a.json, .help = "what was done as one JSON object" },
    };
    const struct options options = {
        .program = "eventlog archive", .usage = "[OPTION...] PATH... -o FILE",
        .summary = "Packs all files of directories, or single ones, into one file, compressed (zlib) each by "
                   "itself, so that one can be read alone, and with a CRC-32C each, so that damage is found. "
                   "'eventlog cat' lists, checks and restores it. Names in it begin with the last part of PATH. "
                   "Files that somebody writes, or that change meanwhile, are refused; links and the like stay out "
                   "and are told. The format stands in eventlog/log_archive.h. Status 0: done; 1: no files; "
                   "2: usage or I/O.",
        .examples = "  eventlog archive logs/2024 -o logs-2024.tfz\n"
                    "  eventlog archive --delete logs/old -o /backup/old.tfz\n",
        .table = table, .count = sizeof table / sizeof *table, .least = 1, .wanted = "which log?",
    };
    struct error e = { 0 };
    int count = 0, status = EXIT_DONE, rc = options_parse(&options, argc, argv, &count, &e);

    log_init(&a.log, options.program, 2);
    if (rc == OPTIONS_DONE)
        return EXIT_DONE;
    if (rc == OK && !a.output)
        rc = error_set(&e, ERR_ARG, "where to? -o FILE says; 'eventlog archive --help' tells more");
    if (rc == OK && a.delete && a.force)
        rc = error_set(&e, ERR_ARG, "--delete takes no -f: what somebody writes must not be deleted");
    a.has_target = rc == OK && stat(a.output, &a.target) == 0;
    for (int i = 1; rc == OK && i <= count; i++)
        rc = list(&a, argv[i], &e);
    if (a.count)
        qsort(a.files, a.count, sizeof *a.files, by_name);
    if (rc == OK && !a.count) {
        log_line(&a.log, "%s: no files in it", argv[1]);
        status = EXIT_NO;
    } else if (rc == OK && (rc = archive(&a, &e)) == OK && a.delete) {
        rc = delete_all(&a, argv + 1, (size_t)count, &e);
    }
    if (rc == OK && a.count)
        print(&a);
    if (rc == OK && fflush(stdout) != 0)
        rc = error_system(&e, "standard output: cannot write");
    if (rc != OK) {
        log_line(&a.log, "%s", e.message);
        status = EXIT_USAGE;
    }
    for (size_t i = 0; i < a.count; i++) {
        free(a.files[i].name);
        free(a.files[i].path);
    }
    free(a.files);
    return status;
}
