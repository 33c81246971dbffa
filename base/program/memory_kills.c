#include "base/program/memory_kills.h"

#include "base/buffer.h"
#include "base/file.h"
#include "base/human.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MAX_BYTES = 64 << 10 };

/* The versions' names: how /proc/self/cgroup's line goes on after the number, where they are mounted, and the files. */
static const struct version {
    const char *line, *mount, *kills, *limit;
} versions[] = {
    { ":memory:", "/sys/fs/cgroup/memory", "memory.oom_control", "memory.limit_in_bytes" },
    { "::", "/sys/fs/cgroup", "memory.events", "memory.max" },
};

/* The number after `name` at the beginning of a line; -1: there is none. */
static int64_t number_after(const char *text, const char *name)
{
    const size_t length = strlen(name);

    for (; text; text = strchr(text, '\n'), text = text ? text + 1 : NULL)
        if (!strncmp(text, name, length) && text[length] >= '0' && text[length] <= '9')
            return strtoll(text + length, NULL, 10);
    return -1;
}

/* A number of this process's group; in a container the mount shows that alone, under no path. -1: not known. */
static int64_t group_number(const struct version *v, const char *file, const char *name)
{
    struct buffer groups = BUFFER_EMPTY, text = BUFFER_EMPTY;
    char path[PATH_MAX];
    const char *line = NULL;
    int64_t n = -1;
    int length;

    if (file_read("/proc/self/cgroup", FILE_MAX_BYTES, &groups, NULL) == OK)
        line = strstr(buffer_text(&groups), v->line);
    if (line) {
        line += strlen(v->line);
        length = (int)strcspn(line, "\n");
        snprintf(path, sizeof path, "%s%.*s/%s", v->mount, length, line, file);
        if (file_read(path, FILE_MAX_BYTES, &text, NULL) != OK) {
            snprintf(path, sizeof path, "%s/%s", v->mount, file);
            file_read(path, FILE_MAX_BYTES, &text, NULL);
        }
        n = number_after(buffer_text(&text), name);
    }
    buffer_release(&groups);
    buffer_release(&text);
    return n;
}

/* The version that counts here; NULL: none. */
static const struct version *counting(int64_t *kills)
{
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        if ((*kills = group_number(&versions[i], versions[i].kills, "oom_kill ")) >= 0)
            return &versions[i];
    *kills = 0;
    return NULL;
}

int64_t memory_kills(void)
{
    int64_t kills;

    counting(&kills);
    return kills;
}

const char *memory_kills_text(int64_t before, char *out)
{
    int64_t kills, limit;
    const struct version *v = counting(&kills);
    char bytes[HUMAN_TEXT_MAX], of[64] = "";

    *out = '\0';
    if (!v || kills <= before)
        return out;
    limit = group_number(v, v->limit, "");
    if (limit >= 0 && limit < INT64_MAX / 2) /* v1 has a number for none; v2 says max */
        snprintf(of, sizeof of, " (limit of its control group: %s)", human_bytes((uint64_t)limit, bytes));
    snprintf(out, MEMORY_KILLS_TEXT_MAX, "; the kernel ended a process here for lack of memory%s", of);
    return out;
}
