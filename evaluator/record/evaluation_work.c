#include "evaluator/record/evaluation_work.h"

#include "base/file.h"
#include "base/io.h"
#include "base/json.h"

#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORK_LIMIT = 1 << 16 };

static const char file_name[] = "work.json", part_name[] = ".work.json";

/* A whole number that is not negative; -1: none. */
static int64_t work_take_count(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    return json_is_integer(value) && json_integer_value(value) >= 0 ? json_integer_value(value) : -1;
}

static void take_in_hand(const json_t *list, struct evaluation_work *out)
{
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        const char *name = json_string_value(json_object_get(item, "checkpoint"));
        struct work_in_hand *one = &out->in_hand[out->in_hand_count];

        if (out->in_hand_count == WORK_IN_HAND_MAX || !name)
            return;
        json_file_name_read(name, one->checkpoint.name, sizeof one->checkpoint.name);
        one->checkpoint.step = work_take_count(item, "step");
        one->since = json_number_value(json_object_get(item, "since"));
        out->in_hand_count++;
    }
}

int evaluation_work_parse(const char *text, size_t n, struct evaluation_work *out)
{
    json_t *object = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
    int ok;

    memset(out, 0, sizeof *out);
    out->pid = work_take_count(object, "pid");
    out->queued = work_take_count(object, "queued");
    out->not_whole = work_take_count(object, "not_whole");
    out->newest_step = work_take_count(object, "newest_step");
    out->until_step = work_take_count(object, "until_step");
    out->updated = json_number_value(json_object_get(object, "updated"));
    take_in_hand(json_object_get(object, "in_hand"), out);
    ok = json_is_object(object) && out->pid > 0 && out->queued >= 0 && out->not_whole >= 0;
    json_decref(object);
    return ok;
}

static void step(struct buffer *out, const char *name, int64_t value)
{
    if (value >= 0)
        buffer_format(out, ",\"%s\":%" PRId64, name, value);
    else
        buffer_format(out, ",\"%s\":null", name);
}

void evaluation_work_format(const struct evaluation_work *work, struct buffer *out)
{
    buffer_format(out, "{\"pid\":%" PRId64 ",\"updated\":", work->pid);
    json_double(out, work->updated);
    step(out, "queued", work->queued);
    step(out, "not_whole", work->not_whole);
    step(out, "newest_step", work->newest_step);
    step(out, "until_step", work->until_step);
    buffer_append_text(out, ",\"in_hand\":[");
    for (size_t i = 0; i < work->in_hand_count; i++) {
        buffer_append_text(out, i ? ",{\"checkpoint\":" : "{\"checkpoint\":");
        json_file_name(out, work->in_hand[i].checkpoint.name);
        step(out, "step", work->in_hand[i].checkpoint.step);
        buffer_append_text(out, ",\"since\":");
        json_double(out, work->in_hand[i].since);
        buffer_append_text(out, "}");
    }
    buffer_append_text(out, "]}\n");
}

int evaluation_work_same(const struct evaluation_work *a, const struct evaluation_work *b)
{
    int same = a->pid == b->pid && a->queued == b->queued && a->not_whole == b->not_whole &&
               a->newest_step == b->newest_step && a->until_step == b->until_step &&
               a->in_hand_count == b->in_hand_count;

    for (size_t i = 0; same && i < a->in_hand_count; i++)
        same = a->in_hand[i].since == b->in_hand[i].since &&
               checkpoint_identity_same(&a->in_hand[i].checkpoint, &b->in_hand[i].checkpoint);
    return same;
}

int evaluation_work_check(const char *eval_directory, struct error *e)
{
    static const char *const names[] = { file_name, part_name };
    int rc = OK;

    for (size_t i = 0; rc == OK && i < sizeof names / sizeof *names; i++) {
        struct buffer text = BUFFER_EMPTY;
        char path[PATH_MAX];
        struct stat st;

        if ((rc = file_join(path, sizeof path, eval_directory, names[i], e)) == OK && lstat(path, &st) == 0 &&
            (rc = file_read_plain(path, WORK_LIMIT, &text, e)) == OK &&
            !file_begins(buffer_text(&text), text.length, "{\"pid\":"))
            rc = error_set(e, ERR_ARG, "%s: is not a file of the evaluator; move it elsewhere", path);
        buffer_release(&text);
    }
    return rc;
}

/* One temporary name is enough: only the holder of the lock writes it. Not synced: useless after a power cut. */
int evaluation_work_write(const char *eval_directory, const struct evaluation_work *work, struct error *e)
{
    char path[PATH_MAX], part[PATH_MAX];
    struct buffer text = BUFFER_EMPTY;
    int fd, rc;

    if ((rc = file_join(path, sizeof path, eval_directory, file_name, e)) != OK ||
        (rc = file_join(part, sizeof part, eval_directory, part_name, e)) != OK)
        return rc;
    unlink(part); /* left by a killed process; evaluation_work_check() made sure */
    if ((fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) < 0)
        return error_system(e, "%s: cannot create", part);
    evaluation_work_format(work, &text);
    if (!buffer_ok(&text))
        rc = error_memory(e, path, "for it");
    else if (io_write_full(&io_real, fd, text.data, text.length) < 0)
        rc = error_system(e, "%s: cannot write", part);
    close(fd);
    if (rc == OK && rename(part, path) < 0)
        rc = error_system(e, "%s: cannot be renamed to %s", part, path);
    buffer_release(&text);
    return rc;
}

int evaluation_work_read(const char *eval_directory, struct evaluation_work *out)
{
    struct buffer text = BUFFER_EMPTY;
    char path[PATH_MAX];
    int found = file_join(path, sizeof path, eval_directory, file_name, NULL) == OK &&
                file_read(path, WORK_LIMIT, &text, NULL) == OK &&
                evaluation_work_parse(buffer_text(&text), text.length, out);

    buffer_release(&text);
    return found;
}
