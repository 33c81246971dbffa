#include "evaluator/watch/ready_rule.h"

#include "base/number.h"
#include "evaluator/files/python_json.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static int begins(const char *text, const char *with, const char **rest)
{
    size_t n = strlen(with);

    *rest = text + n;
    return !strncmp(text, with, n);
}

static int parse_one(struct ready_rule *r, const char *text, int *quiet, struct error *e)
{
    const char *rest;

    if (!strcmp(text, "rename")) {
        r->rename = 1;
        return OK;
    }
    if (begins(text, "marker:", &rest) && *rest) {
        if (r->marker_count == READY_MARKERS_MAX)
            return error_set(e, ERR_ARG, "--ready: more than %d markers", READY_MARKERS_MAX);
        r->markers[r->marker_count++] = rest;
        return OK;
    }
    if (begins(text, "latest:", &rest) && *rest) {
        if (r->latest)
            return error_set(e, ERR_ARG, "--ready latest:FILE is given twice");
        r->latest = rest;
        return OK;
    }
    if (!begins(text, "quiet:", &rest) || !number_parse_double(rest, &r->quiet_seconds) || !(r->quiet_seconds >= 0) ||
        r->quiet_seconds > 1e9)
        return error_set(e, ERR_ARG, "--ready '%s': use quiet:SECONDS, marker:FILE, latest:FILE or rename", text);
    return (*quiet)++ ? error_set(e, ERR_ARG, "--ready quiet:SECONDS is given twice") : OK;
}

int ready_rule_parse(struct ready_rule *out, const char *const *texts, size_t count, struct error *e)
{
    int quiet = 0, rc = OK;

    *out = (struct ready_rule){ .quiet_seconds = count ? 0 : READY_QUIET_SECONDS };
    for (size_t i = 0; rc == OK && i < count; i++)
        rc = parse_one(out, texts[i], &quiet, e);
    return rc;
}

int ready_rule_by_name(const struct ready_rule *r)
{
    return r->rename && !r->marker_count && !r->latest && r->quiet_seconds <= 0;
}

int ready_rule_fill(const char *text, const char *name, int64_t step, char *out, size_t size)
{
    const char *p = text, *rest;
    size_t used = 0;

    *out = '\0';
    while (*p && used < size) {
        if (begins(p, "{name}", &rest))
            used += (size_t)snprintf(out + used, size - used, "%s", name);
        else if (begins(p, "{step}", &rest))
            used += (size_t)snprintf(out + used, size - used, "%lld", (long long)step);
        else
            used += (size_t)snprintf(out + used, size - used, "%c", *(rest = p + 1, p));
        p = rest;
    }
    return used < size;
}

int ready_rule_marker_path(const char *marker, const char *name, int64_t step, int is_directory, char *out, size_t size)
{
    if (strstr(marker, "{name}") || strstr(marker, "{step}"))
        return ready_rule_fill(marker, name, step, out, size);
    return snprintf(out, size, "%s%s%s", name, is_directory ? "/" : *marker == '.' ? "" : ".", marker) < (int)size;
}

int ready_rule_says_json(const char *path, const char *bytes, size_t n)
{
    size_t length = strlen(path), blanks = 0;

    if (length >= 5 && !strcasecmp(path + length - 5, ".json"))
        return 1;
    while (blanks < n && bytes[blanks] && strchr(" \t\r\n", bytes[blanks]))
        blanks++;
    return blanks < n && bytes[blanks] == '{';
}

int ready_rule_changed_after(double changed, double marked)
{
    return changed > marked + 1.5 * READY_TICK_SECONDS;
}

int ready_rule_marker_whole(const char *path, const char *bytes, size_t n, struct error *e)
{
    json_error_t why;
    json_t *value;

    if (!ready_rule_says_json(path, bytes, n))
        return OK;
    if (!(value = python_json_parse(bytes, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why)))
        return error_set(e, ERR_CORRUPT, "its marker %.200s is not complete JSON: line %d: %s", path, why.line,
                         why.text);
    json_decref(value);
    return OK;
}

int ready_rule_latest(const struct pattern *p, const char *bytes, size_t n, int64_t *number)
{
    char text[PATTERN_TEXT_MAX];
    const char *name;

    while (n && strchr(" \t\r\n/", bytes[n - 1]) && bytes[n - 1])
        n--;
    while (n && strchr(" \t\r\n", *bytes) && *bytes)
        bytes++, n--;
    if (!n || n >= sizeof text || memchr(bytes, '\0', n))
        return 0;
    memcpy(text, bytes, n);
    text[n] = '\0';
    name = strrchr(text, '/') ? strrchr(text, '/') + 1 : text;
    return pattern_match(p, name, number) || (number_parse_int(name, number) && *number >= 0);
}
