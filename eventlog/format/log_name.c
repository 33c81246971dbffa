#include "eventlog/format/log_name.h"

#include "base/file.h"
#include "base/number.h"

#include <stdio.h>
#include <string.h>

size_t log_name_length(const char *path)
{
    static const char *const endings[] = { LOG_NAME_ENDINGS };
    size_t n = strlen(path);

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t ending = strlen(endings[i]);

        if (n > ending && !strcmp(path + n - ending, endings[i]))
            return n - ending;
    }
    return n;
}

int log_name_same(const char *a, const char *b)
{
    size_t n = log_name_length(a);

    return log_name_length(b) == n && !memcmp(a, b, n);
}

const char *log_name_plain(char *out, const char *path)
{
    const char *base = strcmp(path, "-") != 0 ? file_base_name(path) : "events.out.tfevents.0000000000.stdin";

    snprintf(out, LOG_NAME_MAX, "%.*s", (int)log_name_length(base), base);
    return out;
}

/* Takes the last part, a number, off a name that ends there; -1: it is none. */
static int64_t take_number(char *name)
{
    char *dot = strrchr(name, '.');
    int64_t n;

    if (!dot || !number_parse_int(dot + 1, &n) || n < 0)
        return -1;
    *dot = '\0';
    return n;
}

int64_t log_name_writer(const char *path, char *host)
{
    static const char before[] = "tfevents.", version[] = ".v2";
    char name[LOG_NAME_MAX], *at, *end;
    int64_t process;

    log_name_plain(name, path);
    end = name + strlen(name);
    if (end - name > (long)strlen(version) && !strcmp(end - strlen(version), version))
        end[-(long)strlen(version)] = '\0';
    if (!(at = strstr(name, before)) || take_number(at) < 0 || (process = take_number(at)) <= 0)
        return 0;
    at += strlen(before);
    if (!(at = strchr(at, '.')) || !at[1]) /* behind the seconds */
        return 0;
    snprintf(host, LOG_NAME_MAX, "%s", at + 1);
    return process;
}
