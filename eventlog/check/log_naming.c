#include "eventlog/check/log_naming.h"

#include "base/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static int all_digits(const char *from, const char *to)
{
    if (from == to)
        return 0;
    for (; from < to; from++)
        if (!isdigit((unsigned char)*from))
            return 0;
    return 1;
}

int log_naming_order_broken(const char *former, const char *name)
{
    size_t same = 0, start;
    const char *a, *b;
    unsigned long long first, second;

    while (former[same] && former[same] == name[same])
        same++;
    for (start = same; start && name[start - 1] != '.'; start--)
        ;
    a = former + start + strcspn(former + start, ".");
    b = name + start + strcspn(name + start, ".");
    if (!all_digits(former + start, a) || !all_digits(name + start, b))
        return 0;
    first = strtoull(former + start, NULL, 10);
    second = strtoull(name + start, NULL, 10);
    if (first <= second)
        return 0;
    if (start >= 9 && !strncmp(name + start - 9, "tfevents.", 9))
        return 1;
    for (const char *p = b; *p;) { /* another number follows: this one is not a counter */
        const char *from = p + 1, *to = from + strcspn(from, ".");

        if (all_digits(from, to))
            return 0;
        p = to;
    }
    return 1;
}

int log_naming_is_copy(const char *name)
{
    static const char *const endings[] = { ".bak",    ".orig", ".old", ".swp", ".tmp",  ".save",
                                           ".backup", "~",     ".gz",  ".zst", ".part", ".partial" };
    size_t n = strlen(name);

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (text_stem(name, n, endings[i]))
            return 1;
    return 0;
}

int log_naming_is_hidden(const char *run)
{
    for (const char *p = run; *p; p += strcspn(p, "/"), p += *p == '/')
        if (*p == '.' && p[1] && p[1] != '/')
            return 1;
    return 0;
}
