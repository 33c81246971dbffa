#include "eventlog/server/store/saved_points.h"

#include "base/crc32c.h"
#include "base/file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct saved_points {
    unsigned references;
    struct shared_bytes *bytes; /* or NULL: */
    char path[];
};

static struct saved_points *saved_points_new(const char *path, struct shared_bytes *bytes)
{
    const size_t n = strlen(path) + 1;
    struct saved_points *s = malloc(sizeof *s + n);

    if (!s)
        return NULL;
    s->references = 1;
    s->bytes = bytes;
    memcpy(s->path, path, n);
    return s;
}

struct saved_points *saved_points_of_file(const char *path)
{
    return saved_points_new(path, NULL);
}

struct saved_points *saved_points_of_bytes(struct shared_bytes *bytes)
{
    struct saved_points *s = saved_points_new("", bytes);

    if (s)
        shared_bytes_keep(bytes);
    return s;
}

struct saved_points *saved_points_keep(struct saved_points *s)
{
    __atomic_fetch_add(&s->references, 1, __ATOMIC_RELAXED);
    return s;
}

void saved_points_drop(struct saved_points *s)
{
    if (!s || __atomic_fetch_sub(&s->references, 1, __ATOMIC_ACQ_REL) != 1)
        return;
    shared_bytes_drop(s->bytes);
    free(s);
}

/* The bytes of the place, in new memory. NULL: they are not there. */
static struct shared_bytes *read_place(const char *path, const struct saved_place *place)
{
    struct shared_bytes *all = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    int whole;

    if (fd < 0)
        return NULL;
    if (place->length && place->length <= SIZE_MAX / 2)
        all = shared_bytes_new((size_t)place->length);
    whole = all && file_read_at(fd, all->bytes, all->size, place->offset) == (ssize_t)all->size;
    close(fd);
    if (whole)
        return all;
    shared_bytes_drop(all);
    return NULL;
}

int saved_points_take(const struct saved_place *place, const uint8_t *bytes, size_t columns, struct shared_bytes *of,
                      struct point_series *out)
{
    *out = (struct point_series){ .rows = 0 };
    if (point_series_load(out, bytes, (size_t)place->length, columns, of) && out->rows == place->rows &&
        out->last_step == place->last_step) {
        out->latest = place->latest;
        out->most_blobs = place->most_blobs;
        return 1;
    }
    point_series_release(out);
    return 0;
}

int saved_points_read(const struct saved_points *s, const struct saved_place *place, size_t columns,
                      struct point_series *out)
{
    struct shared_bytes *of = s->bytes ? shared_bytes_keep(s->bytes) : read_place(s->path, place);
    const uint8_t *bytes = of ? of->bytes + (s->bytes ? place->offset : 0) : NULL;
    const int good = of && crc32c(bytes, (size_t)place->length) == place->crc &&
                     saved_points_take(place, bytes, columns, of, out);

    shared_bytes_drop(of);
    return good;
}
