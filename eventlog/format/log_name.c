#include "eventlog/format/log_name.h"

#include "base/file.h"

#include <stdio.h>
#include <string.h>

size_t log_name_length(const char *path)
{
    size_t n = strlen(path);

    return n > 3 && !strcmp(path + n - 3, ".gz") ? n - 3 : n > 4 && !strcmp(path + n - 4, ".zst") ? n - 4 : n;
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
