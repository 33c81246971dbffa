#include "trainer/own_model.h"

#include "base/buffer.h"
#include "base/file.h"
#include "checkpoint/directory/checkpoint_directory.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* 1: there is a copy, in `text`; 0: there is none. */
static int read_copy(const char *path, struct buffer *text, struct error *e)
{
    int rc;

    if (access(path, F_OK) < 0 && errno == ENOENT)
        return 0;
    rc = file_read_plain(path, MODEL_FILE_BYTES_MAX, text, e);
    return rc < 0 ? rc : 1;
}

static int refuse(const struct model_file *file, const char *name, const char *path, const struct buffer *was,
                  struct error *e)
{
    struct error why = { 0 };

    if (!file)
        return error_set(e, ERR_ARG,
                         "--model %s: the checkpoint is of a model file, %s; use --model %s, or start anew with "
                         "--resume never",
                         name, path, path);
    if (model_file_same(file->text, file->length, buffer_text(was), was->length, &why))
        return OK;
    return error_set(e, ERR_ARG,
                     "--model %s: %s; the checkpoint is of %s. Use that file, or start anew with --resume never",
                     file->path, why.message, path);
}

/* Sets path, and reads the copy as read_copy(). */
static int find_copy(const char *checkpoint_directory, char path[PATH_MAX], struct buffer *was, struct error *e)
{
    const int rc = file_join(path, PATH_MAX, checkpoint_directory, CHECKPOINT_MODEL_FILE, e);

    return rc < 0 ? rc : read_copy(path, was, e);
}

int own_model_check(const struct model_file *file, const char *name, const char *checkpoint_directory, struct error *e)
{
    struct buffer was = BUFFER_EMPTY;
    char path[PATH_MAX];
    int rc = find_copy(checkpoint_directory, path, &was, e);

    if (rc > 0)
        rc = refuse(file, name, path, &was, e);
    buffer_release(&was);
    return rc;
}

int own_model_keep(const struct model_file *file, const char *name, const char *checkpoint_directory, struct error *e)
{
    struct buffer was = BUFFER_EMPTY;
    char path[PATH_MAX];
    const int found = find_copy(checkpoint_directory, path, &was, e);
    int rc = found < 0 ? found : OK;

    if (found > 0 && !file)
        rc = error_set(e, ERR_ARG,
                       "--model %s: %s is of an earlier training of a model file; remove it, or use another directory",
                       name, path);
    else if (rc == OK && file &&
             !(found && was.length == file->length && !memcmp(buffer_text(&was), file->text, was.length)))
        rc = file_replace(NULL, path, file->text, file->length, e);
    buffer_release(&was);
    return rc;
}
