#include "evaluator/watch/step_rule.h"

#include "evaluator/files/python_json.h"
#include "evaluator/watch/ready_rule.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

int step_rule_parse(struct step_rule *out, const char *from, int64_t scale, int64_t offset, struct error *e)
{
    const char *colon = from ? strrchr(from, ':') : NULL;

    *out = (struct step_rule){
        .from = STEP_FROM_NAME, .scale = scale ? scale : 1, .offset = offset, .scaled = scale || offset
    };
    if (!from)
        return OK;
    if (!strcmp(from, "count")) {
        out->from = STEP_FROM_COUNT;
    } else if (!strcmp(from, "mtime")) {
        out->from = STEP_FROM_MTIME;
    } else if (!colon || colon == from || !colon[1] || (size_t)(colon - from) >= sizeof out->file) {
        return error_set(e, ERR_ARG, "--step-from '%.200s': use FILE:KEY, count or mtime", from);
    } else {
        out->from = STEP_FROM_FILE;
        snprintf(out->file, sizeof out->file, "%.*s", (int)(colon - from), from);
        out->key = colon + 1;
    }
    return OK;
}

int64_t step_rule_step(const struct step_rule *r, int64_t number)
{
    int64_t step;

    if (number < 0 || __builtin_mul_overflow(number, r->scale, &step) ||
        __builtin_add_overflow(step, r->offset, &step) || step < 0)
        return -1;
    return step;
}

int64_t step_rule_number(const struct step_rule *r, int64_t step)
{
    int64_t scaled;

    if (step < 0 || __builtin_sub_overflow(step, r->offset, &scaled) || scaled < 0)
        return -1;
    return scaled / r->scale;
}

int step_rule_path(const struct step_rule *r, const char *name, int is_directory, char *out, size_t size)
{
    if (strstr(r->file, "{name}"))
        return ready_rule_fill(r->file, name, -1, out, size);
    return snprintf(out, size, "%s%s%s", is_directory ? name : "", is_directory ? "/" : "", r->file) < (int)size;
}

/* The value at a dotted path of members; also finds members with dots in their names. Borrowed; NULL: none. */
static const json_t *find(const json_t *value, const char *key)
{
    const json_t *found = json_object_get(value, key);

    for (const char *dot = key; !found && (dot = strchr(dot, '.')); dot++) {
        const json_t *member = json_object_getn(value, key, (size_t)(dot - key));

        if (json_is_object(member))
            found = find(member, dot + 1);
    }
    return found;
}

int step_rule_find(const struct step_rule *r, const char *path, const char *bytes, size_t n, int64_t *out,
                   struct error *e)
{
    json_error_t why;
    json_t *root = python_json_parse(bytes, n, JSON_ALLOW_NUL, &why);
    const json_t *value = root ? find(root, r->key) : NULL;
    double number = json_number_value(value);
    int rc = OK;

    if (!root)
        rc = error_set(e, ERR_CORRUPT, "%.200s is not complete JSON: line %d: %s", path, why.line, why.text);
    else if (!value)
        rc = error_set(e, ERR_CORRUPT, "%.200s has no member '%.100s'", path, r->key);
    else if ((json_typeof(value) != JSON_INTEGER && json_typeof(value) != JSON_REAL) || number < 0 || number > 9e15 ||
             number != floor(number))
        rc = error_set(e, ERR_CORRUPT, "%.200s: '%.100s' is not a whole number", path, r->key);
    else
        *out = (int64_t)number; /* up to there a double holds every integer exactly */
    json_decref(root);
    return rc;
}
