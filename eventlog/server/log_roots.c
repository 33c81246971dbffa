#include "eventlog/server/log_roots.h"

#include "base/buffer.h"
#include "eventlog/server/store/utf8_text.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static void tell(struct log_roots *r, const char *path)
{
    size_t known = r->told.count;

    if (tag_index_add(&r->told, path, strlen(path)) == known && r->left_out)
        r->left_out(r->context, path);
}

/* The name as it is shown: below the root's own, of valid UTF-8. */
static int rename_run(struct log_run *run, const char *root)
{
    struct buffer name = BUFFER_EMPTY;
    int whole = !strcmp(run->name, "."), named = root && *root;

    if (named)
        utf8_text_append(&name, root, strlen(root));
    if (named && !whole)
        buffer_append_text(&name, "/");
    if (!named || !whole)
        utf8_text_append(&name, run->name, strlen(run->name));
    if (!buffer_ok(&name))
        return 0;
    free(run->name);
    run->name = name.data;
    return 1;
}

/* Moves what `from` lists to the end of d. */
static int append(struct log_directory *d, struct log_directory *from)
{
    struct log_run *runs = realloc(d->runs, (d->count + from->count + 1) * sizeof *runs);
    struct log_listed *directories;
    char **problems;

    if (runs)
        d->runs = runs;
    if ((problems = realloc(d->problems, (d->problem_count + from->problem_count + 1) * sizeof *problems)))
        d->problems = problems;
    directories = realloc(d->directories, (d->directory_count + from->directory_count + 1) * sizeof *directories);
    if (directories)
        d->directories = directories;
    if (!runs || !problems || !directories)
        return 0;
    for (size_t i = 0; i < from->count; i++) {
        if (from->runs[i].place != (size_t)-1)
            from->runs[i].place += d->directory_count;
        d->runs[d->count++] = from->runs[i];
    }
    for (size_t i = 0; i < from->problem_count; i++)
        d->problems[d->problem_count++] = from->problems[i];
    for (size_t i = 0; i < from->directory_count; i++)
        d->directories[d->directory_count++] = from->directories[i];
    d->unreadable |= from->unreadable;
    from->count = from->problem_count = from->directory_count = 0;
    return 1;
}

int log_roots_list(struct log_roots *r, struct log_directory *d, struct log_input *in, struct error *e)
{
    memset(d, 0, sizeof *d);
    directory_cache_begin(&r->cache);
    for (size_t i = 0; i < r->count; i++) {
        char *paths[] = { (char *)(uintptr_t)r->roots[i].path };
        struct log_directory listed = { 0 };
        char home[PATH_MAX];
        int rc = log_directory_list_cached(&listed, &r->cache,
                                           !r->follow_links && realpath(paths[0], home) ? home : NULL, in, paths, 1, e);

        for (size_t k = 0; k < listed.outside_count; k++)
            tell(r, listed.outside[k]);
        for (size_t k = 0; rc == OK && k < listed.count; k++)
            if (!rename_run(&listed.runs[k], r->roots[i].name))
                rc = error_memory(e, listed.runs[k].directory, "for its name");
        if (rc == OK && !append(d, &listed))
            rc = error_memory(e, r->roots[i].path, "to list it");
        log_directory_release(&listed);
        if (rc != OK) {
            log_directory_release(d);
            return rc;
        }
    }
    return OK;
}

int log_roots_are_same(struct log_roots *r)
{
    for (size_t i = 0; i < r->count; i++)
        if (!directory_cache_has(&r->cache, r->roots[i].path)) /* it does not exist yet, or is a file */
            return 0;
    return directory_cache_is_same(&r->cache);
}

void log_roots_release(struct log_roots *r)
{
    tag_index_release(&r->told);
    directory_cache_release(&r->cache);
}
