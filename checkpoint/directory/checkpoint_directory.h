/*
 * checkpoint_directory.h - the checkpoints of one directory: which there are, which is newest, which are whole, which
 * are kept. The state file `checkpoint` is a hint that may be missing, stale or odd; the index files are the facts.
 */
#ifndef CHECKPOINT_DIRECTORY_CHECKPOINT_DIRECTORY_H
#define CHECKPOINT_DIRECTORY_CHECKPOINT_DIRECTORY_H

#include "base/error.h"
#include "base/io.h"

#include <stddef.h>
#include <stdint.h>

enum checkpoint_format {
    CHECKPOINT_FORMAT_BUNDLE, /* TensorFlow V2 */
    CHECKPOINT_FORMAT_SAFETENSORS,
    CHECKPOINT_FORMAT_V1,     /* TensorFlow before 0.12, which is not read */
};

struct checkpoint_name {
    char *name;   /* base name of the prefix: "model.ckpt-700"; of other formats, of the file */
    int64_t step; /* the number after the last '-', or -1 */
    enum checkpoint_format format;
};

struct checkpoint_list {
    struct checkpoint_name *items; /* ascending by step, then name */
    size_t count;
};

/* Paths in the state file are tried as given, then by their base name beside it, so that moved directories work; only
 * what lies in the directory itself is a checkpoint of it. */

/* Every NAME with a NAME.index in the directory, merged with what the state file lists and has an index; temporary
 * names are left out. A missing directory is ERR_IO with e->system ENOENT. The list is yours:
 * checkpoint_list_release(). */
int checkpoint_directory_list(const char *directory, struct checkpoint_list *out, struct error *e);
/* The same, but the state file's choice is last, if it is here: from the end on, the ones to resume from. */
int checkpoint_directory_list_newest_last(const char *directory, struct checkpoint_list *out, struct error *e);
/* As checkpoint_directory_list(), with safetensors files and V1 checkpoints, as checkpoint_name_safetensors() and
 * checkpoint_file_v1() know them; a V1 checkpoint beside a V2 one of its name is left out. */
int checkpoint_directory_list_all(const char *directory, struct checkpoint_list *out, struct error *e);
void checkpoint_list_release(struct checkpoint_list *list);

/* 1: the checkpoint of a list is whole (of a safetensors file: its header fits it). 0: it is not, and e says why. */
int checkpoint_listed_whole(const char *directory, const struct checkpoint_name *item, struct error *e);

/* 1 and the base name of the newest whole checkpoint (the state file's choice if it is whole, else the highest step
 * that is); 0: there is none; < 0: an error. */
int checkpoint_directory_newest(const char *directory, char *name, size_t size, struct error *e);

/* The base name under which a path of the state file has an index in the directory; NULL: it has none. */
const char *checkpoint_listed_here(const char *directory, const char *path);

/* 1: a path of the state file leads to a checkpoint in another directory, by an absolute path or "..". */
int checkpoint_leads_elsewhere(const char *directory, const char *path);

/* 1 and a sentence for people: `name` is taken as the newest checkpoint, but the state file cannot be parsed, or names
 * one that is not here, not whole, or in another directory. 0: it agrees, names none, or is not there. */
int checkpoint_directory_disagrees(const char *directory, const char *name, struct error *e);

/* 1: PREFIX is whole (footer, all block CRCs, every shard there and long enough). 0: not (yet), and e says why. */
int checkpoint_complete(const char *prefix, struct error *e);

/* After a checkpoint NAME was written whole into the directory: puts it last in the state file (relative paths,
 * replaced by rename), then deletes the oldest listed ones beyond `keep` (0: keep all; index first, then data, then
 * the .meta that TensorFlow adds). What an earlier run listed counts; what is listed but lies outside the directory or
 * is gone leaves the list and is not touched. An unreadable state file is replaced. Returns OK; an error, with the
 * state file's old text or its new one; or CHECKPOINT_OLD_REMAINS: the checkpoint is committed, but an old one could
 * not be deleted, and e says which and why. */
enum { CHECKPOINT_OLD_REMAINS = 1 };
int checkpoint_directory_commit(const struct io *io, const char *directory, const char *name, size_t keep,
                                struct error *e);

/* 1: the name is that of something being written (.tempstate, .tmp, .part, _temp), for watchers to pass over. "_temp"
 * and ".part" count only at the end of a word, so that "my_template.ckpt-5" is a checkpoint. */
int checkpoint_name_temporary(const char *name);

/* The step at the end of a name ("model.ckpt-700" -> 700), -1 without one. */
int64_t checkpoint_name_step(const char *name);

/* The step of a safetensors file, the number at the end of its name ("model-700.safetensors", "model700.safetensors"),
 * -1 for other names and for parts of a larger one ("model-00001-of-00002.safetensors"). */
int64_t checkpoint_name_safetensors(const char *file);

/* The step of a V1 checkpoint: a file "model.ckpt-700", or its first shard "model.ckpt-700-00000-of-00002", in the
 * directory that the descriptor is open on; -1: the file is none. */
int64_t checkpoint_file_v1(int directory_fd, const char *file);

#endif
