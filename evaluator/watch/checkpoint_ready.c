#include "evaluator/watch/checkpoint_ready.h"

#include "base/buffer.h"
#include "base/file.h"
#include "evaluator/files/content_digest.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_LIMIT = 256 << 20, LATEST_LIMIT = 4096, COMPANIONS_MAX = READY_MARKERS_MAX + 2 };

/* ---- companions of a checkpoint ---------------------------------------------------------------------------------- */

struct companions {
    struct companion {
        const char *what; /* "its marker", for sentences */
        int fits;         /* the path does */
        char path[PATH_MAX];
    } items[COMPANIONS_MAX];
    size_t count;
    size_t marks; /* the first `marks` say that it is ready; the rest give its step */
};

static int is_directory(int fd, const char *name)
{
    struct stat st;

    return fstatat(fd, name, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

/* A checkpoint of a known format shows by itself whether it is whole, and has no markers. */
static void find_companions(const struct checkpoint_source *s, int fd, enum checkpoint_kind kind, const char *name,
                            int64_t step, struct companions *out)
{
    const int directory = is_directory(fd, name);
    struct companion *c;

    out->count = 0;
    for (size_t i = 0; kind == CHECKPOINT_OTHER && i < s->ready.marker_count; i++) {
        c = &out->items[out->count++];
        c->what = "its marker";
        c->fits = ready_rule_marker_path(s->ready.markers[i], name, step, directory, c->path, sizeof c->path);
    }
    if (kind == CHECKPOINT_OTHER && s->ready.latest) {
        c = &out->items[out->count++];
        c->what = "the file of --ready latest,";
        c->fits = snprintf(c->path, sizeof c->path, "%s", s->ready.latest) < (int)sizeof c->path;
    }
    out->marks = out->count;
    if (s->steps.from != STEP_FROM_FILE)
        return;
    c = &out->items[out->count++];
    c->what = "the file with its step,";
    c->fits = step_rule_path(&s->steps, name, directory, c->path, sizeof c->path);
}

/* Reads the first bytes of a file in the directory; returns how many, -1: it cannot be read. */
static ssize_t read_head(int directory_fd, const char *path, char *out, size_t size)
{
    int fd = openat(directory_fd, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), system;
    ssize_t n;

    if (fd < 0)
        return -1;
    n = file_read_at(fd, out, size, 0);
    system = errno;
    close(fd);
    errno = system;
    return n;
}

int64_t checkpoint_ready_latest(const struct checkpoint_source *s, int fd)
{
    char text[LATEST_LIMIT];
    int64_t number;
    ssize_t n;

    if (!s->ready.latest || (n = read_head(fd, s->ready.latest, text, sizeof text)) <= 0 ||
        !ready_rule_latest(&s->pattern, text, (size_t)n, &number))
        return -1;
    return step_rule_step(&s->steps, number);
}

uint64_t checkpoint_ready_stamp(const struct checkpoint_source *s, int fd, enum checkpoint_kind kind, const char *name,
                                int64_t step, int64_t latest, double *changed)
{
    char itself[PATH_MAX];
    struct companions all;
    uint64_t stamp;
    struct stat st;

    if (checkpoint_witness(kind, name, itself, sizeof itself, NULL) != OK ||
        !content_stamp(fd, itself, &stamp, changed))
        return 0;
    find_companions(s, fd, kind, name, step, &all);
    for (size_t i = 0; i < all.count; i++) {
        if (!all.items[i].fits || fstatat(fd, all.items[i].path, &st, 0) < 0)
            continue;
        stamp = file_stamp_mix(stamp, file_stamp(&st));
        *changed = file_stamp_changed(&st) > *changed ? file_stamp_changed(&st) : *changed;
    }
    if (latest >= 0 && latest >= step) /* so that a failed one is looked at again */
        stamp = file_stamp_mix(stamp, 1);
    return stamp ? stamp : 1;
}

/* ---- ready ------------------------------------------------------------------------------------------------------- */

/* Whether it is complete, if its bytes tell. Only the beginning is read unless it is JSON: it may be large. */
static int marker_whole(const char *directory, int directory_fd, const char *marker, struct error *e)
{
    struct buffer bytes = BUFFER_EMPTY;
    char path[PATH_MAX], head[64];
    ssize_t n = read_head(directory_fd, marker, head, sizeof head);
    int rc;

    if (n < 0 && errno != EISDIR) /* a directory is a valid marker */
        return error_system(e, "its marker %.200s", marker);
    if (n < 0 || !ready_rule_says_json(marker, head, (size_t)n))
        return OK;
    if ((rc = file_join(path, sizeof path, directory, marker, e)) == OK &&
        (rc = file_read(path, FILE_LIMIT, &bytes, e)) == OK)
        rc = ready_rule_marker_whole(marker, buffer_text(&bytes), bytes.length, e);
    buffer_release(&bytes);
    return rc;
}

static int named(const struct checkpoint_source *s, int fd, const struct sighting *item, struct error *why)
{
    int64_t latest;

    errno = 0;
    latest = checkpoint_ready_latest(s, fd);
    if (item->kind != CHECKPOINT_OTHER || !s->ready.latest || (latest >= 0 && latest >= item->step))
        return OK;
    if (latest < 0 && errno && errno != ENOENT)
        return error_system(why, "%.200s", s->ready.latest);
    if (latest < 0)
        return error_set(why, ERR_IO, "%.200s names no checkpoint", s->ready.latest);
    return error_set(why, ERR_IO, "%.200s does not name it yet, only step %lld", s->ready.latest, (long long)latest);
}

/* at all companions together */
struct look {
    uint64_t stamp;
    double newest, marked; /* wall: the last change of any, and of those that mark it */
    double said;           /* wall: when the file with the step was modified */
};

static int look_at(const struct companions *all, int fd, struct look *l, struct error *why)
{
    struct stat st;

    *l = (struct look){ .stamp = 1 };
    for (size_t i = 0; i < all->count; i++) {
        const struct companion *c = &all->items[i];

        if (!c->fits)
            return error_set(why, ERR_ARG, "the path of %s %.200s... is too long", c->what, c->path);
        if (fstatat(fd, c->path, &st, 0) < 0 && errno == ENOENT)
            return error_set(why, ERR_IO, "%s %.200s does not exist", c->what, c->path);
        if (fstatat(fd, c->path, &st, 0) < 0)
            return error_system(why, "%s %.200s", c->what, c->path);
        l->stamp = file_stamp_mix(l->stamp, file_stamp(&st));
        l->newest = file_stamp_changed(&st) > l->newest ? file_stamp_changed(&st) : l->newest;
        if (i < all->marks)
            l->marked = l->newest;
        else
            l->said = file_stamp_modified(&st);
    }
    return OK;
}

enum checkpoint_readiness checkpoint_ready_look(const struct checkpoint_source *s, const char *directory, int fd,
                                                struct sighting *item, double now, double wall, struct error *why)
{
    const enum checkpoint_kind kind = (enum checkpoint_kind)item->kind;
    char itself[PATH_MAX];
    double changed, modified;
    struct companions all;
    uint64_t content;
    struct look l;

    find_companions(s, fd, kind, item->name, item->step, &all);
    if (!all.count)
        return CHECKPOINT_MARKED;
    if (look_at(&all, fd, &l, why) != OK || named(s, fd, item, why) != OK ||
        checkpoint_witness(kind, item->name, itself, sizeof itself, why) != OK)
        return CHECKPOINT_UNMARKED;
    if (!content_stamp(fd, itself, &content, &changed) || !content_modified(fd, itself, &modified))
        return error_system(why, "%.200s", item->name), CHECKPOINT_UNMARKED;
    if (!sighting_settled(item, l.stamp, wall - l.newest, READY_MARKER_SECONDS, now))
        return CHECKPOINT_SETTLING;
    if (all.marks && ready_rule_changed_after(changed, l.marked) && !sighting_quiet(item, READY_QUIET_SECONDS, now))
        return CHECKPOINT_SETTLING;
    if (all.count > all.marks && modified > l.said)
        return error_set(why, ERR_IO, "%s %.200s is older than the checkpoint; it must be written after it",
                         all.items[all.marks].what, all.items[all.marks].path),
               CHECKPOINT_UNMARKED;
    for (size_t i = 0; i < all.marks; i++)
        if (marker_whole(directory, fd, all.items[i].path, why) != OK)
            return CHECKPOINT_UNMARKED;
    return CHECKPOINT_MARKED;
}

int checkpoint_ready_number(const struct checkpoint_source *s, const char *directory, int fd, const char *name,
                            int64_t *number, struct error *e)
{
    struct buffer bytes = BUFFER_EMPTY;
    char file[PATH_MAX], path[PATH_MAX];
    int rc;

    if (!step_rule_path(&s->steps, name, is_directory(fd, name), file, sizeof file))
        return error_set(e, ERR_ARG, "%.200s: the path of the file with its step is too long", name);
    if ((rc = file_join(path, sizeof path, directory, file, e)) == OK &&
        (rc = file_read(path, FILE_LIMIT, &bytes, e)) == OK)
        rc = step_rule_find(&s->steps, file, buffer_text(&bytes), bytes.length, number, e);
    buffer_release(&bytes);
    return rc;
}
