#include "evaluator/best_directory.h"

#include "base/buffer.h"
#include "base/file.h"
#include "checkpoint/state_file.h"
#include "checkpoint/tensor_bundle.h"
#include "evaluator/file_tree.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMPORARY ".tmp-"
#define STATE "checkpoint"
enum { STATE_MAX = 1 << 16, PREFIX_MAX = 32, FILES_MAX = 1 << 16 };

struct best_directory {
    char *path;
};

struct names { /* of the files of one checkpoint, in the order in which they come into the directory: the index last */
    char **items;
    size_t count;
};

static void names_release(struct names *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->items[i]);
    free(n->items);
    *n = (struct names){ NULL, 0 };
}

static int names_add(struct names *n, const char *name, struct error *e)
{
    char **grown = n->count < FILES_MAX ? realloc(n->items, (n->count + 1) * sizeof *grown) : NULL;

    if (grown)
        n->items = grown;
    if (!grown || !(n->items[n->count] = strdup(name)))
        return error_set(e, ERR_NOMEM, "%s: no memory for its files, or too many of them", name);
    n->count++;
    return OK;
}

/* ---- which files ------------------------------------------------------------------------------------------------- */

static int there(const char *directory, const char *name)
{
    char path[PATH_MAX];
    struct stat st;

    return file_join(path, sizeof path, directory, name, NULL) == OK && lstat(path, &st) == 0;
}

/* 1: file is BEGIN + NAME + ".data-..." */
static int is_data(const char *file, const char *begin, const char *name)
{
    const size_t skip = strlen(begin), n = strlen(name);

    return !strncmp(file, begin, skip) && !strncmp(file + skip, name, n) && !strncmp(file + skip + n, ".data-", 6);
}

/* The data files of a bundle. A look at the usual name first: a directory may hold 10,000 others. */
static int add_data(struct names *n, const char *directory, const char *begin, const char *name, struct error *e)
{
    char usual[NAME_MAX + 1];
    struct dirent *entry;
    DIR *d;
    int rc = OK;

    if (snprintf(usual, sizeof usual, "%s%s.data-00000-of-00001", begin, name) < (int)sizeof usual &&
        there(directory, usual))
        return names_add(n, usual + strlen(begin), e);
    if (!(d = opendir(directory)))
        return error_system(e, "%s: cannot list", directory);
    while (rc == OK && (entry = readdir(d)))
        if (is_data(entry->d_name, begin, name))
            rc = names_add(n, entry->d_name + strlen(begin), e);
    closedir(d);
    return rc;
}

/* The files of a checkpoint that stand in `directory` with `begin` before their names; *out are the names without. */
static int find_files(const char *directory, const char *begin, const char *name, struct names *out, struct error *e)
{
    char whole[NAME_MAX + 1];
    int rc = OK;

    *out = (struct names){ NULL, 0 };
    if (snprintf(whole, sizeof whole, "%s%s.index", begin, name) >= (int)sizeof whole)
        return error_set(e, ERR_ARG, "%s: the name is too long", name);
    if (there(directory, whole)) {
        if ((rc = add_data(out, directory, begin, name, e)) == OK)
            rc = names_add(out, whole + strlen(begin), e);
    } else {
        whole[strlen(begin) + strlen(name)] = '\0';
        if (there(directory, whole))
            rc = names_add(out, whole + strlen(begin), e);
    }
    if (rc == OK && !out->count) {
        rc = error_set(e, ERR_IO, "%s/%s%s: is gone", directory, begin, name);
        if (e)
            e->system = ENOENT;
    }
    if (rc != OK)
        names_release(out);
    return rc;
}

static void temporary_prefix(char out[PREFIX_MAX], uint64_t digest)
{
    snprintf(out, PREFIX_MAX, TEMPORARY "%016" PRIx64 "-", digest);
}

static int join_prefixed(char *out, size_t size, const char *directory, const char *begin, const char *name,
                         struct error *e)
{
    const int n = snprintf(out, size, "%s/%s%s", directory, begin, name);

    return n >= 0 && (size_t)n < size ? OK : error_set(e, ERR_ARG, "%s/%s: path too long", directory, name);
}

/* ---- the state file ---------------------------------------------------------------------------------------------- */

/* 1: the state file names this checkpoint. */
static int state_names(const struct best_directory *b, const char *name)
{
    struct buffer text = BUFFER_EMPTY;
    struct state_file state;
    char path[PATH_MAX];
    int same = 0;

    if (file_join(path, sizeof path, b->path, STATE, NULL) == OK && file_read(path, STATE_MAX, &text, NULL) == OK &&
        state_file_parse(buffer_text(&text), text.length, &state, NULL) == OK) {
        same = state.newest && !strcmp(file_base_name(state.newest), name);
        state_file_release(&state);
    }
    buffer_release(&text);
    return same;
}

static int write_state(const struct best_directory *b, const char *name, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    char path[PATH_MAX], *copy = strdup(name);
    struct state_file state = { .newest = copy, .paths = &copy, .count = 1 };
    int rc = file_join(path, sizeof path, b->path, STATE, e);

    if (rc == OK) {
        state_file_encode(&state, &text);
        rc = copy && buffer_ok(&text) ? file_replace(NULL, path, text.data, text.length, e)
                                      : error_set(e, ERR_NOMEM, "%s: no memory to write it", path);
    }
    free(copy);
    buffer_release(&text);
    return rc;
}

static int remove_state(const struct best_directory *b, struct error *e)
{
    char path[PATH_MAX];
    int rc = file_join(path, sizeof path, b->path, STATE, e);

    if (rc == OK && unlink(path) < 0 && errno != ENOENT)
        rc = error_system(e, "%s: cannot be removed", path);
    return rc == OK ? file_sync_parent(NULL, path, e) : rc;
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

static void remove_files(const struct best_directory *b, const char *begin, const struct names *files)
{
    char path[PATH_MAX];

    for (size_t i = 0; i < files->count; i++)
        if (join_prefixed(path, sizeof path, b->path, begin, files->items[i], NULL) == OK)
            file_tree_remove(path, NULL);
}

/* One file or directory under its temporary name, whole at once: what has such a name can be relied on. */
static int take_file(const struct best_directory *b, const char *from, const char *to, enum file_tree_means means,
                     struct error *e)
{
    char part[PATH_MAX];
    int rc;

    if ((rc = file_join(part, sizeof part, b->path, TEMPORARY "part", e)) != OK ||
        (rc = file_tree_remove(part, e)) != OK || (rc = file_tree_remove(to, e)) != OK ||
        (rc = file_tree_make(from, part, means, e)) != OK)
        return rc;
    return rename(part, to) < 0 ? error_system(e, "%s: cannot be renamed to %s", part, to) : OK;
}

/* All files of it under temporary names, the index last, or none. */
static int take(const struct best_directory *b, const struct best_checkpoint *c, enum file_tree_means means,
                struct error *e)
{
    char begin[PREFIX_MAX], from[PATH_MAX], to[PATH_MAX];
    struct names files;
    int rc = find_files(c->directory, "", c->name, &files, e);

    if (rc != OK)
        return rc;
    temporary_prefix(begin, c->digest);
    for (size_t i = 0; rc == OK && i < files.count; i++)
        if ((rc = file_join(from, sizeof from, c->directory, files.items[i], e)) == OK &&
            (rc = join_prefixed(to, sizeof to, b->path, begin, files.items[i], e)) == OK)
            rc = take_file(b, from, to, means, e);
    if (rc != OK)
        remove_files(b, begin, &files);
    names_release(&files);
    return rc;
}

/* A bundle must be whole and of that digest: between two looks the trainer may have written another one. */
static int check(const struct best_directory *b, const char *begin, const struct best_checkpoint *c, struct error *e)
{
    char path[PATH_MAX], index[NAME_MAX + 1];
    struct tensor_bundle *bundle;
    int rc;

    if (snprintf(index, sizeof index, "%s%s.index", begin, c->name) >= (int)sizeof index || !there(b->path, index))
        return OK;
    if ((rc = join_prefixed(path, sizeof path, b->path, begin, c->name, e)) != OK ||
        (rc = tensor_bundle_open(&bundle, path, e)) != OK)
        return rc;
    if (tensor_bundle_digest(bundle) != c->digest)
        rc = error_set(e, ERR_CORRUPT, "%s/%s: was replaced while it was evaluated", c->directory, c->name);
    tensor_bundle_close(bundle);
    return rc;
}

static int is_one_of(const char *name, const struct names *files)
{
    for (size_t i = 0; i < files->count; i++)
        if (!strcmp(files->items[i], name))
            return 1;
    return 0;
}

static int is_temporary(const char *name)
{
    return !strncmp(name, TEMPORARY, strlen(TEMPORARY));
}

/* Removes temporary names where `temporary`, and all others but the state file and `keep` where that is not NULL. */
static void clear(const struct best_directory *b, const struct names *keep, int temporary)
{
    struct dirent *entry;
    char path[PATH_MAX];
    DIR *d = opendir(b->path);

    while (d && (entry = readdir(d))) {
        const char *name = entry->d_name;
        const int old = keep && strcmp(name, STATE) && !is_temporary(name) && !is_one_of(name, keep);

        if (strcmp(name, ".") && strcmp(name, "..") && (old || (temporary && is_temporary(name))) &&
            file_join(path, sizeof path, b->path, name, NULL) == OK)
            file_tree_remove(path, NULL);
    }
    if (d)
        closedir(d);
}

/* Gives them their own names. The temporary ones stay until `checkpoint` is written, so that after a crash in between
 * it can be done again; but on file systems that know no links they are renamed. */
static int move_in(const struct best_directory *b, const char *begin, const struct names *files, struct error *e)
{
    char from[PATH_MAX], to[PATH_MAX];
    int rc = OK;

    for (size_t i = 0; rc == OK && i < files->count; i++) {
        if ((rc = join_prefixed(from, sizeof from, b->path, begin, files->items[i], e)) != OK ||
            (rc = join_prefixed(to, sizeof to, b->path, "", files->items[i], e)) != OK ||
            (rc = file_tree_remove(to, e)) != OK)
            return rc;
        if (file_tree_make(from, to, FILE_TREE_LINK, NULL) != OK && rename(from, to) < 0)
            rc = error_system(e, "%s: cannot be renamed to %s", from, to);
    }
    return rc == OK ? file_sync_parent(NULL, to, e) : rc;
}

/* From the temporary names, which are whole, to the best. */
static int install(const struct best_directory *b, const struct best_checkpoint *c, struct error *e)
{
    char begin[PREFIX_MAX];
    struct names files;
    int rc;

    temporary_prefix(begin, c->digest);
    if ((rc = check(b, begin, c, e)) != OK || (rc = find_files(b->path, begin, c->name, &files, e)) != OK)
        return rc;
    /* Files of the same name are about to be replaced one by one: nobody may go by `checkpoint` meanwhile. */
    if (state_names(b, c->name))
        rc = remove_state(b, e);
    if (rc == OK && (rc = move_in(b, begin, &files, e)) == OK && (rc = write_state(b, c->name, e)) == OK) {
        remove_files(b, begin, &files);
        clear(b, &files, 0);
    }
    names_release(&files);
    return rc;
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

int best_directory_open(struct best_directory **out, const char *directory, struct error *e)
{
    struct best_directory *b = calloc(1, sizeof *b);
    int rc;

    *out = NULL;
    if (!b || !(b->path = strdup(directory))) {
        free(b);
        return error_set(e, ERR_NOMEM, "%s: no memory for it", directory);
    }
    if ((rc = file_make_directories(directory, e)) != OK) {
        best_directory_close(b);
        return rc;
    }
    *out = b;
    return OK;
}

void best_directory_close(struct best_directory *b)
{
    if (!b)
        return;
    free(b->path);
    free(b);
}

void best_directory_reserve(struct best_directory *b, const struct best_checkpoint *c)
{
    take(b, c, FILE_TREE_LINK, NULL);
}

void best_directory_drop(struct best_directory *b, const struct best_checkpoint *c)
{
    char begin[PREFIX_MAX];
    struct names files;

    temporary_prefix(begin, c->digest);
    if (find_files(b->path, begin, c->name, &files, NULL) != OK)
        return;
    remove_files(b, begin, &files);
    names_release(&files);
}

int best_directory_promote(struct best_directory *b, const struct best_checkpoint *c, struct error *e)
{
    char begin[PREFIX_MAX];
    struct names files;
    int rc = OK;

    temporary_prefix(begin, c->digest);
    if (find_files(b->path, begin, c->name, &files, NULL) == OK)
        names_release(&files);
    else
        rc = take(b, c, FILE_TREE_LINK_OR_COPY, e);
    if (rc == OK)
        rc = install(b, c, e);
    if (rc != OK)
        best_directory_drop(b, c);
    return rc;
}

/* 1: the state file names it, its files are here, and they are those of the digest. */
static int holds(const struct best_directory *b, const struct best_checkpoint *c)
{
    struct names files;

    if (!state_names(b, c->name) || find_files(b->path, "", c->name, &files, NULL) != OK)
        return 0;
    names_release(&files);
    return check(b, "", c, NULL) == OK;
}

int best_directory_recover(struct best_directory *b, const struct best_checkpoint *best, struct error *e)
{
    const int rc = best && !holds(b, best) ? best_directory_promote(b, best, e) : OK;
    struct names files = { NULL, 0 };

    if (best && rc == OK)
        find_files(b->path, "", best->name, &files, NULL);
    clear(b, files.count ? &files : NULL, 1); /* without: leftovers only, and what `checkpoint` names stays */
    names_release(&files);
    return rc;
}
