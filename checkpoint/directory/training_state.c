#include "checkpoint/directory/training_state.h"

#include "base/buffer.h"
#include "base/file.h"
#include "base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- stop file --------------------------------------------------------------------------------------------------- */

enum { STOP_FILE_MAX = 1 << 16 };

static const char file_name[] = "stop.json";

static void get_text(const json_t *object, const char *name, char *out, size_t size)
{
    const json_t *v = json_object_get(object, name);

    snprintf(out, size, "%s", json_is_string(v) ? json_string_value(v) : "");
}

static int64_t get_integer(const json_t *object, const char *name)
{
    const json_t *v = json_object_get(object, name);

    return json_is_integer(v) ? json_integer_value(v) : 0;
}

static double get_number(const json_t *object, const char *name)
{
    const json_t *v = json_object_get(object, name);

    return json_is_number(v) ? json_number_value(v) : 0;
}

int stop_file_parse(const char *path, const char *text, size_t n, struct stop_file *out, struct error *e)
{
    json_error_t where;
    json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &where);

    memset(out, 0, sizeof *out);
    if (!root)
        return error_set(e, ERR_CORRUPT, "%s: line %d, column %d: %s", path, where.line, where.column, where.text);
    get_text(root, "reason", out->reason, sizeof out->reason);
    get_text(root, "metric", out->metric, sizeof out->metric);
    get_text(root, "best_checkpoint", out->best_checkpoint, sizeof out->best_checkpoint);
    out->best_value = get_number(root, "best_value");
    out->best_step = get_integer(root, "best_step");
    out->step = get_integer(root, "step");
    out->written = get_number(root, "written");
    json_decref(root);
    return *out->reason ? OK : error_set(e, ERR_CORRUPT, "%s: has no \"reason\"", path);
}

int stop_file_read(const char *checkpoint_directory, struct stop_file *out, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    struct error why = { 0 };
    char path[PATH_MAX];
    int rc;

    memset(out, 0, sizeof *out);
    if ((rc = file_join(path, sizeof path, checkpoint_directory, file_name, e)) != OK)
        return rc;
    if (access(path, F_OK) < 0)
        return errno == ENOENT || errno == ENOTDIR ? 0 : error_system(e, "%s: cannot open", path);
    if (file_read(path, STOP_FILE_MAX, &text, &why) != OK ||
        stop_file_parse(path, buffer_text(&text), text.length, out, &why) != OK)
        snprintf(out->reason, sizeof out->reason, "%.*s", (int)sizeof out->reason - 1, why.message);
    buffer_release(&text);
    return 1;
}

static void put_text(struct buffer *b, const char *name, const char *text)
{
    buffer_format(b, ", \"%s\": ", name);
    json_text(b, text);
}

static void put_number(struct buffer *b, const char *name, double x)
{
    buffer_format(b, ", \"%s\": ", name);
    json_double(b, x);
}

int stop_file_write(const char *checkpoint_directory, const struct stop_file *s, struct error *e)
{
    struct buffer text = BUFFER_EMPTY;
    char path[PATH_MAX], host[65] = "";
    int rc;

    if ((rc = file_join(path, sizeof path, checkpoint_directory, file_name, e)) != OK)
        return rc;
    if (gethostname(host, sizeof host - 1) < 0)
        *host = '\0';
    buffer_append_text(&text, "{\"reason\": ");
    json_text(&text, s->reason);
    put_text(&text, "metric", s->metric);
    put_number(&text, "best_value", s->best_value);
    buffer_format(&text, ", \"best_step\": %lld", (long long)s->best_step);
    put_text(&text, "best_checkpoint", s->best_checkpoint);
    buffer_format(&text, ", \"step\": %lld", (long long)s->step);
    put_text(&text, "host", host);
    buffer_format(&text, ", \"pid\": %lld", (long long)getpid());
    put_number(&text, "written", s->written);
    buffer_append_text(&text, "}\n");
    rc = buffer_ok(&text) ? file_replace(NULL, path, text.data, text.length, e) : error_memory(e, path, "to write it");
    buffer_release(&text);
    return rc;
}

/* ---- training state ---------------------------------------------------------------------------------------------- */

enum { FILE_MAX = 1 << 20 };

enum kind { TEXT, INTEGER, NUMBER };

/* In the order in which they are written. known: left out where the text is empty, or the number not above 0. */
static const struct member {
    const char *name;
    enum kind kind;
    int known;
    size_t place, size; /* in the struct */
} members[] = {
#define MEMBER(name, kind, known, member) \
    { \
        name, kind, known, offsetof(struct training_state, member), sizeof((struct training_state *)0)->member \
    }
    MEMBER("state", TEXT, 0, state),
    MEMBER("host", TEXT, 0, process.host),
    MEMBER("pid", INTEGER, 0, process.pid),
    MEMBER("process_start", INTEGER, 0, process.start),
    MEMBER("boot", TEXT, 1, process.boot),
    MEMBER("global_step", INTEGER, 0, global_step),
    MEMBER("max_steps", INTEGER, 0, max_steps),
    MEMBER("run_option", TEXT, 1, run_option),
    MEMBER("world_size", INTEGER, 0, world_size),
    MEMBER("started", NUMBER, 0, started),
    MEMBER("updated", NUMBER, 0, updated),
    MEMBER("stepped", NUMBER, 1, stepped),
    MEMBER("steps_per_second", NUMBER, 1, steps_per_second),
    MEMBER("images_per_second", NUMBER, 1, images_per_second),
    MEMBER("reason", TEXT, 1, reason),
    MEMBER("signal", TEXT, 1, signal),
    MEMBER("model", TEXT, 1, model),
    MEMBER("data", TEXT, 1, data),
    MEMBER("data_dir", TEXT, 1, data_dir),
    MEMBER("data_options", TEXT, 1, data_options),
    MEMBER("optimizer", TEXT, 1, optimizer),
    MEMBER("batch_size", INTEGER, 1, batch_size),
    MEMBER("learning_rate", NUMBER, 1, learning_rate),
};
enum { MEMBERS = sizeof members / sizeof *members };

/* 1: the value is at its place; 0: it is of another type. */
static int take(const struct member *m, const json_t *value, char *at)
{
    const int64_t integer = json_integer_value(value);
    const double number = json_number_value(value);

    if (m->kind == TEXT      ? !json_is_string(value)
        : m->kind == INTEGER ? !json_is_integer(value)
                             : !json_is_number(value))
        return 0;
    if (m->kind == TEXT)
        snprintf(at, m->size, "%s", json_string_value(value));
    else
        memcpy(at, m->kind == INTEGER ? (const void *)&integer : &number, m->size);
    return 1;
}

/* Members may be missing, but what is there must have its type. */
static int decode(const char *path, const json_t *root, struct training_state *out, struct error *e)
{
    int odd = 0;

    out->process.start = -1;
    for (int i = 0; i < MEMBERS; i++) {
        const json_t *value = json_object_get(root, members[i].name);

        odd |= value && !take(&members[i], value, (char *)out + members[i].place);
    }
    if (strcmp(out->state, "running") != 0 && strcmp(out->state, "finished") != 0 &&
        strcmp(out->state, "stopped") != 0 && strcmp(out->state, "failed") != 0)
        return error_set(e, ERR_CORRUPT, "%s: \"state\" is not one of running, finished, stopped, failed", path);
    return odd ? error_set(e, ERR_CORRUPT, "%s: a member has the wrong type", path) : 1;
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

static void append(struct buffer *b, const struct member *m, const char *at)
{
    int64_t integer = 0;
    double number = 0;

    if (m->kind != TEXT)
        memcpy(m->kind == INTEGER ? (void *)&integer : &number, at, m->size);
    if (m->known && !(m->kind == TEXT ? *at : integer > 0 || number > 0))
        return;
    buffer_format(b, "%s\"%s\": ", b->length ? ", " : "{", m->name);
    if (m->kind == TEXT)
        json_text(b, at);
    else if (m->kind == INTEGER)
        buffer_format(b, "%" PRId64, integer);
    else
        json_double(b, number);
}

int training_state_write(const char *checkpoint_directory, const struct training_state *s, struct error *e)
{
    struct training_state known = *s;
    struct buffer text = BUFFER_EMPTY;
    char path[PATH_MAX];
    int rc;

    if ((rc = file_join(path, sizeof path, checkpoint_directory, TRAINING_STATE_FILE, e)) != OK)
        return rc;
    if (!(known.stepped > 0))
        known.steps_per_second = known.images_per_second = 0;
    for (int i = 0; i < MEMBERS; i++)
        append(&text, &members[i], (const char *)&known + members[i].place);
    buffer_append_text(&text, "}\n");
    rc = buffer_ok(&text) ? file_replace(NULL, path, text.data, text.length, e) : error_memory(e, path, "to write it");
    buffer_release(&text);
    return rc;
}

void training_state_tidy(const char *checkpoint_directory, const struct process *killed)
{
    char path[PATH_MAX];

    if (file_join(path, sizeof path, checkpoint_directory, TRAINING_STATE_FILE, NULL) == OK)
        file_replace_tidy(path, killed->pid);
}
