#include "checkpoint/directory/stop_file.h"

#include "base/buffer.h"
#include "base/file.h"
#include "base/json.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 16 };

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
    if (file_read(path, FILE_MAX, &text, &why) != OK ||
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
