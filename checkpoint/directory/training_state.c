#include "checkpoint/directory/training_state.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { FILE_MAX = 1 << 20 };

/* Members may be missing, but what is there must have its type. 1: it was there, 0: not, -1: of another type. */
static int training_state_get_text(const json_t *object, const char *name, char *out, size_t size)
{
    const json_t *v = json_object_get(object, name);

    *out = '\0';
    if (!v)
        return 0;
    if (!json_is_string(v))
        return -1;
    snprintf(out, size, "%s", json_string_value(v));
    return 1;
}

static int training_state_get_integer(const json_t *object, const char *name, int64_t *out)
{
    const json_t *v = json_object_get(object, name);

    *out = 0;
    if (!v)
        return 0;
    if (!json_is_integer(v))
        return -1;
    *out = json_integer_value(v);
    return 1;
}

static int training_state_get_number(const json_t *object, const char *name, double *out)
{
    const json_t *v = json_object_get(object, name);

    *out = 0;
    if (!v)
        return 0;
    if (!json_is_number(v))
        return -1;
    *out = json_number_value(v);
    return 1;
}

/* Which process writes it; any of its members may be missing. */
static int get_process(const json_t *root, struct process *out)
{
    const int started = training_state_get_integer(root, "process_start", &out->start);

    if (started == 0)
        out->start = -1;
    if (started < 0 || training_state_get_text(root, "host", out->host, sizeof out->host) < 0 ||
        training_state_get_integer(root, "pid", &out->pid) < 0 ||
        training_state_get_text(root, "boot", out->boot, sizeof out->boot) < 0)
        return -1;
    return 1;
}

static int decode(const char *path, const json_t *root, struct training_state *out, struct error *e)
{
    if (training_state_get_text(root, "state", out->state, sizeof out->state) != 1 ||
        (strcmp(out->state, "running") != 0 && strcmp(out->state, "finished") != 0 &&
         strcmp(out->state, "stopped") != 0 && strcmp(out->state, "failed") != 0))
        return error_set(e, ERR_CORRUPT, "%s: \"state\" is not one of running, finished, stopped, failed", path);
    if (get_process(root, &out->process) < 0 ||
        training_state_get_text(root, "run_option", out->run_option, sizeof out->run_option) < 0 ||
        training_state_get_integer(root, "global_step", &out->global_step) < 0 ||
        training_state_get_integer(root, "max_steps", &out->max_steps) < 0 ||
        training_state_get_text(root, "reason", out->reason, sizeof out->reason) < 0 ||
        training_state_get_text(root, "signal", out->signal, sizeof out->signal) < 0 ||
        training_state_get_text(root, "model", out->model, sizeof out->model) < 0 ||
        training_state_get_text(root, "data", out->data, sizeof out->data) < 0 ||
        training_state_get_text(root, "optimizer", out->optimizer, sizeof out->optimizer) < 0 ||
        training_state_get_integer(root, "batch_size", &out->batch_size) < 0 ||
        training_state_get_number(root, "learning_rate", &out->learning_rate) < 0 ||
        training_state_get_integer(root, "world_size", &out->world_size) < 0 ||
        training_state_get_number(root, "started", &out->started) < 0 ||
        training_state_get_number(root, "updated", &out->updated) < 0 ||
        training_state_get_number(root, "stepped", &out->stepped) < 0 ||
        training_state_get_number(root, "steps_per_second", &out->steps_per_second) < 0 ||
        training_state_get_number(root, "images_per_second", &out->images_per_second) < 0)
        return error_set(e, ERR_CORRUPT, "%s: a member has another type than a training state has", path);
    return 1;
}

int training_state_read(const char *checkpoint_directory, struct training_state *out, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    struct error why = { 0 };
    char path[PATH_MAX];
    json_error_t where;
    json_t *root;
    int rc;

    memset(out, 0, sizeof *out);
    if ((rc = file_join(path, sizeof path, checkpoint_directory, TRAINING_STATE_FILE, e)) != OK)
        return rc;
    if ((rc = file_read(path, FILE_MAX, &text, &why)) != OK) {
        buffer_release(&text);
        return why.system == ENOENT ? 0 : error_copy(e, &why);
    }
    root = json_loadb(buffer_text(&text), text.length, JSON_REJECT_DUPLICATES, &where);
    buffer_release(&text);
    if (!root)
        return error_set(e, ERR_CORRUPT, "%s: line %d, column %d: %s", path, where.line, where.column, where.text);
    rc = decode(path, root, out, e);
    json_decref(root);
    return rc;
}

static void training_state_put_number(struct buffer *b, const char *name, double value)
{
    buffer_format(b, ", \"%s\": ", name);
    json_double(b, value);
}

/* Left out when empty. */
static void training_state_put_text(struct buffer *b, const char *name, const char *text)
{
    if (!*text)
        return;
    buffer_format(b, ", \"%s\": ", name);
    json_text(b, text);
}

static void format(const struct training_state *s, struct buffer *out)
{
    buffer_append_text(out, "{\"state\": ");
    json_text(out, s->state);
    buffer_append_text(out, ", \"host\": ");
    json_text(out, s->process.host);
    buffer_format(out, ", \"pid\": %" PRId64 ", \"process_start\": %" PRId64, s->process.pid, s->process.start);
    training_state_put_text(out, "boot", s->process.boot);
    buffer_format(out, ", \"global_step\": %" PRId64 ", \"max_steps\": %" PRId64, s->global_step, s->max_steps);
    training_state_put_text(out, "run_option", s->run_option);
    buffer_format(out, ", \"world_size\": %" PRId64, s->world_size);
    training_state_put_number(out, "started", s->started);
    training_state_put_number(out, "updated", s->updated);
    if (s->stepped > 0) {
        training_state_put_number(out, "stepped", s->stepped);
        training_state_put_number(out, "steps_per_second", s->steps_per_second);
        training_state_put_number(out, "images_per_second", s->images_per_second);
    }
    training_state_put_text(out, "reason", s->reason);
    training_state_put_text(out, "signal", s->signal);
    training_state_put_text(out, "model", s->model);
    training_state_put_text(out, "data", s->data);
    training_state_put_text(out, "optimizer", s->optimizer);
    if (s->batch_size > 0)
        buffer_format(out, ", \"batch_size\": %" PRId64, s->batch_size);
    if (s->learning_rate > 0)
        training_state_put_number(out, "learning_rate", s->learning_rate);
    buffer_append_text(out, "}\n");
}

int training_state_write(const char *checkpoint_directory, const struct training_state *s, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    char path[PATH_MAX];
    int rc;

    if ((rc = file_join(path, sizeof path, checkpoint_directory, TRAINING_STATE_FILE, e)) != OK)
        return rc;
    format(s, &text);
    rc = buffer_ok(&text) ? file_replace(NULL, path, text.data, text.length, e)
                          : error_memory(e, path, "to write it");
    buffer_release(&text);
    return rc;
}

int training_state_fail_dead(const char *checkpoint_directory, const char *reason)
{
    struct training_state s;

    if (training_state_read(checkpoint_directory, &s, NULL) != 1 || strcmp(s.state, "running") != 0 ||
        s.process.pid <= 0 || process_judge(&s.process) != PROCESS_GONE)
        return 0;
    snprintf(s.state, sizeof s.state, "failed");
    snprintf(s.reason, sizeof s.reason, "%s", reason);
    s.updated = clock_wall();
    return training_state_write(checkpoint_directory, &s, NULL) == OK;
}
