#include "evaluator/record/evaluation_best.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "checkpoint/directory/state_file.h"
#include "checkpoint/directory/training_state.h"
#include "checkpoint/tensor_bundle.h"
#include "evaluator/files/content_digest.h"
#include "evaluator/files/file_tree.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- best list --------------------------------------------------------------------------------------------------- */

int best_list_init(struct best_list *l, size_t limit, int minimum, int by_step, struct error *e)
{
    *l = (struct best_list){ .limit = limit, .minimum = minimum, .by_step = by_step };
    if (!(l->items = calloc(limit + 1, sizeof *l->items)))
        return error_memory(e, NULL, "for the %zu best checkpoints", limit);
    return OK;
}

void best_list_release(struct best_list *l)
{
    free(l->items);
    *l = (struct best_list){ .limit = 0 };
}

const struct best_entry *best_list_at(const struct best_list *l, size_t i)
{
    return i < l->count ? &l->items[i] : NULL;
}

/* 1: both are the same checkpoint. */
static int best_list_same(const struct best_list *l, const struct checkpoint_identity *a,
                          const struct checkpoint_identity *b)
{
    return !strcmp(a->name, b->name) && (!l->by_step || a->step == b->step);
}

static int better(const struct best_list *l, double a, double b)
{
    return l->minimum ? a < b : a > b;
}

void best_list_add(struct best_list *l, const struct best_entry *entry)
{
    size_t i = 0, old = 0;

    if (isnan(entry->value))
        return;
    while (old < l->count && !best_list_same(l, &l->items[old].checkpoint, &entry->checkpoint))
        old++;
    if (old < l->count && !better(l, entry->value, l->items[old].value))
        return;
    if (old < l->count)
        memmove(l->items + old, l->items + old + 1, (--l->count - old) * sizeof *l->items);
    while (i < l->count && !better(l, entry->value, l->items[i].value))
        i++;
    memmove(l->items + i + 1, l->items + i, (l->count - i) * sizeof *l->items);
    l->items[i] = *entry;
    if (l->count < l->limit)
        l->count++;
}

/* ---- best manifest ----------------------------------------------------------------------------------------------- */

enum { FILES_MAX = 1 << 16 };

static const char head[] = "# files that evaluator --keep-best made here and may delete\n";

void best_names_release(struct best_names *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->items[i]);
    free(n->items);
    *n = (struct best_names){ NULL, 0 };
}

/* Copies the name. ERR_NOMEM. */
static int best_names_add(struct best_names *n, const char *name, struct error *e)
{
    char **grown = n->count < FILES_MAX ? realloc(n->items, (n->count + 1) * sizeof *grown) : NULL;

    if (grown)
        n->items = grown;
    if (!grown || !(n->items[n->count] = strdup(name)))
        return error_memory(e, name, "for its files, or too many of them");
    n->count++;
    return OK;
}

/* n->count: not found. */
static size_t best_names_find(const struct best_names *n, const char *name)
{
    size_t i = 0;

    while (i < n->count && strcmp(n->items[i], name) != 0)
        i++;
    return i;
}

static void best_names_remove(struct best_names *n, size_t i)
{
    free(n->items[i]);
    memmove(n->items + i, n->items + i + 1, (--n->count - i) * sizeof *n->items);
}

/* 1: the name fits on a line and has no directory part. */
static int best_manifest_can_hold(const char *name)
{
    return *name && strlen(name) <= NAME_MAX && !strpbrk(name, "/\n") && strcmp(name, ".") && strcmp(name, "..");
}

int best_manifest_parse(const char *text, size_t n, struct best_names *out, struct error *e)
{
    const char *end = text + n, *newline;
    int rc = OK;

    *out = (struct best_names){ NULL, 0 };
    if (n < sizeof head - 1 || memcmp(text, head, sizeof head - 1) != 0)
        return error_set(e, ERR_CORRUPT, "not a list of the evaluator's own files");
    for (text += sizeof head - 1; rc == OK && text < end; text = newline + 1) {
        char name[NAME_MAX + 1] = "";

        if (!(newline = memchr(text, '\n', (size_t)(end - text))))
            newline = end; /* truncated: a name without its newline may be incomplete */
        else if (newline - text <= NAME_MAX && !memchr(text, '\0', (size_t)(newline - text)))
            memcpy(name, text, (size_t)(newline - text));
        rc = best_manifest_can_hold(name) ? best_names_add(out, name, e)
                                          : error_set(e, ERR_CORRUPT, "a line that is not the name of a file");
    }
    if (rc != OK)
        best_names_release(out);
    return rc;
}

void best_manifest_format(const struct best_names *n, struct buffer *out)
{
    buffer_append_text(out, head);
    for (size_t i = 0; i < n->count; i++) {
        buffer_append_text(out, n->items[i]);
        buffer_append_text(out, "\n");
    }
}

/* ---- best directory ---------------------------------------------------------------------------------------------- */

#define TEMPORARY ".tmp-"
#define PART TEMPORARY "0000000000000000-" /* never a checkpoint's file, which has a name after the prefix */
#define STATE "checkpoint"
enum { STATE_MAX = 1 << 16, MANIFEST_MAX = 1 << 25, PREFIX_MAX = 32 };

struct best_directory {
    char *path;
    struct best_names own; /* the manifest: all that may be deleted here, besides temporary names */
};

/* The name of a checkpoint, or of one of its files, in this directory. */
static const char *kept_name(const struct best_checkpoint *c)
{
    return c->kept ? c->kept : c->checkpoint.name;
}

static int kept_file(const struct best_checkpoint *c, const char *file, char out[NAME_MAX + 1], struct error *e)
{
    const int n = snprintf(out, NAME_MAX + 1, "%s%s", kept_name(c), file + strlen(c->checkpoint.name));

    if (n <= 0 || n > NAME_MAX)
        return error_set(e, ERR_ARG, "%s: the name is too long", kept_name(c));
    return best_manifest_can_hold(out) ? OK : error_set(e, ERR_ARG, "a name with a line break cannot be kept");
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

/* Finds the data files of a bundle. Tries the usual name first: a directory may hold 10,000 other files. */
static int add_data(struct best_names *n, const char *directory, const char *begin, const char *name, struct error *e)
{
    char usual[NAME_MAX + 1];
    struct dirent *entry;
    DIR *d;
    int rc = OK;

    if (snprintf(usual, sizeof usual, "%s%s.data-00000-of-00001", begin, name) < (int)sizeof usual &&
        there(directory, usual))
        return best_names_add(n, usual + strlen(begin), e);
    if (!(d = opendir(directory)))
        return error_system(e, "%s: cannot list", directory);
    while (rc == OK && (entry = readdir(d)))
        if (is_data(entry->d_name, begin, name))
            rc = best_names_add(n, entry->d_name + strlen(begin), e);
    closedir(d);
    return rc;
}

/* Finds the files of a checkpoint in `directory` whose names begin with `begin`; *out has the names without it. */
static int find_files(const char *directory, const char *begin, const char *name, struct best_names *out,
                      struct error *e)
{
    char whole[NAME_MAX + 1];
    int rc = OK;

    *out = (struct best_names){ NULL, 0 };
    if (snprintf(whole, sizeof whole, "%s%s.index", begin, name) >= (int)sizeof whole)
        return error_set(e, ERR_ARG, "%s: the name is too long", name);
    if (there(directory, whole)) {
        if ((rc = add_data(out, directory, begin, name, e)) == OK)
            rc = best_names_add(out, whole + strlen(begin), e);
    } else {
        whole[strlen(begin) + strlen(name)] = '\0';
        if (there(directory, whole))
            rc = best_names_add(out, whole + strlen(begin), e);
    }
    if (rc == OK && !out->count) {
        rc = error_set(e, ERR_IO, "%s/%s%s: is gone", directory, begin, name);
        if (e)
            e->system = ENOENT;
    }
    if (rc != OK)
        best_names_release(out);
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

/* The checkpoints that it names, best last; none if it is missing or invalid. */
static int read_state(const struct best_directory *b, struct best_names *out, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    struct state_file state;
    char path[PATH_MAX];
    int rc = OK;

    *out = (struct best_names){ NULL, 0 };
    if (file_join(path, sizeof path, b->path, STATE, NULL) == OK && file_read(path, STATE_MAX, &text, NULL) == OK &&
        state_file_parse(buffer_text(&text), text.length, &state, NULL) == OK) {
        const char *newest = state.newest ? file_base_name(state.newest) : NULL;

        for (size_t i = 0; newest && rc == OK && i < state.count; i++)
            if (strcmp(file_base_name(state.paths[i]), newest) != 0)
                rc = best_names_add(out, file_base_name(state.paths[i]), e);
        if (newest && rc == OK)
            rc = best_names_add(out, newest, e);
        state_file_release(&state);
    }
    buffer_release(&text);
    return rc;
}

/* Makes it name these; removes it if there are none. */
static int write_state(const struct best_directory *b, const struct best_names *n, struct error *e)
{
    struct state_file state = { .paths = n->items, .count = n->count };
    struct buffer text = BUFFER_EMPTY;
    char path[PATH_MAX];
    int rc = file_join(path, sizeof path, b->path, STATE, e);

    if (rc != OK)
        return rc;
    if (!n->count) {
        if (unlink(path) < 0 && errno != ENOENT)
            return error_system(e, "%s: cannot be removed", path);
        return file_sync_parent(NULL, path, e);
    }
    state.newest = n->items[n->count - 1];
    state_file_encode(&state, &text);
    rc = buffer_ok(&text) ? file_replace(NULL, path, text.data, text.length, e) : error_memory(e, path, "to write it");
    buffer_release(&text);
    return rc;
}

/* ---- ownership --------------------------------------------------------------------------------------------------- */

/* A temporary name of this module, or of file_replace() called by it. */
static int is_temporary(const char *name)
{
    const size_t n = strlen(TEMPORARY);

    return file_replace_leaves(name, STATE) || file_replace_leaves(name, BEST_MANIFEST_FILE) ||
           (!strncmp(name, TEMPORARY, n) && strspn(name + n, "0123456789abcdef") == 16 && name[n + 16] == '-');
}

static int is_marked(const struct best_directory *b, const char *name)
{
    return best_names_find(&b->own, name) < b->own.count;
}

static int not_ours(const struct best_directory *b, const char *name, struct error *e)
{
    return error_set(e, ERR_ARG, "%s/%s: was not made by --keep-best; move it elsewhere", b->path, name);
}

static int write_manifest(const struct best_directory *b, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    char path[PATH_MAX];
    int rc = file_join(path, sizeof path, b->path, BEST_MANIFEST_FILE, e);

    best_manifest_format(&b->own, &text);
    if (rc == OK)
        rc = buffer_ok(&text) ? file_replace(NULL, path, text.data, text.length, e)
                              : error_memory(e, path, "to write it");
    buffer_release(&text);
    return rc;
}

static int read_manifest(struct best_directory *b, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    struct error why = { 0 };
    char path[PATH_MAX];
    int rc = file_join(path, sizeof path, b->path, BEST_MANIFEST_FILE, e);

    if (rc != OK || !there(b->path, BEST_MANIFEST_FILE))
        return rc;
    if ((rc = file_read_plain(path, MANIFEST_MAX, &text, e)) == OK &&
        (rc = best_manifest_parse(buffer_text(&text), text.length, &b->own, &why)) != OK)
        error_set(e, rc, "%s: %s; move it elsewhere", path, why.message);
    buffer_release(&text);
    return rc;
}

/* ERR_ARG: the directory holds something that is not the evaluator's; e names the first in alphabetical order. */
static int refuse_others(const struct best_directory *b, struct error *e)
{
    char first[NAME_MAX + 1] = "";
    struct dirent *entry;
    DIR *d = opendir(b->path);

    if (!d)
        return error_system(e, "%s: cannot list", b->path);
    while ((entry = readdir(d))) {
        const char *name = entry->d_name;

        /* NFS names a file that was deleted while open .nfs...; it disappears by itself. */
        if (strcmp(name, ".") && strcmp(name, "..") && strcmp(name, BEST_MANIFEST_FILE) && !is_temporary(name) &&
            strncmp(name, ".nfs", 4) && !is_marked(b, name) && (!*first || strcmp(name, first) < 0))
            snprintf(first, sizeof first, "%s", name);
    }
    closedir(d);
    return *first ? not_ours(b, first, e) : OK;
}

/* 1: it was added; ERR_ARG: there is such a file of somebody else's. */
static int mark_one(struct best_directory *b, const char *name, struct error *e)
{
    int rc;

    if (is_marked(b, name))
        return 0;
    if (there(b->path, name))
        return not_ours(b, name, e);
    return (rc = best_names_add(&b->own, name, e)) == OK ? 1 : rc;
}

/* Records the files of a checkpoint as the evaluator's own, before they are made. */
static int mark(struct best_directory *b, const struct best_checkpoint *c, const struct best_names *files,
                struct error *e)
{
    const size_t before = b->own.count;
    char name[NAME_MAX + 1];
    int rc = mark_one(b, STATE, e);

    for (size_t i = 0; rc >= 0 && i < files->count; i++)
        if ((rc = kept_file(c, files->items[i], name, e)) == OK)
            rc = mark_one(b, name, e);
    rc = rc < 0 ? rc : b->own.count > before ? write_manifest(b, e) : OK;
    while (rc != OK && b->own.count > before)
        best_names_remove(&b->own, b->own.count - 1);
    return rc;
}

/* A file that no longer exists is not the evaluator's if it comes back. If the shorter list cannot be written, the
 * longer one stays. */
static void unmark(struct best_directory *b)
{
    const size_t before = b->own.count;

    for (size_t i = b->own.count; i-- > 0;)
        if (!there(b->path, b->own.items[i]))
            best_names_remove(&b->own, i);
    if (b->own.count < before)
        write_manifest(b, NULL);
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

static void remove_files(const struct best_directory *b, const char *begin, const struct best_names *files)
{
    char path[PATH_MAX];

    for (size_t i = 0; i < files->count; i++)
        if (join_prefixed(path, sizeof path, b->path, begin, files->items[i], NULL) == OK)
            file_tree_remove(path, NULL);
}

/* Makes one file or directory under its temporary name, atomically: what has such a name is complete. */
static int take_file(const struct best_directory *b, const char *from, const char *to, enum file_tree_means means,
                     struct error *e)
{
    char part[PATH_MAX];
    int rc;

    if ((rc = file_join(part, sizeof part, b->path, PART, e)) != OK || (rc = file_tree_remove(part, e)) != OK ||
        (rc = file_tree_remove(to, e)) != OK || (rc = file_tree_make(from, part, means, e)) != OK)
        return rc;
    return rename(part, to) < 0 ? error_system(e, "%s: cannot be renamed to %s", part, to) : OK;
}

/* The file here must be the one that was found: the trainer may have written another between two looks. begin: before
 * its name here. Unless it is a bundle, only a copy is checked: it was made after the evaluation. */
static int best_directory_check(const struct best_directory *b, const char *begin, const char *name,
                                const struct best_checkpoint *c, int copied, struct error *e)
{
    char path[PATH_MAX], index[NAME_MAX + 1];
    struct tensor_bundle *bundle;
    struct content content;
    uint64_t digest;
    int rc;

    if (snprintf(index, sizeof index, "%s%s.index", begin, name) >= (int)sizeof index)
        return error_set(e, ERR_ARG, "%s: the name is too long", name);
    if ((rc = join_prefixed(path, sizeof path, b->path, begin, name, e)) != OK)
        return rc;
    if (there(b->path, index)) {
        if ((rc = tensor_bundle_open(&bundle, path, e)) != OK)
            return rc;
        digest = tensor_bundle_digest(bundle);
        tensor_bundle_close(bundle);
    } else if (copied) {
        if ((rc = content_read(path, &content, e)) != OK)
            return rc;
        digest = content_digest(&content);
        content_release(&content);
    } else {
        return OK;
    }
    return digest == c->checkpoint.digest || (c->checkpoint.digest_after && digest == c->checkpoint.digest_after)
               ? OK
               : error_set(e, ERR_CORRUPT, "%s/%s: was replaced while it was evaluated", c->directory,
                           c->checkpoint.name);
}

/* Makes all its files under temporary names, the index last, or none. */
static int take(const struct best_directory *b, const struct best_checkpoint *c, enum file_tree_means means,
                struct error *e)
{
    char begin[PREFIX_MAX], from[PATH_MAX], to[PATH_MAX];
    struct best_names files;
    int rc = find_files(c->directory, "", c->checkpoint.name, &files, e);

    if (rc != OK)
        return rc;
    temporary_prefix(begin, c->checkpoint.digest);
    for (size_t i = 0; rc == OK && i < files.count; i++)
        if ((rc = file_join(from, sizeof from, c->directory, files.items[i], e)) == OK &&
            (rc = join_prefixed(to, sizeof to, b->path, begin, files.items[i], e)) == OK)
            rc = take_file(b, from, to, means, e);
    if (rc == OK && means != FILE_TREE_LINK)
        rc = best_directory_check(b, begin, c->checkpoint.name, c, 1, e);
    if (rc != OK)
        remove_files(b, begin, &files);
    best_names_release(&files);
    return rc;
}

/* Removes files of the evaluator's: temporary names if `temporary`, and all others except the state file and `keep`, if
 * that is not NULL. */
static void clear(const struct best_directory *b, const struct best_names *keep, int temporary)
{
    struct dirent *entry;
    char path[PATH_MAX];
    DIR *d = opendir(b->path);

    while (d && (entry = readdir(d))) {
        const char *name = entry->d_name;
        const int old = keep && strcmp(name, STATE) && is_marked(b, name) && best_names_find(keep, name) == keep->count;

        if ((old || (temporary && is_temporary(name))) && file_join(path, sizeof path, b->path, name, NULL) == OK)
            file_tree_remove(path, NULL);
    }
    if (d)
        closedir(d);
}

/* Gives them their own names. Temporary names stay until `checkpoint` is written, so that this can be repeated after a
 * crash in between; on file systems without links they are renamed. */
static int move_in(const struct best_directory *b, const char *begin, const struct best_checkpoint *c,
                   const struct best_names *files, struct error *e)
{
    char from[PATH_MAX], to[PATH_MAX], name[NAME_MAX + 1];
    int rc = OK;

    for (size_t i = 0; rc == OK && i < files->count; i++) {
        if ((rc = kept_file(c, files->items[i], name, e)) != OK ||
            (rc = join_prefixed(from, sizeof from, b->path, begin, files->items[i], e)) != OK ||
            (rc = file_join(to, sizeof to, b->path, name, e)) != OK || (rc = file_tree_remove(to, e)) != OK)
            return rc;
        if (file_tree_make(from, to, FILE_TREE_LINK, NULL) != OK && rename(from, to) < 0)
            rc = error_system(e, "%s: cannot be renamed to %s", from, to);
    }
    return rc == OK ? file_sync_parent(NULL, to, e) : rc;
}

/* Moves the files, whole under their temporary names, to their own. named: what `checkpoint` names. */
static int install(struct best_directory *b, const struct best_checkpoint *c, struct best_names *named, struct error *e)
{
    const size_t same = best_names_find(named, kept_name(c));
    char begin[PREFIX_MAX];
    struct best_names files;
    int rc;

    temporary_prefix(begin, c->checkpoint.digest);
    if ((rc = best_directory_check(b, begin, c->checkpoint.name, c, 0, e)) != OK ||
        (rc = find_files(b->path, begin, c->checkpoint.name, &files, e)) != OK)
        return rc;
    rc = mark(b, c, &files, e);
    /* Files of the same name are about to be replaced one by one: remove it from `checkpoint` first. */
    if (rc == OK && same < named->count) {
        best_names_remove(named, same);
        rc = write_state(b, named, e);
    }
    if (rc == OK)
        rc = move_in(b, begin, c, &files, e);
    best_names_release(&files);
    return rc;
}

static int reserved(const struct best_directory *b, const struct best_checkpoint *c)
{
    char begin[PREFIX_MAX];
    struct best_names files;

    temporary_prefix(begin, c->checkpoint.digest);
    if (find_files(b->path, begin, c->checkpoint.name, &files, NULL) != OK)
        return 0;
    best_names_release(&files);
    return 1;
}

/* Makes the files from the reserved links, or from where it was found. */
static int take_in(struct best_directory *b, const struct best_checkpoint *c, struct best_names *named, struct error *e)
{
    int rc = reserved(b, c) ? OK : take(b, c, c->volatile_name ? FILE_TREE_COPY : FILE_TREE_LINK_OR_COPY, e);

    return rc == OK ? install(b, c, named, e) : rc;
}

/* 1: `checkpoint` names it, its files are here, and a bundle has the right digest. */
static int holds(const struct best_directory *b, const struct best_checkpoint *c, const struct best_names *named)
{
    struct best_names files;

    if (best_names_find(named, kept_name(c)) == named->count ||
        find_files(b->path, "", kept_name(c), &files, NULL) != OK)
        return 0;
    best_names_release(&files);
    return best_directory_check(b, "", kept_name(c), c, 0, NULL) == OK;
}

/* Makes `checkpoint` name those that are here, and removes all others; here[i]: wanted[i] is here. */
static int settle(struct best_directory *b, const struct best_checkpoint *wanted, size_t count, const char *here,
                  struct best_names *named, struct error *e)
{
    struct best_names now = { NULL, 0 }, files = { NULL, 0 }, one;
    int rc = OK, same;

    for (size_t i = count; rc == OK && i-- > 0;)
        if (here[i] && (rc = best_names_add(&now, kept_name(&wanted[i]), e)) == OK &&
            (rc = find_files(b->path, "", kept_name(&wanted[i]), &one, e)) == OK) {
            for (size_t k = 0; rc == OK && k < one.count; k++)
                rc = best_names_add(&files, one.items[k], e);
            best_names_release(&one);
        }
    same = now.count == named->count;
    for (size_t i = 0; same && i < now.count; i++)
        same = !strcmp(now.items[i], named->items[i]);
    if (rc == OK && !same)
        rc = write_state(b, &now, e);
    for (size_t i = 0; rc == OK && i < count; i++)
        if (here[i])
            best_directory_drop(b, &wanted[i]);
    if (rc == OK) {
        clear(b, &files, 0);
        unmark(b);
    }
    best_names_release(&now);
    best_names_release(&files);
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
        return error_memory(e, directory, "for it");
    }
    if ((rc = file_make_directories(directory, e)) != OK || (rc = read_manifest(b, e)) != OK ||
        (rc = refuse_others(b, e)) != OK) {
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
    best_names_release(&b->own);
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
    struct best_names files;

    temporary_prefix(begin, c->checkpoint.digest);
    if (find_files(b->path, begin, c->checkpoint.name, &files, NULL) != OK)
        return;
    remove_files(b, begin, &files);
    best_names_release(&files);
}

int best_directory_promote(struct best_directory *b, const struct best_checkpoint *wanted, size_t count, size_t new,
                           struct error *e)
{
    struct best_names named;
    char *here = calloc(count, 1);
    int rc = here ? read_state(b, &named, e) : error_memory(e, b->path, "for %zu checkpoints", count);

    if (!here)
        return rc;
    for (size_t i = 0; rc == OK && i < count; i++)
        here[i] = i != new &&holds(b, &wanted[i], &named);
    if (rc == OK && (rc = take_in(b, &wanted[new], &named, e)) == OK) {
        here[new] = 1;
        rc = settle(b, wanted, count, here, &named, e);
    }
    if (rc != OK)
        best_directory_drop(b, &wanted[new]);
    best_names_release(&named);
    free(here);
    return rc;
}

int best_directory_recover(struct best_directory *b, const struct best_checkpoint *wanted, size_t count,
                           struct error *e)
{
    struct best_names named;
    char *here = calloc(count + 1, 1);
    int rc = here ? read_state(b, &named, e) : error_memory(e, b->path, "for %zu checkpoints", count);

    if (!here)
        return rc;
    for (size_t i = 0; rc == OK && i < count; i++) {
        const int held = holds(b, &wanted[i], &named);
        const int one = held ? OK : take_in(b, &wanted[i], &named, i ? NULL : e);

        here[i] = one == OK;
        rc = i ? OK : one; /* only the best one must succeed; others that are gone are not kept */
    }
    if (count && rc == OK)
        rc = settle(b, wanted, count, here, &named, e);
    clear(b, NULL, 1); /* removes the unfinished; without a best, keeps what `checkpoint` names */
    best_names_release(&named);
    free(here);
    return rc;
}

/* ---- evaluation best --------------------------------------------------------------------------------------------- */

struct evaluation_best {
    struct evaluation_best_options options;
    struct best_directory *directory; /* NULL: not kept */
    struct best_list list;
    struct best_checkpoint *wanted; /* (keep) to be in the directory, best first */
    char (*names)[NAME_MAX + 1];    /* (keep) their names there */
    int stop_there;                 /* the stop file exists, ours or not */
};

static int open_directory(struct evaluation_best *b, struct error *e)
{
    const struct evaluation_best_options *o = &b->options;
    char path[PATH_MAX];
    int rc = file_join(path, sizeof path, o->eval_directory, "best", e);

    b->wanted = calloc(o->keep, sizeof *b->wanted);
    b->names = calloc(o->keep, sizeof *b->names);
    if (!b->wanted || !b->names)
        return error_memory(e, o->eval_directory, "for the best checkpoints");
    if (rc == OK && (rc = best_list_init(&b->list, o->keep, o->rule.minimum, o->volatile_names, e)) == OK)
        rc = best_directory_open(&b->directory, path, e);
    return rc;
}

int evaluation_best_open(struct evaluation_best **out, const struct evaluation_best_options *options, struct error *e)
{
    struct evaluation_best *b = calloc(1, sizeof *b);
    int rc = OK;

    *out = NULL;
    if (!b)
        return error_memory(e, options->eval_directory, "for the best checkpoint");
    b->options = *options;
    if (options->keep && (rc = open_directory(b, e)) != OK)
        evaluation_best_close(b);
    else
        *out = b;
    return rc;
}

void evaluation_best_close(struct evaluation_best *b)
{
    if (!b)
        return;
    best_directory_close(b->directory);
    best_list_release(&b->list);
    free(b->wanted);
    free(b->names);
    free(b);
}

static struct best_checkpoint found(const struct evaluation_best *b, const struct checkpoint_identity *checkpoint)
{
    return (struct best_checkpoint){ .directory = b->options.checkpoint_directory,
                                     .checkpoint = *checkpoint,
                                     .volatile_name = b->options.volatile_names };
}

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

void evaluation_best_recall(struct evaluation_best *b, const struct ledger_record *r)
{
    struct best_entry entry = { .checkpoint = r->checkpoint };

    if (!b || !b->directory || r->status != LEDGER_DONE)
        return;
    entry.value = evaluation_metrics_value(&r->metrics, b->options.rule.metric);
    best_list_add(&b->list, &entry);
}

/* The best one is the ledger's, which depends on --best-delta; the others are ordered by their values. */
static size_t choose(struct evaluation_best *b, const struct ledger_summary *s)
{
    const struct best_entry *entry;
    size_t count = 0;

    if (!s->has_best)
        return 0;
    b->wanted[count++] = found(b, &s->best);
    for (size_t i = 0; (entry = best_list_at(&b->list, i)) && count < b->options.keep; i++)
        if (!best_list_same(&b->list, &entry->checkpoint, &s->best))
            b->wanted[count++] = found(b, &entry->checkpoint);
    for (size_t i = 0; b->options.volatile_names && b->options.keep > 1 && i < count; i++) {
        const struct checkpoint_identity *c = &b->wanted[i].checkpoint;

        snprintf(b->names[i], sizeof b->names[i], "%lld-%.200s", (long long)c->step, c->name);
        b->wanted[i].kept = b->names[i];
    }
    return count;
}

/* ---- acting ------------------------------------------------------------------------------------------------------ */

/* OK, EVALUATION_BEST_STOP or an error. */
static int lose_patience(struct evaluation_best *b, const struct ledger_summary *s, struct error *e)
{
    struct stop_file stop = {
        .best_value = s->best_value, .best_step = s->best.step, .step = s->highest_step, .written = clock_wall()
    };
    struct stop_file before;
    char delta[64] = "";
    int rc;

    if (!b->options.patience || b->stop_there || !s->has_best || s->since_best < (size_t)b->options.patience)
        return OK;
    if (stop_file_read(b->options.checkpoint_directory, &before, NULL) == 1) {
        b->stop_there = 1;
        return OK;
    }
    if (s->rule.delta > 0)
        snprintf(delta, sizeof delta, " by more than %g", s->rule.delta);
    snprintf(stop.reason, sizeof stop.reason, "%.200s did not get %s%s in %zu evaluations", s->rule.metric,
             s->rule.minimum ? "lower" : "higher", delta, s->since_best);
    snprintf(stop.metric, sizeof stop.metric, "%s", s->rule.metric);
    snprintf(stop.best_checkpoint, sizeof stop.best_checkpoint, "%s", s->best.name);
    if ((rc = stop_file_write(b->options.checkpoint_directory, &stop, e)) != OK)
        return rc;
    b->stop_there = 1;
    error_set(e, OK, "%s", stop.reason);
    return EVALUATION_BEST_STOP;
}

int evaluation_best_kept(struct evaluation_best *b, const struct ledger_summary *s, char *out, size_t size)
{
    char name[NAME_MAX + 8], directory[PATH_MAX], witness[PATH_MAX];

    if (!b || !b->directory || !choose(b, s))
        return 0;
    snprintf(name, sizeof name, "%s", b->wanted[0].kept ? b->wanted[0].kept : b->wanted[0].checkpoint.name);
    if (file_join(directory, sizeof directory, b->options.eval_directory, "best", NULL) != OK ||
        file_join(out, size, directory, name, NULL) != OK)
        return 0;
    return access(out, F_OK) == 0 ||
           (snprintf(witness, sizeof witness, "%s.index", out) < (int)sizeof witness && access(witness, F_OK) == 0);
}

int evaluation_best_resume(struct evaluation_best *b, const struct ledger_summary *s, struct error *e)
{
    int rc = OK;

    if (!b)
        return OK;
    if (b->directory) {
        const size_t count = choose(b, s);
        struct error why = { 0 };

        if ((rc = best_directory_recover(b->directory, b->wanted, count, &why)) != OK)
            error_set(e, rc, "%s is the best, but cannot be kept: %.300s", s->best.name, why.message);
    }
    return rc == OK ? lose_patience(b, s, e) : rc;
}

void evaluation_best_before(struct evaluation_best *b, const char *directory, int pinned,
                            const struct checkpoint_identity *checkpoint)
{
    struct best_checkpoint c;

    if (!b || !b->directory || (b->options.volatile_names && !pinned))
        return; /* a link would change when the file is overwritten */
    c = found(b, checkpoint);
    c.directory = directory;
    best_directory_reserve(b->directory, &c);
}

void evaluation_best_forget(struct evaluation_best *b, const struct checkpoint_identity *checkpoint)
{
    if (b && b->directory) {
        const struct best_checkpoint c = found(b, checkpoint);

        best_directory_drop(b->directory, &c);
    }
}

int evaluation_best_after(struct evaluation_best *b, const struct ledger_record *r, const struct ledger_summary *s,
                          struct error *e)
{
    struct error why = { 0 };
    size_t count = 0, i = 0;
    int rc = OK;

    if (!b)
        return OK;
    evaluation_best_recall(b, r);
    if (b->directory && r->status == LEDGER_DONE)
        count = choose(b, s);
    while (i < count && !checkpoint_identity_same(&b->wanted[i].checkpoint, &r->checkpoint))
        i++;
    if (i == count)
        evaluation_best_forget(b, &r->checkpoint);
    else if ((rc = best_directory_promote(b->directory, b->wanted, count, i, &why)) != OK)
        error_set(e, rc, "%s is %s, but cannot be kept: %.300s", r->checkpoint.name, i ? "among the best" : "the best",
                  why.message);
    return rc == OK ? lose_patience(b, s, e) : rc;
}
