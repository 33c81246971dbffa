#include "evaluator/record/pin.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char temporary[] = ".unfinished-";

/* Renames it first: a process killed halfway leaves nothing that looks like a pin. */
void pin_remove(const char *path)
{
    char directory[PATH_MAX], aside[PATH_MAX], *slash, *name;

    if (snprintf(directory, sizeof directory, "%s", path) >= (int)sizeof directory ||
        !(slash = strrchr(directory, '/')))
        return;
    *slash = '\0';
    name = strrchr(directory, '/') ? strrchr(directory, '/') + 1 : directory;
    if (snprintf(aside, sizeof aside, "%.*s%s%s", (int)(name - directory), directory, temporary, name) <
            (int)sizeof aside &&
        rename(directory, aside) == 0)
        file_tree_remove(aside, NULL);
    else
        file_tree_remove(directory, NULL);
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static int keep_file(const char *directory, const char *name, const char *into, enum file_tree_means means,
                     struct error *e)
{
    char from[PATH_MAX], to[PATH_MAX];
    int rc;

    if ((rc = file_join(from, sizeof from, directory, name, e)) != OK ||
        (rc = file_join(to, sizeof to, into, name, e)) != OK)
        return rc;
    return file_tree_make(from, to, means, e);
}

/* NAME.index, NAME.data-*, NAME.meta. */
static int keep_bundle(const char *directory, const char *name, const char *into, enum file_tree_means means,
                       struct error *e)
{
    DIR *d = opendir(directory);
    size_t n = strlen(name);
    struct dirent *entry;
    int rc = OK;

    if (!d)
        return error_system(e, "%s: cannot be listed", directory);
    while (rc == OK && (entry = readdir(d))) {
        const char *end = entry->d_name + n;

        if (!strncmp(entry->d_name, name, n) &&
            (!strcmp(end, ".index") || !strcmp(end, ".meta") || !strncmp(end, ".data-", 6)))
            rc = keep_file(directory, entry->d_name, into, means, e);
    }
    closedir(d);
    return rc;
}

/* It may have been deleted meanwhile: what was pinned must still be the checkpoint that was found. */
static int pin_check(const struct pin *pin, const char *path, struct error *e)
{
    struct opened_checkpoint *c;
    int rc = opened_checkpoint_open(&c, pin->kind, path, e), same;

    if (rc != OK)
        return rc;
    same = opened_checkpoint_digest(c) == pin->checkpoint.digest;
    opened_checkpoint_close(c);
    return same ? OK : error_set(e, ERR_IO, "%s: changed while it was pinned", path);
}

int pin_make(const char *eval_directory, const char *directory, const struct pin *pin, enum file_tree_means means,
             char **path, uint64_t *bytes, struct error *e)
{
    char all[PATH_MAX], begun[PATH_MAX], done[PATH_MAX], where[PATH_MAX], begun_name[96], *directory_name;
    const char *name = pin->checkpoint.name;
    int rc;

    *path = NULL;
    *bytes = 0;
    snprintf(begun_name, sizeof begun_name, "%s%d-%" PRId64 "-%016" PRIx64, temporary, (int)pin->kind,
             pin->checkpoint.step, pin->checkpoint.digest);
    directory_name = begun_name + strlen(temporary);
    if ((rc = file_join(all, sizeof all, eval_directory, "pinned", e)) != OK ||
        (rc = file_join(begun, sizeof begun, all, begun_name, e)) != OK ||
        (rc = file_join(done, sizeof done, all, directory_name, e)) != OK || (rc = file_tree_remove(begun, e)) != OK ||
        (rc = file_tree_remove(done, e)) != OK || (rc = file_make_directories(begun, e)) != OK)
        return rc;
    rc = pin->kind == CHECKPOINT_BUNDLE ? keep_bundle(directory, name, begun, means, e)
                                        : keep_file(directory, name, begun, means, e);
    if (rc == OK && (rc = file_join(where, sizeof where, begun, name, e)) == OK &&
        (rc = pin_check(pin, where, e)) == OK && rename(begun, done) < 0)
        rc = error_system(e, "%s: cannot be renamed", begun);
    if (rc == OK && (rc = file_join(where, sizeof where, done, name, e)) == OK && !(*path = strdup(where)))
        rc = error_memory(e, NULL, "to pin %s", name);
    if (rc == OK)
        *bytes = file_tree_bytes(done);
    else
        file_tree_remove(begun, NULL);
    return rc;
}

/* ---- after a crash ----------------------------------------------------------------------------------------------- */

/* The name of the checkpoint in a pin's directory: that of the only entry, or of the index. 0: none; -1: it cannot be
 * read. */
static int find_name(const char *directory, enum checkpoint_kind kind, char *name, size_t size)
{
    DIR *d = opendir(directory);
    struct dirent *entry;
    int found = 0;

    if (!d)
        return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
    while ((errno = 0, entry = readdir(d))) {
        const char *end = strrchr(entry->d_name, '.');

        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        if (kind != CHECKPOINT_BUNDLE || (end && !strcmp(end, ".index")))
            found = snprintf(name, size, "%.*s", kind != CHECKPOINT_BUNDLE ? NAME_MAX : (int)(end - entry->d_name),
                             entry->d_name) > 0;
    }
    if (!found && errno)
        found = -1;
    closedir(d);
    return found;
}

int pin_recover(const char *eval_directory, pin_visit *visit, void *context, struct error *e)
{
    char all[PATH_MAX];
    struct dirent *entry;
    DIR *d;
    int rc = file_join(all, sizeof all, eval_directory, "pinned", e);

    if (rc != OK || !(d = opendir(all)))
        return rc;
    while (rc == OK && (entry = readdir(d))) {
        char directory[PATH_MAX + NAME_MAX + 2], path[PATH_MAX + 2 * NAME_MAX + 4];
        struct pin pin = { .checkpoint.has_digest = 1 };
        struct checkpoint_identity *c = &pin.checkpoint;
        int kind, found;

        snprintf(directory, sizeof directory, "%s/%s", all, entry->d_name);
        if (!strncmp(entry->d_name, temporary, strlen(temporary)))
            file_tree_remove(directory, NULL);
        if (sscanf(entry->d_name, "%1d-%" SCNd64 "-%16" SCNx64, &kind, &c->step, &c->digest) != 3 || kind < 0 ||
            kind > CHECKPOINT_OTHER)
            continue;
        pin.kind = (enum checkpoint_kind)kind;
        for (int tries = 0; (found = find_name(directory, pin.kind, c->name, sizeof c->name)) < 0 && tries < 3; tries++)
            continue;
        if (!found)
            file_tree_remove(directory, NULL);
        if (found <= 0) /* what cannot be read now is left for the next start */
            continue;
        snprintf(path, sizeof path, "%s/%s", directory, c->name);
        rc = visit(context, &pin, path, file_tree_bytes(directory), e);
    }
    closedir(d);
    return rc;
}
