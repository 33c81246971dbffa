#include "eventlog/read/log_directory.h"

#include "base/buffer.h"
#include "base/file.h"
#include "eventlog/format/log_name.h"
#include "eventlog/format/tag_index.h"
#include "eventlog/read/log_watch.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* ---- directory cache --------------------------------------------------------------------------------------------- */

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

/* Reads a directory. OK and *entries, which is yours: buffer_release() its bytes, also after an error. ERR_IO: it
 * cannot be read, and errno tells why. ERR_NOMEM. */
static int directory_read(const char *path, struct directory_entries *entries)
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

/* ---- log directory ----------------------------------------------------------------------------------------------- */

#define NO_PLACE ((size_t)-1)

/* A directory that is listed. */
struct place {
    char *path;
    size_t parent; /* what holds it, or the link that leads to it; NO_PLACE: it is the top */
    int depth, is_linked;
    struct directory_id id; /* once it has been read */
};

/* A link to a directory. */
struct link {
    char *path;
    size_t parent;
    struct directory_id to;
};

struct walk {
    struct log_directory *to;
    struct directory_cache *cache; /* NULL: none */
    const char *home;              /* a real path out of which no link is followed; NULL: they all are */
    struct log_input *in;
    const char *label; /* of the walk's top, "" or a path */
    struct error *e;
    int limit_told;
    /* of one top */
    struct place *places;
    struct link *links;
    size_t place_count, link_count;
    size_t below;           /* where names begin in paths */
    struct tag_index seen;  /* directories, by identity */
    struct tag_index pairs; /* identities of the two ends of each link */
};

/* Appends item to a growing list of pointers or structs: room for one more at the end, or NULL. */
static void *one_more(void *list, size_t count, size_t size)
{
    if (count && (count & (count - 1)))
        return list; /* capacities are powers of two */
    return realloc(list, (count ? count * 2 : 1) * size);
}

static int directory_no_memory(struct error *e, const char *path)
{
    return error_memory(e, path, "while listing");
}

/* Appends a copy of the text to the list. path: what is at hand, for the sentence. */
static int add_text(char ***list, size_t *count, const char *text, const char *path, struct error *e)
{
    char **more = one_more(*list, *count, sizeof *more);

    if (more)
        *list = more;
    if (!more || !(more[*count] = strdup(text)))
        return directory_no_memory(e, path);
    ++*count;
    return OK;
}

static int add_problem(struct walk *w, const struct error *found, const char *path)
{
    return add_text(&w->to->problems, &w->to->problem_count, found->message, path, w->e);
}

static int unreadable(struct walk *w, const char *path)
{
    struct error e;

    error_system(&e, "%s: cannot be read", path);
    w->to->unreadable = w->to->problem_count + 1;
    return add_problem(w, &e, path);
}

/* The first directory that is left out because it is too far down is named. */
static int too_deep(struct walk *w, const char *directory)
{
    struct error e;

    if (w->limit_told)
        return OK;
    w->limit_told = 1;
    error_set(&e, ERR_ARG, "%s: what is more than %d directories or %d bytes of path deep is left out, from %.*s%s on",
              w->places[0].path, LOG_DIRECTORY_DEPTH_MAX, PATH_MAX - 1, 200, directory,
              strlen(directory) > 200 ? "..." : "");
    return add_problem(w, &e, directory);
}

static int add_directory(struct walk *w, const char *path, int *mark)
{
    struct log_directory *d = w->to;
    struct log_listed *more = one_more(d->directories, d->directory_count, sizeof *more);

    if (more)
        d->directories = more;
    if (!more || !(more[d->directory_count].path = strdup(path)))
        return directory_no_memory(w->e, path);
    more[d->directory_count++].mark = mark;
    return OK;
}

/* Compares names as they were before compression. */
static int by_text(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    size_t n = log_name_length(x), m = log_name_length(y);
    int order = memcmp(x, y, n < m ? n : m);

    return order ? order : n != m ? (n > m) - (n < m) : strcmp(x, y);
}

void log_run_release(struct log_run *run)
{
    for (size_t i = 0; i < run->file_count; i++)
        free(run->files[i]);
    free(run->files);
    free(run->directory);
    free(run->name);
    *run = (struct log_run){ 0 };
}

static int directory_add_file(struct log_run *run, const char *path, struct error *e)
{
    return add_text(&run->files, &run->file_count, path, path, e);
}

void log_run_sort(struct log_run *run)
{
    size_t kept = 0;

    if (run->file_count)
        qsort(run->files, run->file_count, sizeof *run->files, by_text);
    for (size_t i = 0; i < run->file_count; i++)
        if (kept && log_name_same(run->files[kept - 1], run->files[i]))
            free(run->files[i]);
        else
            run->files[kept++] = run->files[i];
    run->file_count = kept;
}

/* Moves run into the list. relative: its path below the top of the walk, "" for the top. */
static int directory_add_run(struct walk *w, struct log_run *run, const char *path, const char *relative)
{
    struct log_directory *d = w->to;
    struct log_run *list = one_more(d->runs, d->count, sizeof *list);
    struct buffer name = BUFFER_EMPTY;

    if (!list)
        return directory_no_memory(w->e, path);
    d->runs = list;
    buffer_append_text(&name, w->label);
    if (*w->label && *relative)
        buffer_append_byte(&name, '/');
    buffer_append_text(&name, relative);
    if (!name.length)
        buffer_append_text(&name, ".");
    run->name = name.data;
    run->directory = strdup(path);
    if (!buffer_ok(&name) || !run->directory)
        return directory_no_memory(w->e, path);
    log_run_sort(run);
    list[d->count++] = *run;
    memset(run, 0, sizeof *run);
    return OK;
}

/* ---- a tree ---------------------------------------------------------------------------------------------------- */

static int add_place(struct walk *w, const char *path, size_t parent, int is_linked)
{
    struct place *more = one_more(w->places, w->place_count, sizeof *more), *place;

    if (more)
        w->places = more;
    if (!more || !(more[w->place_count].path = strdup(path)))
        return directory_no_memory(w->e, path);
    place = &more[w->place_count++];
    place->parent = parent;
    place->depth = parent == NO_PLACE ? 0 : more[parent].depth + 1;
    place->is_linked = is_linked;
    return OK;
}

/* One that leads to a directory on its own path is none. */
static int add_link(struct walk *w, const char *path, size_t parent, const struct stat *st)
{
    struct directory_id ends[2] = { w->places[parent].id, directory_id_of(st) };
    struct link *more;

    for (size_t above = parent; above != NO_PLACE; above = w->places[above].parent)
        if (!memcmp(&w->places[above].id, &ends[1], sizeof ends[1]))
            return OK;
    if ((more = one_more(w->links, w->link_count, sizeof *more)))
        w->links = more;
    if (!more || !(more[w->link_count].path = strdup(path)))
        return directory_no_memory(w->e, path);
    more[w->link_count].parent = parent;
    more[w->link_count++].to = ends[1];
    return tag_index_add(&w->pairs, (const char *)ends, sizeof ends) != TAG_INDEX_NONE
               ? OK
               : directory_no_memory(w->e, path);
}

/* 1: a link that leads out of home, and is noted as one. */
static int leads_out(struct walk *w, const char *path, int *rc)
{
    const size_t n = w->home ? strlen(w->home) : 0;
    char real[PATH_MAX];

    if (!w->home || (realpath(path, real) && !strncmp(real, w->home, n) && (n == 1 || !real[n] || real[n] == '/')))
        return 0;
    *rc = add_text(&w->to->outside, &w->to->outside_count, path, path, w->e);
    return 1;
}

/* Takes an entry of a directory. *run: its files so far. */
static int take_entry(struct walk *w, size_t place, char kind, const char *name, struct log_run *run)
{
    const char *directory = w->places[place].path;
    const int is_event_file = strstr(name, "tfevents") != NULL;
    int is_link = 0, rc = OK;
    char path[PATH_MAX];
    struct stat st;

    if (kind == DIRECTORY_FILE && !is_event_file)
        return OK;
    if (file_join(path, sizeof path, directory, name, NULL) != OK)
        return too_deep(w, directory);
    if (kind == DIRECTORY_UNCLEAR) { /* what leads nowhere, or is gone since, is nothing */
        if (lstat(path, &st) < 0 || ((is_link = S_ISLNK(st.st_mode)) && stat(path, &st) < 0))
            return OK;
        kind = S_ISDIR(st.st_mode) ? DIRECTORY_BELOW : S_ISREG(st.st_mode) ? DIRECTORY_FILE : DIRECTORY_UNCLEAR;
        if (kind == DIRECTORY_UNCLEAR || (kind == DIRECTORY_FILE && !is_event_file) ||
            (is_link && leads_out(w, path, &rc)))
            return rc;
    }
    if (kind == DIRECTORY_FILE)
        return directory_add_file(run, path, w->e);
    if (w->places[place].depth == LOG_DIRECTORY_DEPTH_MAX)
        return too_deep(w, path);
    if (!w->below)
        w->below = strlen(path) - strlen(name);
    return is_link ? add_link(w, path, place, &st) : add_place(w, path, place, w->places[place].is_linked);
}

static int take_entries(struct walk *w, size_t place, const struct directory_entries *entries)
{
    struct log_run run = { .place = w->to->directory_count - 1 };
    const char *path, *at = entries->bytes.data, *end = at + entries->bytes.length;
    int rc = OK;

    w->places[place].id = entries->id;
    if (tag_index_add(&w->seen, (const char *)&entries->id, sizeof entries->id) == TAG_INDEX_NONE)
        rc = directory_no_memory(w->e, w->places[place].path);
    for (; rc == OK && at < end; at += strlen(at) + 1)
        rc = take_entry(w, place, *at, at + 1, &run);
    path = w->places[place].path;
    if (rc == OK && run.file_count)
        rc = directory_add_run(w, &run, path, place ? path + w->below : "");
    log_run_release(&run);
    return rc;
}

static int list_place(struct walk *w, size_t place)
{
    struct directory_entries own = { .bytes = BUFFER_EMPTY }, *entries = &own;
    const char *path = w->places[place].path;
    int rc = w->cache ? directory_cache_read(w->cache, path, &entries) : directory_read(path, &own);

    if (rc == ERR_IO)
        rc = place && errno == ENOENT ? OK : unreadable(w, path); /* OK: removed since its parent was read */
    else if (rc != OK)
        rc = directory_no_memory(w->e, path);
    else if ((rc = add_directory(w, path, w->cache ? &entries->mark : NULL)) == OK)
        rc = take_entries(w, place, entries);
    buffer_release(&own.bytes);
    return rc;
}

/* Directories with names of their own are listed below a link, too, but not if they hold a link back to where it is,
 * nor below another link: so the paths that are listed are at most as many as links times directories. */
static int is_followed(struct walk *w, const struct link *link)
{
    struct directory_id back[2] = { link->to, w->places[link->parent].id };

    return tag_index_find(&w->seen, (const char *)&link->to, sizeof link->to) == TAG_INDEX_NONE ||
           (!w->places[link->parent].is_linked &&
            tag_index_find(&w->pairs, (const char *)back, sizeof back) == TAG_INDEX_NONE);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct link *)a)->path, ((const struct link *)b)->path);
}

/* Links come after the directories that have names of their own. */
static int list_tree(struct walk *w, const char *top)
{
    size_t listed = 0, followed = 0, sorted = 0;
    int rc = add_place(w, top, NO_PLACE, 0);

    while (rc == OK && (listed < w->place_count || followed < w->link_count)) {
        if (listed < w->place_count) {
            rc = list_place(w, listed++);
            continue;
        }
        if (followed == sorted) {
            qsort(w->links + sorted, w->link_count - sorted, sizeof *w->links, by_path);
            sorted = w->link_count;
        }
        if (is_followed(w, &w->links[followed]))
            rc = add_place(w, w->links[followed].path, w->links[followed].parent, 1);
        followed++;
    }
    for (size_t i = 0; i < w->place_count; i++)
        free(w->places[i].path);
    for (size_t i = 0; i < w->link_count; i++)
        free(w->links[i].path);
    free(w->places);
    free(w->links);
    tag_index_release(&w->seen);
    tag_index_release(&w->pairs);
    w->places = NULL;
    w->links = NULL;
    w->place_count = w->link_count = w->below = 0;
    return rc;
}

/* ---- paths ----------------------------------------------------------------------------------------------------- */

/* "./a//b/" becomes "a/b", "." becomes "". */
static void tidy(const char *path, char *out, size_t size)
{
    size_t n = 0;

    if (*path == '/')
        out[n++] = '/';
    while (*path && n + 1 < size) {
        size_t part = strcspn(path, "/");

        if (part && !(part == 1 && *path == '.') && n + part + 2 < size) {
            if (n && out[n - 1] != '/')
                out[n++] = '/';
            memcpy(out + n, path, part);
            n += part;
        }
        path += part + (path[part] == '/');
    }
    out[n] = '\0';
}

/* realpath() of the part of the path that exists, followed by the rest unchanged. */
static void real_path(const char *path, char *out)
{
    size_t n = strlen(path), used;
    char there[PATH_MAX];

    for (;;) {
        snprintf(there, sizeof there, "%.*s", (int)n, path);
        if (realpath(n ? there : ".", out))
            break;
        *out = '\0';
        if (!n)
            break;
        while (n && path[n - 1] == '/')
            n--;
        while (n && path[n - 1] != '/')
            n--;
    }
    used = strlen(out);
    snprintf(out + used, PATH_MAX - used, "/%s", path + n);
}

/* Tidies all paths and finds how many of their leading bytes name the directory that holds them all. */
static int common_parent(char *const *paths, size_t count, char (*clean)[PATH_MAX], size_t *parent)
{
    int mixed = 0;

    for (size_t i = 0; i < count; i++)
        mixed |= (*paths[i] == '/') != (*paths[0] == '/') || strstr(paths[i], "..") != NULL;
    for (size_t i = 0; i < count; i++) {
        char real[PATH_MAX];

        if (mixed)
            real_path(paths[i], real);
        tidy(mixed ? real : paths[i], clean[i], PATH_MAX);
    }
    *parent = strlen(clean[0]);
    for (size_t i = 1; i < count; i++) {
        size_t n = 0, end = 0;

        for (;; n++) {
            int over_a = n == *parent || clean[0][n] == '/' || !clean[0][n];
            int over_b = clean[i][n] == '/' || !clean[i][n];

            if (over_a && over_b)
                end = n;
            if (n == *parent || !clean[i][n] || clean[0][n] != clean[i][n])
                break;
        }
        *parent = end;
    }
    return OK;
}

static int directory_by_name(const void *a, const void *b)
{
    const struct log_run *x = a, *y = b;

    return strcmp(x->name, y->name);
}

/* The directory of a single file. */
static int add_parent(struct walk *w, const char *path)
{
    size_t n = (size_t)(file_base_name(path) - path);
    char *parent = n ? strndup(path, n) : strdup(".");
    int rc = parent ? add_directory(w, parent, NULL) : directory_no_memory(w->e, path);

    free(parent);
    return rc;
}

/* The runs of an archive: the directories of its event files. */
static int list_archive(struct walk *w, const struct log_archive *archive, const char *path)
{
    struct tag_index names = TAG_INDEX_OF(struct log_run);
    struct log_run *run;
    struct error left_out;
    int rc = OK;

    for (size_t i = 0; rc == OK && i < archive->members.count; i++) {
        const char *name = archive->members.entries[i].text, *base = file_base_name(name);
        char member[PATH_MAX];

        if (!(run = tag_index_item(&names, name, base > name ? (size_t)(base - name) - 1 : 0)))
            rc = directory_no_memory(w->e, path);
        else if ((rc = file_join(member, sizeof member, path, name, w->e)) == OK)
            rc = directory_add_file(run, member, w->e);
    }
    run = names.items;
    for (size_t i = 0; i < names.count; i++) {
        char directory[PATH_MAX];

        run[i].place = (size_t)-1;
        if (rc == OK && (rc = file_join(directory, sizeof directory, path, names.entries[i].text, w->e)) == OK)
            rc = directory_add_run(w, &run[i], directory, names.entries[i].text);
        log_run_release(&run[i]);
    }
    tag_index_release(&names);
    error_set(&left_out, ERR_ARG, "%s: %zu links or special files named *tfevents* in it are left out", path,
              archive->left_out);
    if (rc == OK && archive->left_out)
        rc = add_problem(w, &left_out, path);
    if (rc == OK && archive->damage.code != OK && (rc = add_problem(w, &archive->damage, path)) == OK)
        w->to->unreadable = w->to->problem_count;
    return rc;
}

static int list_path(struct walk *w, const char *path, struct error *e)
{
    int standard_input = log_input_is_standard_input(w->in, path), rc = 0;
    const struct log_archive *archive;
    struct log_run run = { .place = (size_t)-1 };
    struct stat st;

    if (!standard_input && stat(path, &st) < 0)
        return error_system(e, "%s: cannot be read", path);
    if (!standard_input && S_ISDIR(st.st_mode)) {
        DIR *d = opendir(path);

        if (!d)
            return error_system(e, "%s: cannot be read", path);
        closedir(d);
        return list_tree(w, path);
    }
    if ((standard_input || S_ISREG(st.st_mode)) && (rc = log_input_archive(w->in, path, &archive, e)) < 0)
        return rc;
    if (rc == 1) {
        rc = list_archive(w, archive, path);
    } else {
        rc = directory_add_file(&run, path, e);
        if (rc == OK)
            rc = directory_add_run(w, &run, path, "");
        log_run_release(&run);
    }
    return rc == OK && !standard_input ? add_parent(w, path) : rc;
}

static int list_paths(struct log_directory *d, struct directory_cache *cache, const char *home, struct log_input *in,
                      char *const *paths, size_t count, int waits, struct error *e)
{
    char(*clean)[PATH_MAX] = malloc((count ? count : 1) * sizeof *clean);
    struct error own = { 0 };
    struct walk w = { .to = d, .cache = cache, .home = home, .in = in, .label = "", .e = &own };
    size_t parent = 0, kept = 0;
    int rc = OK;

    memset(d, 0, sizeof *d);
    if (!clean)
        return error_memory(e, NULL, "for %zu paths", count);
    if (count > 1)
        common_parent(paths, count, clean, &parent);
    for (size_t i = 0; i < count && rc == OK; i++) {
        if (count > 1) {
            w.label = clean[i] + parent;
            w.label += strspn(w.label, "/");
        }
        rc = list_path(&w, paths[i], &own);
        if (waits && rc == ERR_IO && own.system == ENOENT) {
            d->missing = d->missing ? d->missing : paths[i];
            rc = OK;
        }
    }
    free(clean);
    if (rc != OK) {
        if (e)
            *e = own;
        return rc;
    }
    if (d->count)
        qsort(d->runs, d->count, sizeof *d->runs, directory_by_name);
    for (size_t i = 0; i < d->count; i++) /* a path given twice, or within another, is still one run */
        if (kept && !strcmp(d->runs[kept - 1].name, d->runs[i].name))
            log_run_release(&d->runs[i]);
        else
            d->runs[kept++] = d->runs[i];
    d->count = kept;
    return OK;
}

int log_directory_list(struct log_directory *d, struct log_input *in, char *const *paths, size_t count, struct error *e)
{
    return list_paths(d, NULL, NULL, in, paths, count, 0, e);
}

int log_directory_list_there(struct log_directory *d, struct log_input *in, char *const *paths, size_t count,
                             struct error *e)
{
    return list_paths(d, NULL, NULL, in, paths, count, 1, e);
}

int log_directory_list_cached(struct log_directory *d, struct directory_cache *cache, const char *home,
                              struct log_input *in, char *const *paths, size_t count, struct error *e)
{
    return list_paths(d, cache, home, in, paths, count, 1, e);
}

void log_directory_release(struct log_directory *d)
{
    for (size_t i = 0; i < d->count; i++)
        log_run_release(&d->runs[i]);
    for (size_t i = 0; i < d->problem_count; i++)
        free(d->problems[i]);
    for (size_t i = 0; i < d->outside_count; i++)
        free(d->outside[i]);
    for (size_t i = 0; i < d->directory_count; i++)
        free(d->directories[i].path);
    free(d->runs);
    free(d->problems);
    free(d->outside);
    free(d->directories);
    memset(d, 0, sizeof *d);
}

int log_directory_holds_files(const char *path)
{
    DIR *d = opendir(path);
    int found = 0;

    for (struct dirent *entry; d && !found && (entry = readdir(d));)
        found = strstr(entry->d_name, "tfevents") != NULL;
    if (d)
        closedir(d);
    return found;
}
