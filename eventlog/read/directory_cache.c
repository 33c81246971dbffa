#include "eventlog/read/directory_cache.h"

#include "eventlog/read/log_watch.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A change may come within the same tick of the file system's clock as the reading, up to two seconds, and leave the
 * times as they are. Seconds from the last change to the reading after which the times tell. */
enum { TIMES_COARSE = 3, FORGET_MORE_THAN = 100 };

struct known_directory {
    struct directory_entries *entries; /* do not move */
    struct stat seen;
    int can_tell;
    uint64_t listing; /* in which it was last come across */
};

/* Appends what is in the directory. *unclear: there are links. -1 and errno. */
static int read_entries(DIR *d, struct buffer *to, int *unclear)
{
    errno = 0;
    for (struct dirent *entry; (entry = readdir(d)); errno = 0) {
        const char *name = entry->d_name;
        const char kind = entry->d_type == DT_REG   ? DIRECTORY_FILE
                          : entry->d_type == DT_DIR ? DIRECTORY_BELOW
                                                    : DIRECTORY_UNCLEAR;

        if (!strcmp(name, ".") || !strcmp(name, "..") || (kind == DIRECTORY_FILE && !strstr(name, "tfevents")))
            continue;
        if (entry->d_type != DT_REG && entry->d_type != DT_DIR && entry->d_type != DT_LNK &&
            entry->d_type != DT_UNKNOWN)
            continue; /* a device, a socket */
        *unclear |= kind == DIRECTORY_UNCLEAR;
        buffer_append_byte(to, kind);
        buffer_append(to, name, strlen(name) + 1);
    }
    return errno ? -1 : 0;
}

static int is_same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static int is_unchanged(const struct known_directory *k, const char *path)
{
    struct stat st;

    return k->can_tell && stat(path, &st) == 0 && st.st_ino == k->seen.st_ino && st.st_dev == k->seen.st_dev &&
           is_same_time(st.st_mtim, k->seen.st_mtim) && is_same_time(st.st_ctim, k->seen.st_ctim);
}

/* directory_read(), and whether the directory's times tell of changes from now on. */
static int read_directory(const char *path, struct directory_entries *to, struct known_directory *k)
{
    int unclear = 0, rc = OK, saved;
    DIR *d = opendir(path);
    struct stat st;
    time_t now;

    to->mark = -1;
    buffer_clear(&to->bytes);
    if (!d)
        return ERR_IO;
    now = time(NULL);
    if (fstat(dirfd(d), &st) < 0 || read_entries(d, &to->bytes, &unclear) < 0)
        rc = ERR_IO;
    else if (!buffer_ok(&to->bytes))
        rc = ERR_NOMEM;
    if (rc == OK)
        to->id = directory_id_of(&st);
    if (k && rc == OK)
        k->seen = st;
    if (k)
        k->can_tell = rc == OK && !unclear && now - st.st_mtim.tv_sec > TIMES_COARSE &&
                      now - st.st_ctim.tv_sec > TIMES_COARSE && log_watch_is_local(dirfd(d));
    saved = errno;
    closedir(d);
    errno = saved;
    return rc;
}

int directory_read(const char *path, struct directory_entries *entries)
{
    *entries = (struct directory_entries){ .bytes = BUFFER_EMPTY };
    return read_directory(path, entries, NULL);
}

int directory_cache_read(struct directory_cache *c, const char *path, struct directory_entries **entries)
{
    struct known_directory *k = tag_index_item(&c->known, path, strlen(path));

    if (!k || (!k->entries && !(k->entries = calloc(1, sizeof *k->entries))))
        return ERR_NOMEM;
    c->seen += k->listing != c->listing;
    k->listing = c->listing;
    *entries = k->entries;
    return is_unchanged(k, path) ? OK : read_directory(path, k->entries, k);
}

void directory_cache_begin(struct directory_cache *c)
{
    if (c->known.count > 2 * c->seen + FORGET_MORE_THAN)
        directory_cache_release(c);
    c->known.item_size = sizeof(struct known_directory);
    c->listing++;
    c->seen = 0;
}

int directory_cache_is_same(const struct directory_cache *c)
{
    const struct known_directory *k = c->known.items;
    size_t count = 0;

    for (size_t i = 0; i < c->known.count; i++) /* first without asking the system */
        if (k[i].listing == c->listing && !k[i].can_tell)
            return 0;
    for (size_t i = 0; i < c->known.count; i++)
        if (k[i].listing == c->listing && ++count && !is_unchanged(&k[i], c->known.entries[i].text))
            return 0;
    return count > 0;
}

int directory_cache_has(struct directory_cache *c, const char *path)
{
    const size_t number = tag_index_find(&c->known, path, strlen(path));

    return number != TAG_INDEX_NONE && ((const struct known_directory *)c->known.items)[number].listing == c->listing;
}

void directory_cache_release(struct directory_cache *c)
{
    struct known_directory *k = c->known.items;

    for (size_t i = 0; i < c->known.count; i++)
        if (k[i].entries) {
            buffer_release(&k[i].entries->bytes);
            free(k[i].entries);
        }
    tag_index_release(&c->known);
}
