#include "evaluator/watch/checkpoint_listing.h"

#include "base/array.h"
#include "base/text.h"
#include "checkpoint/directory/checkpoint_directory.h"
#include "checkpoint/safetensors.h"
#include "evaluator/files/content_digest.h"
#include "evaluator/watch/checkpoint_ready.h"

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

enum { LOOKED_THROUGH_MAX = 256 }; /* directories of opened checkpoints that one listing looks through */

void checkpoint_listing_release(struct checkpoint_listing *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        free(rows->items[i].owned);
    free(rows->items);
    *rows = (struct checkpoint_listing){ 0 };
}

struct listing {
    const struct checkpoint_source *source;
    int fd;
    int64_t latest; /* of checkpoint_ready_latest() */
    const struct sightings *known;
    size_t turn;
    double wall;
    struct checkpoint_listing *rows;
    int indexes; /* 1: an index of parts is here */
};

static int add_row(struct listing *l, const char *name, size_t length, int64_t step, enum checkpoint_kind kind,
                   uint64_t inode, uint64_t seen_stamp, double changed)
{
    struct checkpoint_listing *rows = l->rows;
    char *copy;

    if (!ARRAY_ROOM(rows->items, rows->capacity, rows->count + 1))
        return ERR_NOMEM;
    if (!(copy = strndup(name, length)))
        return ERR_NOMEM;
    rows->items[rows->count++] = (struct sighting_seen){ .name = copy,
                                                         .owned = copy,
                                                         .step = step,
                                                         .kind = kind,
                                                         .stamp = seen_stamp,
                                                         .age = l->wall - changed,
                                                         .inode = inode };
    return OK;
}

/* A name that was read from the directory cannot be looked at. */
static int unseen(struct listing *l, const char *name)
{
    if (errno == ELOOP)
        snprintf(l->rows->loop, sizeof l->rows->loop, "%s", name);
    else if (errno != ENOENT && errno != ENOTDIR) /* deleted meanwhile */
        error_system(&l->rows->unsure, "%.200s", name);
    return OK;
}

/* Each is identified by one regular file: PREFIX.index, or the file itself for other kinds. */
static int add_file(struct listing *l, const char *file, size_t name_length, int64_t step, enum checkpoint_kind kind)
{
    char name[NAME_MAX + 1];
    double changed;
    uint64_t stamp;
    struct stat st;

    if (fstatat(l->fd, file, &st, 0) < 0)
        return unseen(l, file);
    if (!S_ISREG(st.st_mode))
        return OK; /* a FIFO, for example, which must not be opened */
    stamp = file_stamp(&st);
    changed = file_stamp_changed(&st);
    snprintf(name, sizeof name, "%.*s", (int)name_length, file);
    if (l->source->steps.from != STEP_FROM_NAME &&
        !(stamp = checkpoint_ready_stamp(l->source, l->fd, kind, name, step, -1, &changed)))
        return unseen(l, name);
    return add_row(l, file, name_length, step, kind, 0, stamp, changed);
}

static void note_near(struct listing *l, const char *name, int matches)
{
    struct checkpoint_listing *rows = l->rows;
    const size_t distance = matches ? 0 : checkpoint_source_distance(l->source, name);
    const int tie = *rows->near && distance == rows->distance;

    if (rows->count || (l->known && l->known->count))
        return;
    rows->names++;
    if (*rows->near && (distance > rows->distance || (tie && text_natural_order(name, rows->near) > 0)))
        return;
    rows->distance = distance;
    snprintf(rows->near, sizeof rows->near, "%s", name);
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
        return unseen(l, name);
    inode = file_stamp_mix((uint64_t)st.st_dev, (uint64_t)st.st_ino);
    is_directory = S_ISDIR(st.st_mode);
    if (!is_directory && (s->pattern.directory || !S_ISREG(st.st_mode))) {
        if (s->pattern.directory)
            note_near(l, name, 1);
        return OK;
    }
    /* If it is renamed into place, new content means a new directory; only deletion changes an old one. */
    if (is_directory && ready_rule_by_name(&s->ready) && s->steps.from != STEP_FROM_FILE && !(known && known->in_place))
        return add_row(l, name, strlen(name), step, CHECKPOINT_OTHER, inode, inode, file_stamp_changed(&st));
    if (is_directory && known && known->state == SIGHTING_OPENED && at % turns != l->turn % turns)
        return add_row(l, name, strlen(name), step, CHECKPOINT_OTHER, inode, known->stamp, l->wall);
    if (!(seen_stamp = checkpoint_ready_stamp(s, l->fd, CHECKPOINT_OTHER, name, step, l->latest, &changed)))
        return unseen(l, name);
    return add_row(l, name, strlen(name), step, CHECKPOINT_OTHER, inode, seen_stamp, changed);
}

static int add_plain(struct listing *l, const char *name)
{
    int64_t number = checkpoint_name_safetensors(name), step = checkpoint_source_step(l->source, number);

    if (number >= 0)
        return step >= 0 ? add_file(l, name, strlen(name), step, CHECKPOINT_SAFETENSORS) : OK;
    if ((number = checkpoint_name_weights(l->fd, name)) >= 0)
        return (step = checkpoint_source_step(l->source, number)) >= 0 ? add_other(l, name, step) : OK;
    if ((step = checkpoint_source_step(l->source, checkpoint_file_v1(l->fd, name))) < 0)
        note_near(l, name, 0);
    return step >= 0 ? add_file(l, name, strlen(name), step, CHECKPOINT_V1) : OK;
}

static int add_matching(struct listing *l, const char *name)
{
    const struct pattern *p = &l->source->pattern;
    const size_t n = strlen(name), stem = text_stem(name, n, ".index");
    char prefix[NAME_MAX + 1];
    int64_t step;

    if (checkpoint_name_temporary(name))
        return OK;
    if (!p->directory && stem) {
        snprintf(prefix, sizeof prefix, "%.*s", (int)stem, name);
        if (checkpoint_source_match(l->source, prefix, &step) || checkpoint_source_match(l->source, name, &step))
            return add_file(l, name, stem, step, CHECKPOINT_BUNDLE);
    }
    if (!checkpoint_source_match(l->source, name, &step) || strstr(name, ".data-")) {
        note_near(l, name, 0);
        return OK;
    }
    if (!p->directory && text_stem(name, n, ".safetensors"))
        return add_file(l, name, n, step, CHECKPOINT_SAFETENSORS);
    if (!p->directory && isdigit((unsigned char)name[n - 1]) && tensor_bundle_ends_as_index(l->fd, name))
        return add_file(l, name, n, step, CHECKPOINT_V1);
    return add_other(l, name, step);
}

static int each_name(struct listing *l, const char *directory, int (*add)(struct listing *, const char *),
                     struct error *e)
{
    int fd = openat(l->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = OK;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!d && fd >= 0)
        errno = ENOMEM; /* all that it can want for a directory */
    if (!d) {
        rc = error_system(e, "%s: cannot be listed", directory);
        if (fd >= 0)
            close(fd);
        return rc;
    }
    while (rc == OK && (errno = 0, entry = readdir(d))) {
        l->indexes |= safetensors_is_index(entry->d_name);
        if (*entry->d_name != '.' && add(l, entry->d_name) != OK)
            rc = error_memory(e, directory, "to list it");
    }
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

void checkpoint_listing_sort(struct checkpoint_listing *rows)
{
    if (rows->count)
        qsort(rows->items, rows->count, sizeof *rows->items, by_step);
}

int checkpoint_listing_keep(struct checkpoint_listing *rows, const struct sighting *item, double age, struct error *e)
{
    char *copy;

    if (!ARRAY_ROOM(rows->items, rows->capacity, rows->count + 1) || !(copy = strdup(item->name)))
        return error_memory(e, NULL, "for %zu checkpoints", rows->count + 1);
    rows->items[rows->count++] = (struct sighting_seen){ .name = copy,
                                                         .owned = copy,
                                                         .step = item->step,
                                                         .kind = item->kind,
                                                         .stamp = item->stamp,
                                                         .age = age,
                                                         .inode = item->inode };
    return OK;
}

static int list_bundles(struct listing *l, const char *directory, struct error *e)
{
    struct checkpoint_list list = { 0 };
    int rc = checkpoint_directory_list(directory, &list, e);

    for (size_t i = 0; rc == OK && i < list.count; i++) {
        char file[NAME_MAX + 8];

        snprintf(file, sizeof file, "%s.index", list.items[i].name);
        if (add_file(l, file, strlen(list.items[i].name), checkpoint_source_step(l->source, list.items[i].step),
                     CHECKPOINT_BUNDLE) != OK)
            rc = error_memory(e, directory, "to list it");
    }
    checkpoint_list_release(&list);
    return rc;
}

static int has_safetensors(const struct checkpoint_listing *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        if (rows->items[i].kind == CHECKPOINT_SAFETENSORS)
            return 1;
    return 0;
}

int checkpoint_listing_read(struct checkpoint_listing *out, const struct checkpoint_source *s, const char *directory,
                            int fd, const struct sightings *known, size_t turn, double wall, struct error *e)
{
    struct listing l = { s, fd, checkpoint_ready_latest(s, fd), known, turn, wall, out, 0 };
    struct checkpoint_parts parts = { 0 };
    size_t kept = 0;
    int rc = s->has_pattern ? OK : list_bundles(&l, directory, e);

    if (rc == OK)
        rc = each_name(&l, directory, s->has_pattern ? add_matching : add_plain, e);
    if (rc == OK && l.indexes && has_safetensors(out))
        rc = checkpoint_parts_list(&parts, directory, e);
    if (rc != OK) {
        checkpoint_listing_release(out);
        return rc;
    }
    checkpoint_listing_sort(out);
    for (size_t i = 0; i < out->count; i++) { /* a name of two kinds (V1 file beside V2 index) counts as the first */
        if ((kept && out->items[kept - 1].step == out->items[i].step &&
             !strcmp(out->items[kept - 1].name, out->items[i].name)) ||
            checkpoint_parts_has(&parts, out->items[i].name))
            free(out->items[i].owned);
        else
            out->items[kept++] = out->items[i];
    }
    out->count = kept;
    checkpoint_parts_release(&parts);
    return OK;
}
