/*
 * checkpoint_directory.h - the checkpoints of one directory: which exist, which is newest, which are whole, which to
 * keep. The state file `checkpoint` is only a hint that may be missing, stale or odd; the index files are the facts.
 */
#ifndef CHECKPOINT_DIRECTORY_CHECKPOINT_DIRECTORY_H
#define CHECKPOINT_DIRECTORY_CHECKPOINT_DIRECTORY_H

#include "base/error.h"
#include "base/io.h"

#include <stddef.h>
#include <stdint.h>

/* The model file of the checkpoints' network beside them, if it is no built-in one. */
#define CHECKPOINT_MODEL_FILE "net.model"

enum checkpoint_format {
    CHECKPOINT_FORMAT_BUNDLE, /* TensorFlow V2 */
    CHECKPOINT_FORMAT_SAFETENSORS,
    CHECKPOINT_FORMAT_V1, /* TensorFlow before 0.12, which is not read */
};

struct checkpoint_name {
    char *name;   /* base name of the prefix: "model.ckpt-700"; for other formats, of the file, or
                   * "checkpoint-700/model.safetensors", or its index */
    int64_t step; /* the number after the last '-', or -1 */
    enum checkpoint_format format;
};

struct checkpoint_list {
    struct checkpoint_name *items; /* ascending by step, then name */
    size_t count;
};

/* Paths in the state file are tried as given, then by their base name in its directory, so that moved directories work;
 * only checkpoints in the directory itself count. */

/* Lists every NAME with a NAME.index in the directory, and those in the state file that have an index; temporary
 * names are left out. A missing directory is ERR_IO with e->system ENOENT. The list is yours:
 * checkpoint_list_release() it. */
int checkpoint_directory_list(const char *directory, struct checkpoint_list *out, struct error *e);
/* The same, but the state file's newest comes last, if it is here: try to resume from the last one first. */
int checkpoint_directory_list_newest_last(const char *directory, struct checkpoint_list *out, struct error *e);
/* As checkpoint_directory_list(), with safetensors files, directories with one or with its parts, and V1 checkpoints,
 * as checkpoint_name_safetensors(), checkpoint_name_weights() and checkpoint_file_v1() know them; a V1 checkpoint
 * beside a V2 one of its name is left out, and so are files that checkpoint_parts_has(). */
int checkpoint_directory_list_all(const char *directory, struct checkpoint_list *out, struct error *e);
void checkpoint_list_release(struct checkpoint_list *list);

/* 1: the listed checkpoint is whole (for a safetensors file: its header matches its size). 0: it is not, and e says
 * why. */
int checkpoint_listed_whole(const char *directory, const struct checkpoint_name *item, struct error *e);

/* 1 and the base name of the newest whole checkpoint (the state file's newest if it is whole, else the whole one with
 * the highest step); 0: there is none; < 0: an error. */
int checkpoint_directory_newest(const char *directory, char *name, size_t size, struct error *e);

/* The base name under which a path of the state file has an index in the directory; NULL: it has none. */
const char *checkpoint_listed_here(const char *directory, const char *path);

/* 1: a path in the state file leads to another directory, by an absolute path or "..". */
int checkpoint_leads_elsewhere(const char *directory, const char *path);

/* 1 and a message for people in e: `name` is used as the newest checkpoint, but the state file cannot be parsed, or
 * names one that is missing, not whole, or in another directory. 0: it agrees, names none, or does not exist. */
int checkpoint_directory_disagrees(const char *directory, const char *name, struct error *e);

/* 1: PREFIX is whole (footer, all block CRCs, every shard there and long enough). 0: not (yet), and e says why. */
int checkpoint_complete(const char *prefix, struct error *e);

/* Call it after checkpoint NAME has been written to the directory: puts it last in the state file (relative paths,
 * replaced by rename), then deletes the oldest listed ones beyond `keep` (0: keep all; index first, then data, then the
 * .meta that TensorFlow adds). Checkpoints listed by an earlier run count; those outside the directory or gone leave
 * the list and are not touched. An unreadable state file is replaced. Returns OK; an error, with the old or the new
 * text in the state file; or CHECKPOINT_OLD_REMAINS: the checkpoint is committed, but an old one could not be deleted,
 * and e says which and why. */
enum { CHECKPOINT_OLD_REMAINS = 1 };
int checkpoint_directory_commit(const struct io *io, const char *directory, const char *name, size_t keep,
                                struct error *e);

/* 1: the name is that of a file being written (.tempstate, .tmp, .part, _temp), which watchers must skip. "_temp" and
 * ".part" count only at the end of a word, so "my_template.ckpt-5" is a checkpoint. */
int checkpoint_name_temporary(const char *name);

/* The step at the end of a name ("model.ckpt-700" -> 700, also of a shard of a V1 checkpoint,
 * "model.ckpt-700-00000-of-00002"), -1 if there is none. */
int64_t checkpoint_name_step(const char *name);

/* The step of a safetensors file, the number at the end of its name ("model-700.safetensors", "model700.safetensors"),
 * -1 for other names and for parts of a larger one ("model-00001-of-00002.safetensors"). */
int64_t checkpoint_name_safetensors(const char *file);
/* The step of a safetensors file, or of the index of one in parts, by its path: from its name, or from its directory's
 * as Hugging Face's Trainer writes them; -1: there is none. */
int64_t checkpoint_path_safetensors(const char *path);
/* The weights in a directory of Hugging Face's: one file, or the index of its parts. */
#define CHECKPOINT_WEIGHTS_FILE "model.safetensors"
#define CHECKPOINT_WEIGHTS_INDEX "model.safetensors.index.json"
/* 1 and "NAME/model.safetensors", or else "NAME/model.safetensors.index.json", if it is in the directory of that name
 * in directory_fd (or by an absolute path); 0: there is none of both, and errno says why. */
int checkpoint_weights_within(int directory_fd, const char *name, char *out, size_t size);
/* The step of a directory of that name in directory_fd, "checkpoint-700", that has weights; -1 for all else. */
int64_t checkpoint_name_weights(int directory_fd, const char *name);

/* The files that the indexes in a directory name as parts, which are no checkpoints, whatever their names. */
struct checkpoint_parts {
    char **names; /* ascending */
    size_t count, room;
};
/* An index that cannot be read names none. ERR_NOMEM. On OK *out is yours: checkpoint_parts_release() it. */
int checkpoint_parts_list(struct checkpoint_parts *out, const char *directory, struct error *e);
int checkpoint_parts_has(const struct checkpoint_parts *parts, const char *file);
void checkpoint_parts_release(struct checkpoint_parts *parts);

/* The step of a V1 checkpoint: a file "model.ckpt-700", or its first shard "model.ckpt-700-00000-of-00002", in the
 * directory open as directory_fd; -1: the file is not one. */
int64_t checkpoint_file_v1(int directory_fd, const char *file);

#endif
