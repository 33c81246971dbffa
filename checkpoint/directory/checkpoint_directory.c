#include "checkpoint/directory/checkpoint_directory.h"

#include "base/array.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/number.h"
#include "base/text.h"
#include "checkpoint/directory/state_file.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_bundle.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STATE_FILE_MAX = 64 << 20 }; /* 10,000 checkpoints with long absolute paths take about 5 MB */

/* ---- names ----------------------------------------------------------------------------------------------------- */

/* "-00001-of-00002" at the end of name[0..n): 1, and the length without it. */
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

int64_t checkpoint_name_step(const char *name)
{
    size_t n = strlen(name);
    char digits[32];
    int64_t step;
    size_t i;

    is_part(name, n, &n);
    for (i = n; i && isdigit((unsigned char)name[i - 1]); i--)
        ;
    /* Digits only: number_parse_int would take a sign. */
    if (i == n || !i || name[i - 1] != '-' || n - i >= sizeof digits)
        return -1;
    memcpy(digits, name + i, n - i);
    digits[n - i] = '\0';
    return number_parse_int(digits, &step) ? step : -1;
}

int checkpoint_name_temporary(const char *name)
{
    static const char *const word_ends[] = { "_temp", ".part" };

    if (strstr(name, ".tempstate") || strstr(name, ".tmp"))
        return 1;
    for (size_t i = 0; i < sizeof word_ends / sizeof *word_ends; i++)
        for (const char *at = name; (at = strstr(at, word_ends[i])); at++)
            if (!isalpha((unsigned char)at[strlen(word_ends[i])]))
                return 1;
    return 0;
}

int64_t checkpoint_name_safetensors(const char *file)
{
    size_t n = text_stem(file, strlen(file), ".safetensors"), stem, i;
    int64_t step = 0;

    if (!n || checkpoint_name_temporary(file) || is_part(file, n, &stem))
        return -1;
    for (i = n; i && isdigit((unsigned char)file[i - 1]); i--)
        ;
    if (i == n || n - i > 18)
        return -1;
    for (; i < n; i++)
        step = step * 10 + (file[i] - '0');
    return step;
}

int64_t checkpoint_path_safetensors(const char *path)
{
    const char *file = file_base_name(path);
    char other[PATH_MAX];
    size_t stem;

    if ((!strcmp(file, CHECKPOINT_WEIGHTS_FILE) || !strcmp(file, CHECKPOINT_WEIGHTS_INDEX)) && file != path &&
        snprintf(other, sizeof other, "%.*s", (int)(file - path - 1), path) < (int)sizeof other)
        return checkpoint_name_step(file_base_name(other));
    if ((stem = text_stem(file, strlen(file), ".index.json")) && stem < sizeof other) {
        snprintf(other, sizeof other, "%.*s", (int)stem, file);
        return checkpoint_name_safetensors(other);
    }
    return checkpoint_name_safetensors(file);
}

int checkpoint_weights_within(int directory_fd, const char *name, char *out, size_t size)
{
    static const char *const files[] = { CHECKPOINT_WEIGHTS_FILE, CHECKPOINT_WEIGHTS_INDEX };
    struct stat st;

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (snprintf(out, size, "%s/%s", name, files[i]) >= (int)size) {
            errno = ENAMETOOLONG;
            return 0;
        }
        if (fstatat(directory_fd, out, &st, 0) < 0) {
            if (errno != ENOENT)
                return 0;
        } else if (S_ISREG(st.st_mode)) {
            return 1;
        }
    }
    errno = ENOENT;
    return 0;
}

int64_t checkpoint_name_weights(int directory_fd, const char *name)
{
    const int64_t step = checkpoint_name_temporary(name) ? -1 : checkpoint_name_step(name);
    char path[PATH_MAX];

    return step >= 0 && checkpoint_weights_within(directory_fd, name, path, sizeof path) ? step : -1;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_parts(struct checkpoint_parts *out, const char *path)
{
    struct safetensors_index index;
    int rc = OK;

    if (safetensors_index_open(&index, path, NULL) != OK)
        return OK;
    for (size_t i = 0; rc == OK && i < index.count; i++) {
        const char *name = index.places[i].value;

        if (out->count && !strcmp(out->names[out->count - 1], name))
            continue;
        if (ARRAY_ROOM(out->names, out->room, out->count + 1) && (out->names[out->count] = strdup(name)))
            out->count++;
        else
            rc = ERR_NOMEM;
    }
    safetensors_index_release(&index);
    return rc;
}

int checkpoint_parts_list(struct checkpoint_parts *out, const char *directory, struct error *e)
{
    DIR *d = opendir(directory);
    struct dirent *entry;
    char path[PATH_MAX];
    int rc = OK;

    *out = (struct checkpoint_parts){ 0 };
    while (rc == OK && d && (entry = readdir(d)))
        if (safetensors_is_index(entry->d_name) && file_join(path, sizeof path, directory, entry->d_name, NULL) == OK)
            rc = add_parts(out, path);
    if (d)
        closedir(d);
    if (rc != OK) {
        checkpoint_parts_release(out);
        return error_memory(e, directory, "to list the parts of checkpoints");
    }
    if (out->count)
        qsort(out->names, out->count, sizeof *out->names, compare_texts);
    return OK;
}

int checkpoint_parts_has(const struct checkpoint_parts *parts, const char *file)
{
    return parts->count && bsearch(&file, parts->names, parts->count, sizeof *parts->names, compare_texts);
}

void checkpoint_parts_release(struct checkpoint_parts *parts)
{
    for (size_t i = 0; i < parts->count; i++)
        free(parts->names[i]);
    free(parts->names);
    *parts = (struct checkpoint_parts){ 0 };
}

int64_t checkpoint_file_v1(int directory_fd, const char *file)
{
    size_t n = strlen(file), stem = n;
    char name[NAME_MAX + 1];

    if (!n || !isdigit((unsigned char)file[n - 1]) || checkpoint_name_temporary(file) || strstr(file, ".data-") ||
        (is_part(file, n, &stem) && strncmp(file + stem, "-00000-", 7) != 0) ||
        snprintf(name, sizeof name, "%.*s", (int)stem, file) >= (int)sizeof name || checkpoint_name_step(name) < 0 ||
        !tensor_bundle_ends_as_index(directory_fd, file))
        return -1;
    return checkpoint_name_step(name);
}

static int directory_compare_names(const void *a, const void *b)
{
    const struct checkpoint_name *x = a, *y = b;

    int order = x->step != y->step ? (x->step > y->step) - (x->step < y->step) : strcmp(x->name, y->name);

    return order ? order : (int)x->format - (int)y->format;
}

void checkpoint_list_release(struct checkpoint_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].name);
    free(list->items);
    list->items = NULL;
    list->count = 0;
}

/* step: unless it is a bundle, whose name says it. */
static int list_add(struct checkpoint_list *list, size_t *room, const char *name, size_t length,
                    enum checkpoint_format format, int64_t step)
{
    char *copy;

    if (!ARRAY_ROOM(list->items, *room, list->count + 1) || !(copy = strndup(name, length)))
        return ERR_NOMEM;
    if (format == CHECKPOINT_FORMAT_BUNDLE)
        step = checkpoint_name_step(copy);
    list->items[list->count++] = (struct checkpoint_name){ copy, step, format };
    return OK;
}

/* ---- the state file -------------------------------------------------------------------------------------------- */

/* 1: another time the file could be read, so its content counts. */
static int passing(int number)
{
    return number == EIO || number == EMFILE || number == ENFILE || number == ENOMEM || number == ESTALE;
}

/* OK with an empty state if the file is missing, not for us, or cannot be parsed: it is only a hint. */
static int read_state(const char *directory, struct state_file *state, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    struct error why = { 0 };
    char path[PATH_MAX];
    int rc;

    memset(state, 0, sizeof *state);
    if ((rc = file_join(path, sizeof path, directory, "checkpoint", e)) != OK)
        return rc;
    rc = file_read(path, STATE_FILE_MAX, &text, &why);
    if (rc == OK)
        rc = state_file_parse(buffer_text(&text), text.length, state, NULL);
    buffer_release(&text);
    if (rc == ERR_IO && passing(why.system))
        return error_copy(e, &why);
    return rc == ERR_NOMEM ? error_set(e, rc, "%s: no memory to read it", path) : OK;
}

const char *checkpoint_listed_here(const char *directory, const char *path)
{
    const char *name = file_base_name(path);
    char index[PATH_MAX];

    if (!*name || snprintf(index, sizeof index, "%s/%s.index", directory, name) >= (int)sizeof index)
        return NULL;
    return access(index, F_OK) == 0 ? name : NULL;
}

/* ---- listing --------------------------------------------------------------------------------------------------- */

/* Adds the file, if it is the index of a bundle or, with `others`, a checkpoint of another format. */
static int list_file(struct checkpoint_list *list, size_t *room, int directory_fd, const char *file, int others)
{
    const size_t length = strlen(file), name = text_stem(file, length, ".index");
    int64_t step;

    if (name)
        return checkpoint_name_temporary(file) ? OK : list_add(list, room, file, name, CHECKPOINT_FORMAT_BUNDLE, -1);
    if (others && (step = checkpoint_name_safetensors(file)) >= 0)
        return list_add(list, room, file, length, CHECKPOINT_FORMAT_SAFETENSORS, step);
    if (others && (step = checkpoint_name_weights(directory_fd, file)) >= 0) {
        char path[PATH_MAX];

        if (!checkpoint_weights_within(directory_fd, file, path, sizeof path))
            return OK; /* gone again */
        return list_add(list, room, path, strlen(path), CHECKPOINT_FORMAT_SAFETENSORS, step);
    }
    if (others && (step = checkpoint_file_v1(directory_fd, file)) >= 0)
        return list_add(list, room, file, length, CHECKPOINT_FORMAT_V1, step);
    return OK;
}

static int leave_out_parts(const char *directory, struct checkpoint_list *list, struct error *e)
{
    struct checkpoint_parts parts;
    size_t kept = 0;
    int rc = checkpoint_parts_list(&parts, directory, e);

    if (rc != OK)
        return rc;
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].format == CHECKPOINT_FORMAT_SAFETENSORS && checkpoint_parts_has(&parts, list->items[i].name))
            free(list->items[i].name);
        else
            list->items[kept++] = list->items[i];
    list->count = kept;
    checkpoint_parts_release(&parts);
    return OK;
}

static int list_files(const char *directory, int others, struct checkpoint_list *out, size_t *room, struct error *e)
{
    DIR *d = opendir(directory);
    struct dirent *entry;
    int rc = OK, indexes = 0;

    if (!d)
        return error_system(e, "%s: cannot open the directory", directory);
    while (rc == OK && (errno = 0, entry = readdir(d))) {
        indexes |= safetensors_is_index(entry->d_name);
        if (list_file(out, room, dirfd(d), entry->d_name, others) != OK)
            rc = error_memory(e, directory, "to list it");
    }
    if (rc == OK && errno)
        rc = error_system(e, "%s: cannot read the directory", directory);
    closedir(d);
    return rc == OK && indexes && others ? leave_out_parts(directory, out, e) : rc;
}

/* Adds what the state file names if it has an index here and was skipped because of its name. */
static int list_state(const char *directory, struct checkpoint_list *out, size_t *room, struct error *e)
{
    struct state_file state;
    int rc = read_state(directory, &state, e);

    for (size_t i = 0; rc == OK && i < state.count + 1; i++) {
        const char *path = i < state.count ? state.paths[i] : state.newest;
        const char *name = path ? file_base_name(path) : "";
        int known = 0;

        /* Only a temporary-looking name can be missing from the directory's listing. */
        if (!checkpoint_name_temporary(name) || !checkpoint_listed_here(directory, path))
            continue;
        for (size_t k = 0; k < out->count && !known; k++)
            known = strcmp(out->items[k].name, name) == 0;
        if (!known && list_add(out, room, name, strlen(name), CHECKPOINT_FORMAT_BUNDLE, -1) != OK)
            rc = error_memory(e, directory, "to list it");
    }
    state_file_release(&state);
    return rc;
}

/* Sorted, each once: a V1 checkpoint comes behind the bundle of its name. */
static int list_all(const char *directory, int others, struct checkpoint_list *out, struct error *e)
{
    size_t room = 0, kept = 0;
    int rc;

    *out = (struct checkpoint_list){ NULL, 0 };
    if ((rc = list_files(directory, others, out, &room, e)) != OK ||
        (rc = list_state(directory, out, &room, e)) != OK) {
        checkpoint_list_release(out);
        return rc;
    }
    if (out->count)
        qsort(out->items, out->count, sizeof *out->items, directory_compare_names);
    for (size_t i = 0; i < out->count; i++) {
        if (kept && out->items[kept - 1].step == out->items[i].step &&
            strcmp(out->items[kept - 1].name, out->items[i].name) == 0)
            free(out->items[i].name);
        else
            out->items[kept++] = out->items[i];
    }
    out->count = kept;
    return OK;
}

int checkpoint_directory_list(const char *directory, struct checkpoint_list *out, struct error *e)
{
    return list_all(directory, 0, out, e);
}

int checkpoint_directory_list_all(const char *directory, struct checkpoint_list *out, struct error *e)
{
    return list_all(directory, 1, out, e);
}

int checkpoint_listed_whole(const char *directory, const struct checkpoint_name *item, struct error *e)
{
    char path[PATH_MAX];
    struct safetensors *s;

    if (file_join(path, sizeof path, directory, item->name, e) != OK)
        return 0;
    if (item->format != CHECKPOINT_FORMAT_SAFETENSORS)
        return checkpoint_complete(path, e); /* or a V1 checkpoint */
    if (safetensors_open(&s, path, e) != OK)
        return 0;
    safetensors_close(s);
    return 1;
}

int checkpoint_complete(const char *prefix, struct error *e)
{
    struct tensor_bundle *b;

    if (tensor_bundle_open(&b, prefix, e) != OK)
        return 0;
    tensor_bundle_close(b);
    return 1;
}

static int complete_here(const char *directory, const char *name)
{
    char prefix[PATH_MAX];

    return file_join(prefix, sizeof prefix, directory, name, NULL) == OK && checkpoint_complete(prefix, NULL);
}

static int copy_name(char *out, size_t size, const char *name, struct error *e)
{
    if ((size_t)snprintf(out, size, "%s", name) >= size)
        return error_set(e, ERR_ARG, "%s: name too long", name);
    return 1;
}

int checkpoint_directory_list_newest_last(const char *directory, struct checkpoint_list *out, struct error *e)
{
    struct state_file state;
    const char *chosen;
    int rc;

    if ((rc = checkpoint_directory_list(directory, out, e)) != OK)
        return rc;
    if ((rc = read_state(directory, &state, e)) != OK) {
        checkpoint_list_release(out);
        return rc;
    }
    chosen = state.newest ? file_base_name(state.newest) : "";
    for (size_t i = 0; i < out->count; i++)
        if (strcmp(out->items[i].name, chosen) == 0) {
            const struct checkpoint_name newest = out->items[i];

            memmove(out->items + i, out->items + i + 1, (out->count - i - 1) * sizeof newest);
            out->items[out->count - 1] = newest;
            break;
        }
    state_file_release(&state);
    return OK;
}

int checkpoint_directory_newest(const char *directory, char *name, size_t size, struct error *e)
{
    struct checkpoint_list list;
    int rc = checkpoint_directory_list_newest_last(directory, &list, e);

    if (rc != OK)
        return rc;
    for (size_t i = list.count; i-- > 0 && rc == OK;)
        if (complete_here(directory, list.items[i].name))
            rc = copy_name(name, size, list.items[i].name, e);
    checkpoint_list_release(&list);
    return rc;
}

int checkpoint_leads_elsewhere(const char *directory, const char *path)
{
    char index[PATH_MAX], parent[PATH_MAX];
    struct stat here, there;

    if (snprintf(index, sizeof index, "%s%s%s.index", *path == '/' ? "" : directory, *path == '/' ? "" : "/", path) >=
        (int)sizeof index)
        return 0;
    snprintf(parent, sizeof parent, "%.*s", (int)(file_base_name(index) - index), index);
    return stat(directory, &here) == 0 && stat(parent, &there) == 0 && access(index, F_OK) == 0 &&
           (here.st_dev != there.st_dev || here.st_ino != there.st_ino);
}

static int newest_disagrees(const char *directory, const char *newest, const char *name, struct error *e)
{
    const char *base = file_base_name(newest);
    char prefix[PATH_MAX];
    struct error why = { 0 };

    if (checkpoint_leads_elsewhere(directory, newest))
        error_set(e, ERR_ARG, "%s/checkpoint: names %s, which is outside this directory; using %s", directory, newest,
                  name);
    else if (strcmp(base, name) == 0)
        return 0;
    else if (!checkpoint_listed_here(directory, newest))
        error_set(e, ERR_ARG, "%s/checkpoint: names %s, which is not here; using %s", directory, newest, name);
    else if (file_join(prefix, sizeof prefix, directory, base, NULL) == OK && !checkpoint_complete(prefix, &why))
        error_set(e, ERR_ARG, "%s; using %s", why.message, name);
    else
        return 0; /* became whole meanwhile */
    return 1;
}

int checkpoint_directory_disagrees(const char *directory, const char *name, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    struct error why = { 0 };
    struct state_file state;
    char path[PATH_MAX];
    int rc = 0;

    if (file_join(path, sizeof path, directory, "checkpoint", NULL) != OK || access(path, F_OK) < 0)
        return 0;
    if (file_read(path, STATE_FILE_MAX, &text, &why) != OK ||
        state_file_parse(buffer_text(&text), text.length, &state, &why) != OK) {
        error_set(e, ERR_CORRUPT, "%s: cannot be parsed (%s); using %s", path, why.message, name);
        rc = 1;
    } else {
        rc = state.newest && newest_disagrees(directory, state.newest, name, e);
        state_file_release(&state);
    }
    buffer_release(&text);
    return rc;
}

/* ---- committing ------------------------------------------------------------------------------------------------ */

/* 1: the file is a shard of checkpoint `name`: NAME.data-DIGITS-of-DIGITS. */
static int is_shard(const char *file, const char *name)
{
    size_t length = strlen(name), digits = 0;
    const char *rest = file + length;

    if (strncmp(file, name, length) != 0 || strncmp(rest, ".data-", 6) != 0)
        return 0;
    while (isdigit((unsigned char)rest[6 + digits]))
        digits++;
    if (!digits || strncmp(rest + 6 + digits, "-of-", 4) != 0)
        return 0;
    rest += 6 + digits + 4;
    return rest[0] && strspn(rest, "0123456789") == strlen(rest);
}

static int remove_file(const struct io *io, const char *directory, const char *name, const char *suffix,
                       struct error *e)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s/%s%s", directory, name, suffix) >= (int)sizeof path)
        return error_set(e, ERR_ARG, "%s/%s%s: cannot delete: path too long", directory, name, suffix);
    if (io->unlink(io->context, path) < 0 && errno != ENOENT)
        return error_system(e, "%s: cannot delete", path);
    return OK;
}

/* Removes the files of the checkpoints names[0..count): all indexes first, then one pass over the directory for their
 * shards. Goes on after a failure; the first one is returned. */
static int remove_checkpoints(const struct io *io, const char *directory, char *const *names, size_t count,
                              struct error *e)
{
    struct dirent *entry;
    int rc = OK;
    DIR *d;

    for (size_t i = 0; i < count; i++)
        if (remove_file(io, directory, names[i], ".index", rc == OK ? e : NULL) != OK)
            rc = ERR_IO;
    if (!(d = opendir(directory)))
        return rc == OK ? error_system(e, "%s: cannot open the directory to delete in it", directory) : rc;
    while ((entry = readdir(d)))
        for (size_t i = 0; i < count; i++)
            if (is_shard(entry->d_name, names[i]) &&
                remove_file(io, directory, entry->d_name, "", rc == OK ? e : NULL) != OK)
                rc = ERR_IO;
    closedir(d);
    for (size_t i = 0; i < count; i++)
        if (remove_file(io, directory, names[i], ".meta", rc == OK ? e : NULL) != OK)
            rc = ERR_IO;
    return rc;
}

struct listed {
    const char *name; /* borrowed from the state, or the new one */
    size_t place;     /* in the list */
};

static int compare_listed(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;
    int compared = strcmp(x->name, y->name);

    return compared ? compared : (x->place > y->place) - (x->place < y->place);
}

static int directory_compare_places(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;

    return (x->place > y->place) - (x->place < y->place);
}

/* Fills names (room for state->count + 1) with what is listed and exists here, then `name`; each once, at its last
 * position. */
static int merge_names(const char *directory, const struct state_file *state, const char *name, char **names,
                       size_t *out)
{
    struct listed *all = malloc((state->count + 1) * sizeof *all);
    size_t count = 0, once = 0;

    if (!all)
        return ERR_NOMEM;
    for (size_t i = 0; i < state->count; i++) {
        const char *here = checkpoint_listed_here(directory, state->paths[i]);

        if (here)
            all[count++] = (struct listed){ here, i };
    }
    all[count++] = (struct listed){ name, state->count };
    qsort(all, count, sizeof *all, compare_listed);
    for (size_t i = 0; i < count; i++)
        if (i + 1 == count || strcmp(all[i].name, all[i + 1].name) != 0)
            all[once++] = all[i];
    qsort(all, once, sizeof *all, directory_compare_places);
    for (size_t i = 0; i < once; i++)
        names[i] = (char *)(uintptr_t)all[i].name;
    free(all);
    *out = once;
    return OK;
}

int checkpoint_directory_commit(const struct io *io, const char *directory, const char *name, size_t keep,
                                struct error *e)
{
    struct state_file state, next = { 0 };
    struct buffer text = BUFFER_EMPTY;
    char path[PATH_MAX], **names = NULL;
    size_t count = 0, old;
    int rc;

    if (!io)
        io = &io_real;
    if (!*name || strchr(name, '/'))
        return error_set(e, ERR_ARG, "\"%s\" is not the name of a checkpoint in %s", name, directory);
    if ((rc = file_join(path, sizeof path, directory, "checkpoint", e)) != OK ||
        (rc = read_state(directory, &state, e)) != OK)
        return rc;
    names = malloc((state.count + 1) * sizeof *names);
    if (!names || merge_names(directory, &state, name, names, &count) != OK) {
        rc = error_memory(e, path, "to write it");
        goto out;
    }
    old = keep && count > keep ? count - keep : 0;
    next.newest = names[count - 1];
    next.paths = names + old;
    next.count = count - old;
    state_file_encode(&next, &text);
    if (!buffer_ok(&text))
        rc = error_memory(e, path, "to write it");
    else if ((rc = file_replace(io, path, text.data, text.length, e)) == OK && old &&
             remove_checkpoints(io, directory, names, old, e) < 0)
        rc = CHECKPOINT_OLD_REMAINS;
out:
    buffer_release(&text);
    state_file_release(&state);
    free(names);
    return rc;
}
