#include "eventlog/write/event_name.h"

#include "base/bytes.h"
#include "base/clock.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNTER_MAX = 999999 };

static const char PREFIX[] = "events.out.tfevents.";
enum { PREFIX_LENGTH = sizeof PREFIX - 1, SECONDS_DIGITS = 10 };
static const long long SECONDS_MAX = 9999999998;

/* The seconds in the name of an event file, or -1 if the name does not have that pattern. */
static long long name_seconds(const char *name)
{
    char digits[SECONDS_DIGITS + 1];

    if (strncmp(name, PREFIX, PREFIX_LENGTH) != 0)
        return -1;
    memcpy(digits, name + PREFIX_LENGTH, strnlen(name + PREFIX_LENGTH, SECONDS_DIGITS));
    for (int i = 0; i < SECONDS_DIGITS; i++)
        if (!isdigit((unsigned char)name[PREFIX_LENGTH + i]))
            return -1;
    digits[SECONDS_DIGITS] = '\0';
    return name[PREFIX_LENGTH + SECONDS_DIGITS] == '.' ? strtoll(digits, NULL, 10) : -1;
}

/* Remembers the name if it has the pattern and is greater. */
static void take_greater(const char *name, char *out, size_t size)
{
    long long seconds = name_seconds(name);

    if (seconds >= 0 && seconds < SECONDS_MAX && strcmp(name, out) > 0 && strlen(name) < size)
        strcpy(out, name);
}

/* The name of the current file if it has the pattern, else the greatest one in the directory; "" if there is none or
 * the directory cannot be listed: O_EXCL decides in any case. */
static void greatest_name(const char *directory, const char *current, char *out, size_t size)
{
    DIR *d;

    *out = '\0';
    if (current)
        take_greater(current, out, size);
    if (*out || !directory || !(d = opendir(directory)))
        return;
    for (struct dirent *entry; (entry = readdir(d));)
        take_greater(entry->d_name, out, size);
    closedir(d);
}

static void host_name(char *host, size_t size)
{
    *host = '\0';
    if (gethostname(host, size - 1) < 0 || !*host || !utf8_valid(host, strlen(host), NULL))
        strcpy(host, "localhost");
    for (char *p = host; *p; p++)
        if (*p == '/')
            *p = '_';
}

static int write_name(const struct event_name *p, const char *directory, const char *suffix, char *out, size_t size,
                      struct error *e)
{
    int n = snprintf(out, size, "%s%010lld.%s.%ld.%06ld%s", PREFIX, p->seconds, p->host, p->pid, p->counter, suffix);

    return n >= 0 && (size_t)n < size
               ? OK
               : error_set(e, ERR_ARG, "%s: file name too long with the suffix '%.40s...'", directory, suffix);
}

int event_name_first(struct event_name *p, const char *directory, const char *suffix, const char *current, char *out,
                     size_t size, struct error *e)
{
    char greatest[NAME_MAX + 1], host[HOST_NAME_MAX + 32];
    long long there;
    size_t n;

    *p = (struct event_name){ .seconds = (long long)clock_wall(), .pid = (long)getpid() };
    host_name(p->host, sizeof p->host);
    greatest_name(directory, current, greatest, sizeof greatest);
    there = *greatest ? name_seconds(greatest) : -1;
    if (there > p->seconds)
        p->seconds = there;
    n = (size_t)snprintf(host, sizeof host, "%s.%ld.", p->host, p->pid);
    if (there == p->seconds && strncmp(greatest + PREFIX_LENGTH + SECONDS_DIGITS + 1, host, n) == 0) {
        const char *digits = greatest + PREFIX_LENGTH + SECONDS_DIGITS + 1 + n;

        if (isdigit((unsigned char)*digits))
            p->counter = strtol(digits, NULL, 10) % COUNTER_MAX + 1;
    }
    if (write_name(p, directory, suffix, out, size, e) != OK)
        return ERR_ARG;
    if (strcmp(out, greatest) > 0)
        return OK;
    p->seconds++;
    p->counter = 0;
    return write_name(p, directory, suffix, out, size, e);
}

int event_name_next(struct event_name *p, const char *directory, const char *suffix, char *out, size_t size,
                    struct error *e)
{
    if (++p->counter > COUNTER_MAX)
        return error_set(e, ERR_IO, "%s: no free name for another event file in this second", directory);
    return write_name(p, directory, suffix, out, size, e);
}
