#include "eventlog/read/log_archive.h"

#include "base/file.h"
#include "base/late_library.h"

#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MEMBERS_MOST = 1000000, BLOCK = 128 * 1024 };

/* libarchive's functions and results, as archive.h and archive_entry.h of version 3 declare them: they have been the
 * same since 2011, and so no header is needed to build. */
enum { END = 1, FINE = 0, AGAIN = -10, WARNING = -20, FATAL = -30 }; /* ARCHIVE_EOF, _OK, _RETRY, _WARN, _FATAL */
typedef int support(void *archive);
struct library {
    support *tar, *zip, *raw, *nothing, *gzip, *zstd, *xz, *bzip2;
    void *(*new)(void);
    int (*open)(void *archive, int fd, size_t block);
    int (*next)(void *archive, void **entry);
    int (*data)(void *archive, const void **bytes, size_t *n, int64_t *offset);
    const char *(*text)(void *archive);
    int (*number)(void *archive);
    int (*free)(void *archive);
    const char *(*name)(void *entry), *(*link)(void *entry);
    mode_t (*type)(void *entry);
};
static const char *const functions[] = {
    /* in the order of struct library */
    "archive_read_support_format_tar",
    "archive_read_support_format_zip",
    "archive_read_support_format_raw",
    "archive_read_support_format_empty",
    "archive_read_support_filter_gzip",
    "archive_read_support_filter_zstd",
    "archive_read_support_filter_xz",
    "archive_read_support_filter_bzip2",
    "archive_read_new",
    "archive_read_open_fd",
    "archive_read_next_header",
    "archive_read_data_block",
    "archive_error_string",
    "archive_errno",
    "archive_read_free",
    "archive_entry_pathname",
    "archive_entry_hardlink",
    "archive_entry_filetype",
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };
_Static_assert(sizeof(struct library) == FUNCTIONS * sizeof(void *), "a name for each function");

/* An archive that is being read. */
struct reading {
    struct library library;
    void *archive, *entry;
    int found; /* the last result */
    locale_t utf8, before;
};

static int archive_load(struct library *l, struct error *e)
{
    struct error cause = { 0 };

    if (STATIC)
        return error_set(e, ERR_IO,
                         "a static eventlog reads no archives and no xz, as it cannot load libarchive; "
                         "unpack it first");
    if (late_library_load("libarchive.so.13", functions, FUNCTIONS, l, &cause) == OK)
        return OK;
    return error_set(e, ERR_IO,
                     "reading it needs libarchive: %.300s; install it (on Debian: libarchive13 or libarchive13t64), or "
                     "unpack it first",
                     cause.message);
}

static int begin(struct reading *r, int fd, int is_archive, struct error *e)
{
    struct library *l = &r->library;
    int rc = archive_load(l, e);

    if (rc != OK)
        return rc;
    /* Where names are UTF-8 in the archive, libarchive returns them in the locale's charset, if it has them. */
    if ((r->utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0)))
        r->before = uselocale(r->utf8);
    if (!(r->archive = l->new ()))
        return error_memory(e, NULL, "for libarchive");
    l->xz(r->archive);
    l->bzip2(r->archive);
    if (is_archive) {
        l->gzip(r->archive);
        l->zstd(r->archive);
        l->tar(r->archive);
        l->zip(r->archive);
    } else {
        l->raw(r->archive);
        l->nothing(r->archive);
    }
    if (lseek(fd, 0, SEEK_SET) < 0)
        return error_system(e, "cannot read");
    r->found = l->open(r->archive, fd, BLOCK);
    return OK;
}

static void finish(struct reading *r)
{
    if (r->archive)
        r->library.free(r->archive);
    if (r->utf8) {
        uselocale(r->before);
        freelocale(r->utf8);
    }
}

static int next(struct reading *r)
{
    r->found = r->library.next(r->archive, &r->entry);
    if (r->found == WARNING)
        r->found = FINE;
    return r->found;
}

/* The next bytes of the entry; what is left out before offset are zeros. */
static int next_bytes(struct reading *r, const void **bytes, size_t *n, int64_t *offset)
{
    r->found = r->library.data(r->archive, bytes, n, offset);
    if (r->found == WARNING)
        r->found = FINE;
    return r->found;
}

/* OK: no, the bytes are damaged. */
static int cannot_read(const struct reading *r, struct error *e)
{
    const int number = r->library.number(r->archive);

    return number == ENOMEM ? error_memory(e, NULL, "for libarchive")
           : number == EIO  ? error_set(e, ERR_IO, "cannot read: %s", strerror(number))
                            : OK;
}

/* ---- the members ------------------------------------------------------------------------------------------------- */

/* The path without parts that lead elsewhere or nowhere; 0: it is not one, or not that of an event file. */
static size_t member_name(const char *path, char *out)
{
    size_t n = 0, last = 0;

    for (size_t part; path && *path; path += part + (path[part] == '/')) {
        part = strcspn(path, "/");
        if (!part || (part <= 2 && !strncmp(path, "..", part)))
            continue;
        if (n + part + 2 > PATH_MAX)
            return 0;
        if (n)
            out[n++] = '/';
        memcpy(out + n, path, part);
        last = n;
        n += part;
    }
    out[n] = '\0';
    return strstr(out + last, "tfevents") ? n : 0;
}

/* Notes the first damage. */
static int archive_damage(struct log_archive *a, const struct reading *r, const char *name, struct error *e)
{
    const char *why = r->library.text(r->archive);

    if (a->damage.code == OK)
        error_set(&a->damage, ERR_CORRUPT, "%s: %s%.200s%s%.200s", a->path, name ? "member " : "", name ? name : "",
                  name ? ": " : "", why ? why : "damaged");
    return cannot_read(r, e);
}

/* Appends the contents of the entry. */
static int take_contents(struct log_archive *a, struct reading *r, struct log_archive_member *m, struct error *e)
{
    const void *bytes;
    int64_t offset;
    size_t n;
    int rc = OK;

    *m = (struct log_archive_member){ .offset = a->contents.size };
    while (rc == OK && next_bytes(r, &bytes, &n, &offset) == FINE) {
        if (offset < (int64_t)m->size)
            break;
        rc = spool_append_hole(&a->contents, (uint64_t)offset - m->size, e); /* a sparse file */
        if (rc == OK)
            rc = spool_append(&a->contents, bytes, n, e);
        m->size = a->contents.size - m->offset;
    }
    m->broken = r->found != END;
    return rc;
}

static int take(struct log_archive *a, struct reading *r, struct error *e)
{
    const char *link = r->library.link(r->entry);
    char name[PATH_MAX], target[PATH_MAX];
    struct log_archive_member m = { 0 }, *place;
    const struct log_archive_member *linked;
    size_t n = member_name(r->library.name(r->entry), name);
    int rc;

    if (!n)
        return OK;
    if (a->members.count == MEMBERS_MOST)
        return error_set(e, ERR_IO, "more than %d event files in an archive", MEMBERS_MOST);
    if (link && member_name(link, target) && (linked = log_archive_find(a, target))) {
        m = *linked;
    } else if (link || r->library.type(r->entry) != S_IFREG) {
        a->left_out += link || r->library.type(r->entry) != S_IFDIR;
        return OK;
    } else if ((rc = take_contents(a, r, &m, e)) != OK) {
        return rc;
    }
    if (m.broken && (!m.size || r->found == FATAL)) /* encrypted, or nothing can be read after it */
        if ((rc = archive_damage(a, r, name, e)) != OK || !m.size)
            return rc;
    if (!(place = tag_index_item(&a->members, name, n)))
        return error_memory(e, NULL, "for the members of an archive");
    *place = m;
    return OK;
}

int log_archive_read(struct log_archive *a, int fd, const char *path, struct error *e)
{
    struct reading r = { 0 };
    int rc;

    *a = (struct log_archive){ .contents = SPOOL_CLOSED, .members = TAG_INDEX_OF(struct log_archive_member) };
    if (!(a->path = strdup(path)))
        return error_memory(e, path, "for an archive");
    if ((rc = begin(&r, fd, 1, e)) == OK)
        rc = spool_open(&a->contents, e);
    while (rc == OK && r.found >= AGAIN && r.found != END)
        if (next(&r) == FINE) {
            rc = take(a, &r, e);
            r.found = FINE; /* the header after a damaged member may be sound */
        } else if (r.found == AGAIN) {
            rc = archive_damage(a, &r, NULL, e);
        }
    if (rc == OK && r.found != END)
        rc = archive_damage(a, &r, NULL, e);
    finish(&r);
    return rc == OK ? OK : (error_prefix(e, "%s", path), rc);
}

void log_archive_release(struct log_archive *a)
{
    free(a->path);
    spool_close(&a->contents);
    tag_index_release(&a->members);
    *a = (struct log_archive){ .contents = SPOOL_CLOSED };
}

const struct log_archive_member *log_archive_find(const struct log_archive *a, const char *name)
{
    const size_t number = tag_index_peek(&a->members, name, strlen(name));

    return number == TAG_INDEX_NONE ? NULL : (const struct log_archive_member *)a->members.items + number;
}

/* ---- one file in xz or bzip2 ------------------------------------------------------------------------------------- */

int log_archive_unpack(int fd, log_unpack_sink *sink, void *context, int *whole, struct error *e)
{
    struct reading r = { 0 };
    const void *bytes;
    int64_t offset;
    size_t n;
    int rc = begin(&r, fd, 0, e);

    if (rc == OK && r.found == FINE)
        next(&r);
    while (rc == OK && r.found == FINE)
        if (next_bytes(&r, &bytes, &n, &offset) == FINE)
            rc = sink(context, bytes, n, e);
    *whole = rc == OK && r.found == END;
    if (rc == OK && r.found != END)
        rc = cannot_read(&r, e);
    finish(&r);
    return rc;
}
