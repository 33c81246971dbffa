#include "trainer/training_lock.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/directory_lock.h"
#include "base/file.h"
#include "checkpoint/directory/checkpoint_directory.h"
#include "checkpoint/directory/state_file.h"
#include "trainer/training_status.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 64 << 20 };

int training_lock_take(const char *checkpoint_directory, int take_over, int *fd, struct error *e)
{
    struct training_status s;
    int lives = 0, gone = 0, elsewhere = 0, locked = directory_lock(checkpoint_directory, fd, e);

    if (locked < 0)
        return locked;
    if (training_status_read(checkpoint_directory, clock_wall(), &s, NULL) == 1 && s.state.process.pid > 0) {
        const int running = s.condition == CONDITION_RUNNING || s.condition == CONDITION_SILENT;

        /* A copy of a directory in which this process works names it as well. */
        lives = running && s.process == PROCESS_LIVES && s.state.process.pid != getpid();
        gone = s.process == PROCESS_GONE;
        elsewhere = s.condition == CONDITION_RUNNING && s.process == PROCESS_ELSEWHERE;
    }
    if (!locked && !lives && (!elsewhere || take_over))
        return OK;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    if (locked && gone)
        return TRAINING_LOCK_SAVING;
    if (!lives && !elsewhere)
        return error_set(e, ERR_PEER,
                         "%s: another process has locked the directory, and training.json does not name it",
                         checkpoint_directory);
    return error_set(e, ERR_PEER, "%s: a trainer is already working here, process %" PRId64 " on host %s%s",
                     checkpoint_directory, s.state.process.pid, s.state.process.host,
                     locked || lives ? "" : "; if it is gone, --take-over takes its place");
}

int training_lock_keep(const char *checkpoint_directory, int *fd, struct error *e)
{
    struct stat held, there;
    int rc, other;

    if (stat(checkpoint_directory, &there) == 0 && S_ISDIR(there.st_mode) &&
        (*fd < 0 || fstat(*fd, &held) < 0 || (held.st_ino == there.st_ino && held.st_dev == there.st_dev)))
        return OK;
    if ((rc = file_make_directories(checkpoint_directory, e)) != OK ||
        (rc = training_lock_take(checkpoint_directory, 0, &other, e)) < 0)
        return rc;
    if (rc == TRAINING_LOCK_SAVING)
        return error_set(e, ERR_PEER, "%s: another training is still being saved there", checkpoint_directory);
    if ((rc = training_files_check(checkpoint_directory, e)) != OK) {
        if (other >= 0)
            close(other);
        return rc;
    }
    if (*fd >= 0)
        close(*fd);
    *fd = other;
    return 1;
}

/* Holds the file what a trainer writes? It is training.json or `checkpoint`. */
static int is_own(const char *directory, const char *name, const struct buffer *text)
{
    struct training_state training;
    struct state_file state;

    if (!strcmp(name, TRAINING_STATE_FILE))
        return training_state_read(directory, &training, NULL) >= 0;
    if (state_file_parse(text->data, text->length, &state, NULL) != OK)
        return 0;
    state_file_release(&state);
    return 1;
}

static int blank(const struct buffer *text)
{
    size_t i = 0;

    while (i < text->length && !text->data[i])
        i++;
    return i == text->length;
}

static int check_file(const char *directory, const char *name, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    char path[PATH_MAX];
    struct stat st;
    int rc;

    if ((rc = file_join(path, sizeof path, directory, name, e)) != OK)
        return rc;
    if (lstat(path, &st) < 0)
        return errno == ENOENT ? OK : error_system(e, "%s: cannot read its status", path);
    if (!S_ISREG(st.st_mode))
        return error_set(e, ERR_ARG, "%s: is a link or not a regular file, and would be replaced; move it elsewhere",
                         path);
    if ((rc = file_read(path, FILE_MAX, &text, e)) == OK && !blank(&text) && !is_own(directory, name, &text))
        rc = error_set(e, ERR_ARG, "%s: was not written by a trainer, and would be replaced; move it elsewhere", path);
    buffer_release(&text);
    return rc;
}

/* Temporary names of a trainer that saves, or replaces one of its two other files. */
static int is_half_written(const char *name)
{
    const size_t n = strlen("model.ckpt-");
    const char *end = name + n;

    if (file_replace_leaves(name, TRAINING_STATE_FILE) || file_replace_leaves(name, "checkpoint") ||
        file_replace_leaves(name, CHECKPOINT_MODEL_FILE))
        return 1;
    if (strncmp(name, "model.ckpt-", n))
        return 0;
    end += strspn(end, "0123456789");
    return !strcmp(end, ".index.tempstate0") || !strcmp(end, ".data-00000-of-00001.tempstate0");
}

void training_files_tidy(const char *checkpoint_directory)
{
    DIR *d = opendir(checkpoint_directory);

    for (struct dirent *entry; d && (entry = readdir(d));)
        if (is_half_written(entry->d_name))
            unlinkat(dirfd(d), entry->d_name, 0);
    if (d)
        closedir(d);
}

int training_files_check(const char *checkpoint_directory, struct error *e)
{
    int rc = check_file(checkpoint_directory, TRAINING_STATE_FILE, e);

    return rc == OK ? check_file(checkpoint_directory, "checkpoint", e) : rc;
}
