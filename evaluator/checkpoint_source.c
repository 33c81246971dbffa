#include "evaluator/checkpoint_source.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "checkpoint/checkpoint_directory.h"
#include "evaluator/file_stamp.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LOOKED_THROUGH_MAX = 256, /* directories of opened checkpoints, in one listing */
    MARKER_LIMIT = 256 << 20, /* bytes of a marker */
};

int checkpoint_source_init(struct checkpoint_source *s, const struct checkpoint_source_options *options,
                           struct error *e)
{
    int rc;

    *s = (struct checkpoint_source){ .has_pattern = options->pattern != NULL };
    if (options->pattern && (rc = pattern_parse(options->pattern, &s->pattern, e)) != OK)
        return error_prefix(e, "--pattern");
    if (options->ready_count && !options->pattern)
        return error_set(e, ERR_ARG, "--ready is for --pattern: TensorFlow's and safetensors' files show when they are "
                         "whole");
    return ready_rule_parse(&s->ready, options->ready, options->ready_count, e);
}

double checkpoint_source_quiet(const struct checkpoint_source *s, const struct sighting *item)
{
    if (item->kind != CHECKPOINT_OTHER)
        return 0;
    return item->in_place && s->ready.quiet_seconds <= 0 ? READY_QUIET_SECONDS : s->ready.quiet_seconds;
}

int checkpoint_witness(enum checkpoint_kind kind, const char *path, char *out, size_t size, struct error *e)
{
    int n = snprintf(out, size, "%s%s", path, kind == CHECKPOINT_BUNDLE ? ".index" : "");

    return n >= 0 && (size_t)n < size ? OK : error_set(e, ERR_ARG, "%.200s...: path too long", path);
}

void checkpoint_source_describe(const struct checkpoint_source *s, char *out, size_t size)
{
    if (s->has_pattern)
        snprintf(out, size, "names like %s%s", s->pattern.text, s->pattern.directory ? "/" : "");
    else
        snprintf(out, size, "files named NAME-STEP.index or NAME-STEP.safetensors");
}

/* ---- markers ----------------------------------------------------------------------------------------------------- */

/* Whether it is whole, where its bytes tell. Of what is no JSON only the beginning is read: it may be large. */
static int marker_whole(const char *directory, const char *marker, struct error *e)
{
    struct buffer bytes = BUFFER_EMPTY;
    char path[PATH_MAX], head[64];
    ssize_t n;
    int fd, rc;

    if ((rc = file_join(path, sizeof path, directory, marker, e)) != OK)
        return rc;
    if ((fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)) < 0)
        return error_system(e, "its marker %.200s cannot be opened", marker);
    n = file_read_at(fd, head, sizeof head, 0); /* -1 of a directory, which is a marker like any other */
    close(fd);
    if (n < 0 || !ready_rule_says_json(marker, head, (size_t)n))
        return OK;
    if ((rc = file_read(path, MARKER_LIMIT, &bytes, e)) == OK)
        rc = ready_rule_marker_whole(marker, buffer_text(&bytes), bytes.length, e);
    buffer_release(&bytes);
    return rc;
}

enum checkpoint_marked checkpoint_source_marked(const struct checkpoint_source *s, const char *directory, int fd,
                                                struct sighting *item, double now, struct error *why)
{
    char paths[READY_MARKERS_MAX][PATH_MAX];
    double wall = clock_wall(), newest = 0;
    uint64_t stamp = 1;
    struct stat st;

    if (item->kind != CHECKPOINT_OTHER || !s->ready.marker_count)
        return CHECKPOINT_MARKED;
    for (size_t i = 0; i < s->ready.marker_count; i++) {
        if (fstatat(fd, item->name, &st, 0) < 0)
            return error_set(why, ERR_IO, "%.200s is not there any more", item->name), CHECKPOINT_UNMARKED;
        if (!ready_rule_marker_path(s->ready.markers[i], item->name, item->step, S_ISDIR(st.st_mode), paths[i],
                                    sizeof paths[i]))
            return error_set(why, ERR_ARG, "%.200s: the path of its marker is too long", item->name),
                   CHECKPOINT_UNMARKED;
        if (fstatat(fd, paths[i], &st, 0) < 0)
            return error_set(why, ERR_IO, "its marker %.200s is not there", paths[i]), CHECKPOINT_UNMARKED;
        stamp = file_stamp_mix(stamp, file_stamp(&st));
        newest = file_stamp_changed(&st) > newest ? file_stamp_changed(&st) : newest;
    }
    if (!sighting_markers(item, stamp, wall - newest, READY_MARKER_SECONDS, now))
        return CHECKPOINT_SETTLING;
    for (size_t i = 0; i < s->ready.marker_count; i++)
        if (marker_whole(directory, paths[i], why) != OK)
            return CHECKPOINT_UNMARKED;
    return CHECKPOINT_MARKED;
}

/* ---- listing ----------------------------------------------------------------------------------------------------- */

void checkpoint_rows_release(struct checkpoint_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        free(rows->items[i].owned);
    free(rows->items);
    *rows = (struct checkpoint_rows){ NULL, 0, 0 };
}

struct listing {
    const struct checkpoint_source *source;
    int fd;
    const struct sightings *known;
    size_t turn;
    double wall;
    struct checkpoint_rows *rows;
};

static int add_row(struct listing *l, const char *name, size_t length, int64_t step, enum checkpoint_kind kind,
                   uint64_t inode, uint64_t seen_stamp, double changed)
{
    struct checkpoint_rows *rows = l->rows;
    char *copy;

    if (rows->count == rows->capacity) {
        size_t capacity = rows->capacity ? rows->capacity * 2 : 64;
        struct sighting_seen *grown = realloc(rows->items, capacity * sizeof *grown);

        if (!grown)
            return ERR_NOMEM;
        rows->items = grown;
        rows->capacity = capacity;
    }
    if (!(copy = strndup(name, length)))
        return ERR_NOMEM;
    rows->items[rows->count++] = (struct sighting_seen){ .name = copy, .owned = copy, .step = step, .kind = kind,
                                                         .stamp = seen_stamp, .age = l->wall - changed,
                                                         .inode = inode };
    return OK;
}

/* One regular file is what it is known by: PREFIX.index, or a file of another kind itself. */
static int add_file(struct listing *l, const char *file, size_t name_length, int64_t step, enum checkpoint_kind kind)
{
    struct stat st;

    if (fstatat(l->fd, file, &st, 0) < 0 || !S_ISREG(st.st_mode))
        return OK; /* deleted since it was listed, or a FIFO nobody should open */
    return add_row(l, file, name_length, step, kind, 0, file_stamp(&st), file_stamp_changed(&st));
}

static int add_other(struct listing *l, const char *name, int64_t step)
{
    const struct checkpoint_source *s = l->source;
    const struct sighting *known = l->known ? sightings_find(l->known, name, step) : NULL;
    size_t at = known ? (size_t)(known - l->known->items) : 0;
    size_t turns = l->known ? l->known->count / LOOKED_THROUGH_MAX + 1 : 1;
    struct stat st;
    uint64_t inode, seen_stamp;
    double changed;
    int is_directory;

    if (fstatat(l->fd, name, &st, 0) < 0)
        return OK;
    inode = file_stamp_mix((uint64_t)st.st_dev, (uint64_t)st.st_ino);
    is_directory = S_ISDIR(st.st_mode);
    if (!is_directory && (s->pattern.directory || !S_ISREG(st.st_mode)))
        return OK;
    /* One that was renamed into place is another directory when it is new; what changes in it is its deletion. */
    if (is_directory && s->ready.rename && !s->ready.marker_count && s->ready.quiet_seconds <= 0 &&
        !(known && known->in_place))
        return add_row(l, name, strlen(name), step, CHECKPOINT_OTHER, inode, inode, file_stamp_changed(&st));
    if (is_directory && known && known->state == SIGHTING_OPENED && at % turns != l->turn % turns)
        return add_row(l, name, strlen(name), step, CHECKPOINT_OTHER, inode, known->stamp, l->wall);
    if (!content_stamp(l->fd, name, &seen_stamp, &changed))
        return OK;
    for (size_t i = 0; i < s->ready.marker_count; i++) {
        char path[PATH_MAX];

        if (!ready_rule_marker_path(s->ready.markers[i], name, step, is_directory, path, sizeof path) ||
            fstatat(l->fd, path, &st, 0) < 0)
            continue;
        seen_stamp = file_stamp_mix(seen_stamp, file_stamp(&st));
        changed = file_stamp_changed(&st) > changed ? file_stamp_changed(&st) : changed;
    }
    return add_row(l, name, strlen(name), step, CHECKPOINT_OTHER, inode, seen_stamp, changed);
}

static int ends_with(const char *name, size_t n, const char *end, size_t *stem)
{
    size_t k = strlen(end);

    *stem = n - k;
    return n > k && !memcmp(name + n - k, end, k);
}

/* "-00001-of-00002" at the end: 1, and the length without it. */
static int is_part(const char *name, size_t n, size_t *stem)
{
    size_t i = n;

    while (i && isdigit((unsigned char)name[i - 1]))
        i--;
    if (n - i < 5 || i < 4 || memcmp(name + i - 4, "-of-", 4))
        return 0;
    n = i -= 4;
    while (i && isdigit((unsigned char)name[i - 1]))
        i--;
    if (n - i < 5 || !i || name[i - 1] != '-')
        return 0;
    *stem = i - 1;
    return 1;
}

/* The number at the end of name[0..n), -1 without one. */
static int64_t last_number(const char *name, size_t n)
{
    size_t i = n;
    int64_t step = 0;

    while (i && isdigit((unsigned char)name[i - 1]))
        i--;
    if (i == n || n - i > 18)
        return -1;
    for (; i < n; i++)
        step = step * 10 + (name[i] - '0');
    return step;
}

/* A V1 checkpoint is a file "model.ckpt-700", its first shard "model.ckpt-700-00000-of-00002". */
static int add_v1(struct listing *l, const char *name, size_t n)
{
    size_t stem = n;
    char text[NAME_MAX + 1];
    int64_t step;

    if (is_part(name, n, &stem) && strncmp(name + stem, "-00000-", 7))
        return OK;
    snprintf(text, sizeof text, "%.*s", (int)stem, name);
    if ((step = checkpoint_name_step(text)) < 0 || strstr(name, ".data-") || !opened_checkpoint_is_v1(l->fd, name))
        return OK;
    return add_file(l, name, n, step, CHECKPOINT_V1);
}

static int add_plain(struct listing *l, const char *name)
{
    size_t n = strlen(name), stem, whole;
    int64_t step;

    if (checkpoint_name_temporary(name))
        return OK;
    if (ends_with(name, n, ".safetensors", &stem)) {
        step = is_part(name, stem, &whole) ? -1 : last_number(name, stem);
        return step >= 0 ? add_file(l, name, n, step, CHECKPOINT_SAFETENSORS) : OK;
    }
    return isdigit((unsigned char)name[n - 1]) ? add_v1(l, name, n) : OK;
}

int checkpoint_source_name(const struct checkpoint_source *s, const char *file, char *name, size_t size, int64_t *step)
{
    size_t n = strlen(file), stem, whole;
    int index = ends_with(file, n, ".index", &stem);

    if (!n || *file == '.' || checkpoint_name_temporary(file) ||
        snprintf(name, size, "%.*s", (int)(index ? stem : n), file) >= (int)size)
        return 0;
    if (s->has_pattern && index && !s->pattern.directory && pattern_match(&s->pattern, name, step))
        return 1;
    if (s->has_pattern)
        return !strstr(file, ".data-") && pattern_match(&s->pattern, file, step);
    if (index)
        return (*step = checkpoint_name_step(name)) >= 0;
    return ends_with(file, n, ".safetensors", &stem) && !is_part(file, stem, &whole) &&
           (*step = last_number(file, stem)) >= 0;
}

static int add_matching(struct listing *l, const char *name)
{
    const struct pattern *p = &l->source->pattern;
    size_t n = strlen(name), stem;
    char prefix[NAME_MAX + 1];
    int64_t step;

    if (checkpoint_name_temporary(name))
        return OK;
    if (!p->directory && ends_with(name, n, ".index", &stem)) {
        snprintf(prefix, sizeof prefix, "%.*s", (int)stem, name);
        if (pattern_match(p, prefix, &step) || pattern_match(p, name, &step))
            return add_file(l, name, stem, step, CHECKPOINT_BUNDLE);
    }
    if (!pattern_match(p, name, &step) || strstr(name, ".data-"))
        return OK;
    if (!p->directory && ends_with(name, n, ".safetensors", &stem))
        return add_file(l, name, n, step, CHECKPOINT_SAFETENSORS);
    if (!p->directory && isdigit((unsigned char)name[n - 1]) && opened_checkpoint_is_v1(l->fd, name))
        return add_file(l, name, n, step, CHECKPOINT_V1);
    return add_other(l, name, step);
}

static int each_name(struct listing *l, const char *directory, int (*add)(struct listing *, const char *),
                     struct error *e)
{
    int fd = openat(l->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = OK;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!d) {
        rc = error_system(e, "%s: cannot be listed", directory);
        if (fd >= 0)
            close(fd);
        return rc;
    }
    while (rc == OK && (errno = 0, entry = readdir(d)))
        if (*entry->d_name != '.' && add(l, entry->d_name) != OK)
            rc = error_set(e, ERR_NOMEM, "%s: no memory to list it", directory);
    if (rc == OK && errno)
        rc = error_system(e, "%s: cannot read the directory", directory);
    closedir(d);
    return rc;
}

static int by_step(const void *a, const void *b)
{
    const struct sighting_seen *x = a, *y = b;
    int order = x->step != y->step ? (x->step < y->step ? -1 : 1) : strcmp(x->name, y->name);

    return order ? order : (int)x->kind - (int)y->kind;
}

static int list_bundles(struct listing *l, const char *directory, struct error *e)
{
    struct checkpoint_list list = { 0 };
    int rc = checkpoint_directory_list(directory, &list, e);

    for (size_t i = 0; rc == OK && i < list.count; i++) {
        char file[NAME_MAX + 8];

        snprintf(file, sizeof file, "%s.index", list.items[i].name);
        if (add_file(l, file, strlen(list.items[i].name), list.items[i].step, CHECKPOINT_BUNDLE) != OK)
            rc = error_set(e, ERR_NOMEM, "%s: no memory to list it", directory);
    }
    checkpoint_list_release(&list);
    return rc;
}

int checkpoint_source_list(const struct checkpoint_source *s, const char *directory, int fd,
                           const struct sightings *known, size_t turn, struct checkpoint_rows *out, struct error *e)
{
    struct listing l = { s, fd, known, turn, clock_wall(), out };
    size_t kept = 0;
    int rc = s->has_pattern ? OK : list_bundles(&l, directory, e);

    if (rc == OK)
        rc = each_name(&l, directory, s->has_pattern ? add_matching : add_plain, e);
    if (rc != OK) {
        checkpoint_rows_release(out);
        return rc;
    }
    if (out->count)
        qsort(out->items, out->count, sizeof *out->items, by_step);
    for (size_t i = 0; i < out->count; i++) { /* a name of two kinds, a V1 file beside a V2 index, is the first one */
        if (kept && out->items[kept - 1].step == out->items[i].step &&
            !strcmp(out->items[kept - 1].name, out->items[i].name))
            free(out->items[i].owned);
        else
            out->items[kept++] = out->items[i];
    }
    out->count = kept;
    return OK;
}
