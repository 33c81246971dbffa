#include "checkpoint/tool/find.h"

#include "base/file.h"
#include "base/file_kind.h"
#include "base/program/options.h"
#include "base/text.h"
#include "checkpoint/directory/checkpoint_directory.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_bundle.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int is_directory(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int is_regular(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static int has_index(const char *prefix)
{
    char index[PATH_MAX];

    return snprintf(index, sizeof index, "%s.index", prefix) < (int)sizeof index && access(index, F_OK) == 0;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* What to do with a file of this kind; NULL: no advice. */
static const char *advice(enum file_kind kind)
{
    switch (kind) {
    case FILE_KIND_TORCH:
    case FILE_KIND_PICKLE:
        return "save its tensors with safetensors.torch.save_file(), or score it with 'evaluator --exec'";
    case FILE_KIND_KERAS:
    case FILE_KIND_HDF5:
    case FILE_KIND_ONNX:
        return "save its weights as safetensors or with tf.train.Checkpoint, or score it with 'evaluator --exec'";
    case FILE_KIND_NUMPY:
    case FILE_KIND_NPZ: return "numpy.load() reads it";
    case FILE_KIND_GZIP:
    case FILE_KIND_ZSTD:
    case FILE_KIND_XZ:
    case FILE_KIND_BZIP2:
    case FILE_KIND_TAR:
    case FILE_KIND_ZIP: return "unpack it first";
    case FILE_KIND_EVENT_LOG: return "'eventlog inspect' reads event files";
    default: return NULL;
    }
}

/* A file without an index: of another program's format, or perhaps safetensors, whatever its name. */
static int find_file(const char *path, struct found *out, struct error *e)
{
    enum file_kind kind = file_kind_of(path);

    switch (kind) {
    case FILE_KIND_TABLE: /* without its suffix: a V1 checkpoint */ return OK;
    case FILE_KIND_UNKNOWN:
    case FILE_KIND_EMPTY:
    case FILE_KIND_SAFETENSORS: out->is_file = 1; return OK;
    default: break;
    }
    if (kind == FILE_KIND_JSON && safetensors_is_index(path)) {
        out->is_file = 1;
        return OK;
    }
    if (strcmp(file_base_name(path), "checkpoint") == 0)
        return error_set(e, ERR_ARG, "%s: not a checkpoint, but %s; name the directory", path,
                         kind == FILE_KIND_TEXT ? "the state file of a directory" : file_kind_text(kind));
    return error_set(e, ERR_ARG, "%s: not a checkpoint, but %s%s%s", path, file_kind_text(kind),
                     advice(kind) ? "; " : "", advice(kind) ? advice(kind) : "");
}

/* How much of the path is the prefix, if it is one of the files of a TensorFlow checkpoint: without ".index", ".meta"
 * or ".data-00000-of-00001". */
static size_t prefix_length(const char *path)
{
    static const char *const suffixes[] = { ".index", ".meta" };
    size_t n = strlen(path), i = n;

    for (size_t k = 0; k < sizeof suffixes / sizeof *suffixes; k++) {
        const size_t stem = text_stem(path, n, suffixes[k]);

        if (stem)
            return stem;
    }
    while (i && (isdigit((unsigned char)path[i - 1]) || path[i - 1] == '-' || strchr("of", path[i - 1])))
        i--;
    return i > 5 && strncmp(path + i - 5, ".data-", 6) == 0 ? i - 5 : n;
}

/* "; did you mean NAME?" with a checkpoint in the same directory, or "". */
static void suggest(const char *path, char *out, size_t size)
{
    struct checkpoint_list list;
    char directory[PATH_MAX];
    const char **names, *near = NULL;
    size_t n = (size_t)(file_base_name(path) - path);

    *out = '\0';
    snprintf(directory, sizeof directory, "%.*s", (int)n, n ? path : "");
    if (checkpoint_directory_list_all(n ? directory : ".", &list, NULL) != OK)
        return;
    if ((names = malloc((list.count + 1) * sizeof *names))) {
        for (size_t i = 0; i < list.count; i++)
            names[i] = list.items[i].name;
        near = options_nearest(path + n, names, list.count);
    }
    if (near)
        snprintf(out, size, "; did you mean %.*s%.200s?", (int)n, path, near);
    free(names);
    checkpoint_list_release(&list);
}

/* ---- directories ------------------------------------------------------------------------------------------------- */

/* Looks for anything else in a directory without a numbered checkpoint. */
struct contents {
    char safetensors[NAME_MAX + 1]; /* one that is whole by itself, or an index */
    size_t safetensors_count;
    int parts;
};

/* 1: a file of the same name without ".index.json" is there, which Hugging Face reads instead. */
static int stands_behind(int directory_fd, const char *index)
{
    char file[NAME_MAX + 1];
    struct stat st;

    snprintf(file, sizeof file, "%.*s", (int)text_stem(index, strlen(index), ".index.json"), index);
    return *file && fstatat(directory_fd, file, &st, 0) == 0;
}

static int look_around(const char *directory, struct contents *out, struct error *e)
{
    static const char suffix[] = ".safetensors";
    struct checkpoint_parts parts;
    int rc = checkpoint_parts_list(&parts, directory, e);
    DIR *d = rc == OK ? opendir(directory) : NULL;
    struct dirent *entry;

    memset(out, 0, sizeof *out);
    while (d && (entry = readdir(d))) {
        const char *name = entry->d_name;
        const int index = safetensors_is_index(name) && !stands_behind(dirfd(d), name);

        if ((!index && !text_stem(name, strlen(name), suffix)) || checkpoint_name_temporary(name))
            continue;
        if (!index && (strstr(name, "-of-") || checkpoint_parts_has(&parts, name))) {
            out->parts = 1;
        } else {
            out->safetensors_count++;
            snprintf(out->safetensors, sizeof out->safetensors, "%s", name);
        }
    }
    if (d)
        closedir(d);
    checkpoint_parts_release(&parts);
    return rc;
}

/* The directory has no whole checkpoint with a step; why: what the newest one lacks, or no error. */
static int unnumbered(const char *directory, const struct error *why, struct found *out, struct error *e)
{
    struct contents here;
    char saved[PATH_MAX];
    int rc;

    if (why->code != OK)
        return error_set(e, ERR_ARG, "%s: no complete checkpoint in this directory: %s", directory, why->message);
    if ((rc = look_around(directory, &here, e)) != OK)
        return rc;
    if (here.safetensors_count == 1) {
        out->is_file = 1;
        return file_join(out->path, sizeof out->path, directory, here.safetensors, e);
    }
    if (here.safetensors_count)
        return error_set(e, ERR_ARG, "%s: %zu safetensors files without a step in their names; name one of them",
                         directory, here.safetensors_count);
    if (here.parts)
        return error_set(
            e, ERR_ARG,
            "%s: only parts of a checkpoint (-00001-of-...), which cannot be read together; name one part, "
            "or add their index, " CHECKPOINT_WEIGHTS_INDEX,
            directory);
    if (file_join(saved, sizeof saved, directory, "variables/variables", NULL) == OK && has_index(saved))
        return error_set(e, ERR_ARG, "%s: a SavedModel; name its checkpoint, %s", directory, saved);
    return error_set(e, ERR_ARG, "%s: no checkpoint in this directory", directory);
}

static int index_whole(const char *directory, const struct checkpoint_name *item)
{
    struct tensor_bundle *b;
    char prefix[PATH_MAX];

    if (item->format != CHECKPOINT_FORMAT_BUNDLE ||
        file_join(prefix, sizeof prefix, directory, item->name, NULL) != OK ||
        tensor_bundle_open_index(&b, prefix, NULL) != OK)
        return 0;
    tensor_bundle_close(b);
    return 1;
}

/* The whole checkpoint with the highest step; among TensorFlow's checkpoints, the one that the state file names. */
static int find_newest(const char *directory, int index_only, struct found *out, struct error *e)
{
    struct error why = { 0 };
    struct checkpoint_list list;
    char name[NAME_MAX + 1];
    int64_t step = -1;
    int rc = checkpoint_directory_newest(directory, name, sizeof name, e), found = rc == 1;

    if (rc < 0 || (rc = checkpoint_directory_list_all(directory, &list, e)) != OK)
        return rc;
    if (found) {
        step = checkpoint_name_step(name);
        rc = file_join(out->path, sizeof out->path, directory, name, e);
    }
    for (size_t i = list.count; i-- > 0 && rc == OK && (!found || list.items[i].step > step);) {
        const struct checkpoint_name *item = &list.items[i];

        if ((found && item->format == CHECKPOINT_FORMAT_BUNDLE) ||
            !checkpoint_listed_whole(directory, item, why.code == OK ? &why : NULL))
            continue;
        rc = file_join(out->path, sizeof out->path, directory, item->name, e);
        out->is_file = item->format == CHECKPOINT_FORMAT_SAFETENSORS;
        found = 1;
        step = item->step;
    }
    for (size_t i = list.count; index_only && i-- > 0 && rc == OK && !found;)
        if ((found = index_whole(directory, &list.items[i])))
            rc = file_join(out->path, sizeof out->path, directory, list.items[i].name, e);
    if (rc == OK && !found)
        rc = unnumbered(directory, &why, out, e);
    if (rc == OK)
        checkpoint_directory_disagrees(directory, file_base_name(out->path), &out->note);
    checkpoint_list_release(&list);
    return rc;
}

int find_checkpoint(const char *path, int index_only, struct found *out, struct error *e)
{
    const size_t length = prefix_length(path);
    char near[NAME_MAX + 32];

    memset(out, 0, sizeof *out);
    if (strlen(path) >= sizeof out->path)
        return error_set(e, ERR_ARG, "%s: path too long", path);
    if (is_directory(path))
        return find_newest(path, index_only, out, e);
    strcpy(out->path, path);
    if (has_index(path))
        return OK;
    out->path[length] = '\0';
    if (path[length] && (has_index(out->path) || !is_regular(path)))
        return OK;
    strcpy(out->path, path);
    if (is_regular(path))
        return find_file(path, out, e);
    if (!strcmp(path, "-"))
        return error_set(e, ERR_ARG, "-: a checkpoint cannot be read from standard input; name a file or a directory");
    suggest(path, near, sizeof near);
    return error_set(e, ERR_ARG, "%s: no such checkpoint (there is no %s.index)%s", path, path, near);
}
