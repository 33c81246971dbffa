#include "eventlog/read/log_directory.h"

#include "base/buffer.h"
#include "base/file.h"
#include "eventlog/format/log_name.h"
#include "eventlog/format/tag_index.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* the directories from the root of the walk down to here, to cut loops */
struct ancestor {
    const char *path;
    const struct ancestor *above;
};

struct walk {
    struct log_directory *to;
    struct directory_cache *cache; /* NULL: none */
    struct log_input *in;
    const char *label; /* of the walk's root, "" or a path */
    struct error *e;
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

static int problem(struct walk *w, const char *path)
{
    struct error e;

    error_system(&e, "%s: cannot be read", path);
    return add_text(&w->to->problems, &w->to->problem_count, e.message, path, w->e);
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

/* Moves run into the list. relative: its path below the root of the walk, "" for the root. */
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

/* 1 if the directory is the same as one above it: then a link has led back. */
static int is_above(const struct stat *st, const struct ancestor *above)
{
    struct stat other;

    for (const struct ancestor *a = above; a; a = a->above)
        if (stat(a->path, &other) == 0 && other.st_dev == st->st_dev && other.st_ino == st->st_ino)
            return 1;
    return 0;
}

/* What the entry is if links are followed; 0: nothing, as it leads nowhere, in a circle, or is gone since. */
static char kind_of(char kind, const char *path, const struct ancestor *here)
{
    struct stat st;

    if (kind != DIRECTORY_UNCLEAR)
        return kind;
    if (stat(path, &st) < 0)
        return 0;
    return S_ISREG(st.st_mode) ? DIRECTORY_FILE : S_ISDIR(st.st_mode) && !is_above(&st, here) ? DIRECTORY_BELOW : 0;
}

/* The next of the entries, from *at on: its kind and *name; 0: there are no more. */
static char next_entry(const struct directory_entries *entries, size_t *at, const char **name)
{
    if (*at >= entries->bytes.length)
        return 0;
    *name = entries->bytes.data + *at + 1;
    *at += strlen(*name) + 2;
    return (*name)[-1];
}

static int walk_entries(struct walk *w, const char *path, const char *relative, const struct ancestor *above,
                        const struct directory_entries *entries, int is_linked);

static int walk_directory(struct walk *w, const char *path, const char *relative, const struct ancestor *above,
                          int is_linked)
{
    struct directory_entries own = { .bytes = BUFFER_EMPTY }, *entries = &own;
    int rc = w->cache ? directory_cache_read(w->cache, path, &entries) : directory_read(path, &own);

    if (rc == ERR_IO)
        rc = above && errno == ENOENT ? OK : problem(w, path); /* OK: removed since its parent was read */
    else if (rc != OK)
        rc = directory_no_memory(w->e, path);
    else if ((rc = add_directory(w, path, w->cache ? &entries->mark : NULL)) == OK)
        rc = walk_entries(w, path, relative, above, entries, is_linked);
    buffer_release(&own.bytes);
    return rc;
}

/* The files of a directory, as a run. */
static int add_files(struct walk *w, const char *path, const char *relative, const struct ancestor *here,
                     const struct directory_entries *entries, int is_linked)
{
    struct log_run run = { .place = w->to->directory_count - 1, .is_linked = is_linked };
    const char *name;
    size_t at = 0;
    int rc = OK;

    for (char kind; rc == OK && (kind = next_entry(entries, &at, &name));) {
        char child[PATH_MAX];

        if (kind == DIRECTORY_BELOW || !strstr(name, "tfevents") ||
            file_join(child, sizeof child, path, name, NULL) != OK || kind_of(kind, child, here) != DIRECTORY_FILE)
            continue;
        run.is_linked |= kind == DIRECTORY_UNCLEAR;
        rc = directory_add_file(&run, child, w->e);
    }
    if (rc == OK && run.file_count)
        rc = directory_add_run(w, &run, path, relative);
    log_run_release(&run);
    return rc;
}

static int walk_entries(struct walk *w, const char *path, const char *relative, const struct ancestor *above,
                        const struct directory_entries *entries, int is_linked)
{
    const struct ancestor here = { path, above };
    int rc = add_files(w, path, relative, &here, entries, is_linked);
    const char *entry;
    size_t at = 0;

    for (char kind; rc == OK && (kind = next_entry(entries, &at, &entry));) {
        char child[PATH_MAX], name[PATH_MAX];

        if (kind == DIRECTORY_FILE || file_join(child, sizeof child, path, entry, w->e) != OK ||
            kind_of(kind, child, &here) != DIRECTORY_BELOW)
            continue;
        if (*relative)
            file_join(name, sizeof name, relative, entry, w->e);
        else
            strcpy(name, entry);
        rc = walk_directory(w, child, name, &here, is_linked || kind == DIRECTORY_UNCLEAR);
    }
    return rc;
}

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

/* The runs of an archive: the directories of its event files. Files of a run need not be adjacent in the order of
 * names, so runs are found by an index. */
static int list_archive(struct walk *w, const struct log_archive *archive, const char *path)
{
    struct tag_index names = TAG_INDEX_OF(struct log_run);
    struct log_run *run;
    int rc = OK;

    for (size_t i = 0; rc == OK && i < archive->count; i++) {
        const char *name = archive->entries[i].name, *base = file_base_name(name);
        char member[PATH_MAX];

        if (!strstr(base, "tfevents"))
            continue;
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
        return walk_directory(w, path, "", NULL, 0);
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

static int list_paths(struct log_directory *d, struct directory_cache *cache, struct log_input *in, char *const *paths,
                      size_t count, int waits, struct error *e)
{
    char(*clean)[PATH_MAX] = malloc((count ? count : 1) * sizeof *clean);
    struct error own = { 0 };
    struct walk w = { d, cache, in, "", &own };
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
    return list_paths(d, NULL, in, paths, count, 0, e);
}

int log_directory_list_there(struct log_directory *d, struct log_input *in, char *const *paths, size_t count,
                             struct error *e)
{
    return list_paths(d, NULL, in, paths, count, 1, e);
}

int log_directory_list_cached(struct log_directory *d, struct directory_cache *cache, struct log_input *in,
                              char *const *paths, size_t count, struct error *e)
{
    return list_paths(d, cache, in, paths, count, 1, e);
}

void log_directory_release(struct log_directory *d)
{
    for (size_t i = 0; i < d->count; i++)
        log_run_release(&d->runs[i]);
    for (size_t i = 0; i < d->problem_count; i++)
        free(d->problems[i]);
    for (size_t i = 0; i < d->directory_count; i++)
        free(d->directories[i].path);
    free(d->runs);
    free(d->problems);
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
