#include "trainer/launch/resource_info.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SHOWN_MOST = 60 }; /* bytes of a line in an error */

/* Part of a line, and where it is from. */
struct piece {
    const char *text;
    size_t n;
    const char *path;
    size_t line;
};

static int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct piece trimmed(struct piece p)
{
    while (p.n > 0 && is_blank(p.text[0])) {
        p.text++;
        p.n--;
    }
    while (p.n > 0 && is_blank(p.text[p.n - 1]))
        p.n--;
    return p;
}

/* Cuts `p` at the first `mark`, and returns what is before it; *found: 1 if there is one. */
static struct piece cut(struct piece *p, char mark, int *found)
{
    const char *at = p->n > 0 ? memchr(p->text, mark, p->n) : NULL;
    struct piece before = *p;

    *found = at != NULL;
    before.n = at ? (size_t)(at - p->text) : p->n;
    p->text += before.n + (size_t)*found;
    p->n -= before.n + (size_t)*found;
    return before;
}

static int refuse(const struct piece *p, const char *why, struct error *e)
{
    const int n = (int)(p->n < SHOWN_MOST ? p->n : SHOWN_MOST);

    return error_set(e, ERR_ARG, "%s:%zu: '%.*s'%s %s", p->path, p->line, n, p->text, p->n > SHOWN_MOST ? "..." : "",
                     why);
}

static int parse_host(struct resource_info *out, struct piece name, struct resource_host **host, struct error *e)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";

    if (name.n == 0)
        return error_set(e, ERR_ARG, "%s:%zu: no host is before the ':'; write HOST:0,1", name.path, name.line);
    if (memchr(name.text, '@', name.n))
        return refuse(&name, "has a user's name; write the host's alone, and put the user into ~/.ssh/config", e);
    for (size_t i = 0; i < name.n; i++)
        if (!name.text[i] || !strchr(allowed, name.text[i]))
            return refuse(&name, "is not a host's name; write one host per line: HOST, or HOST:0,1", e);
    if (name.text[0] == '-' || name.text[0] == '.' || name.n >= RESOURCE_NAME_MAX)
        return refuse(&name, "cannot be a host's name; write one host per line: HOST, or HOST:0,1", e);
    for (size_t i = 0; i < out->count; i++)
        if (strlen(out->hosts[i].name) == name.n && !strncasecmp(out->hosts[i].name, name.text, name.n))
            return refuse(&name, "is already listed; write all its devices into one line", e);
    if (out->count == RESOURCE_HOSTS_MOST)
        return refuse(&name, "is one host too many; use at most 4096", e);
    if (!ARRAY_ROOM_ZERO(out->hosts, out->capacity, out->count + 1))
        return error_memory(e, name.path, "for %zu hosts", out->count + 1);
    *host = &out->hosts[out->count++];
    memset(*host, 0, sizeof **host);
    memcpy((*host)->name, name.text, name.n);
    return OK;
}

/* The device's number, or -1. */
static int number(struct piece p)
{
    int value = 0;

    p = trimmed(p);
    if (p.n == 0)
        return -1;
    for (size_t i = 0; i < p.n; i++) {
        if (p.text[i] < '0' || p.text[i] > '9')
            return -1;
        value = value * 10 + (p.text[i] - '0');
        if (value >= RESOURCE_DEVICES_MOST)
            return -1;
    }
    return value;
}

/* One item of a list, N or N-M: counts its devices, and marks them in `used`. */
static int parse_item(struct resource_host *host, struct piece item, char *used, struct error *e)
{
    struct piece rest = item;
    int range, first = number(cut(&rest, '-', &range)), last = range ? number(rest) : first;

    if (first < 0 || last < 0)
        return refuse(&item, "is not a device; list devices by numbers from 0 to 1023: HOST:0,1 or HOST:0-3", e);
    if (last < first)
        return refuse(&item, "is an empty range; write the smaller number first", e);
    for (int device = first; device <= last; device++) {
        if (used[device])
            return refuse(&item, "lists a device of this host again; list each once", e);
        used[device] = 1;
        host->devices++;
    }
    return OK;
}

static int parse_line(struct resource_info *out, struct piece line, struct error *e)
{
    char used[RESOURCE_DEVICES_MOST] = { 0 };
    struct resource_host *host = NULL;
    struct piece name;
    int more, rc;

    line = trimmed(cut(&line, '#', &more));
    if (line.n == 0)
        return OK;
    name = trimmed(cut(&line, ':', &more));
    if ((rc = parse_host(out, name, &host, e)) < 0)
        return rc;
    if (!more)
        host->devices = 1;
    while (more && rc == OK)
        rc = parse_item(host, trimmed(cut(&line, ',', &more)), used, e);
    return rc;
}

int resource_info_parse(struct resource_info *out, const char *text, size_t n, const char *path, struct error *e)
{
    struct piece rest = { text, n, path, 1 };
    int more = 1, rc = OK;

    memset(out, 0, sizeof *out);
    for (; more && rc == OK; rest.line++)
        rc = parse_line(out, cut(&rest, '\n', &more), e);
    if (rc == OK && out->count == 0)
        rc = error_set(e, ERR_ARG, "%s: lists no host; write one host per line: HOST, or HOST:0,1", path);
    if (rc < 0)
        resource_info_release(out);
    return rc;
}

void resource_info_release(struct resource_info *r)
{
    free(r->hosts);
    memset(r, 0, sizeof *r);
}

int resource_info_workers(const struct resource_info *r)
{
    int workers = 0; /* at most RESOURCE_HOSTS_MOST * RESOURCE_DEVICES_MOST */

    for (size_t i = 0; i < r->count; i++)
        workers += r->hosts[i].devices;
    return workers;
}

int resource_info_first(struct resource_info *out, const struct resource_info *r, int workers, struct error *e)
{
    const int room = resource_info_workers(r);
    int left = workers;

    *out = (struct resource_info){ 0 };
    if (workers > room)
        return error_set(e, ERR_ARG, "%d workers are too many for hosts with %d device%s", workers, room,
                         room == 1 ? "" : "s");
    if (!(out->hosts = calloc(r->count, sizeof *out->hosts)))
        return error_memory(e, NULL, "for %zu hosts", r->count);
    out->capacity = r->count;
    for (; left > 0; out->count++) {
        struct resource_host *h = &out->hosts[out->count];

        *h = r->hosts[out->count];
        h->devices = h->devices < left ? h->devices : left;
        left -= h->devices;
    }
    return OK;
}

int resource_info_counts(const struct resource_info *r, int *counts)
{
    size_t next = 1;
    int n = 0, workers = 0;

    for (size_t i = 0; i < r->count; i++) {
        workers += r->hosts[i].devices;
        if (i == 0 && workers > 1)
            counts[n++] = 1;
        if (i + 1 == next || i + 1 == r->count) {
            counts[n++] = workers;
            next *= 2;
        }
    }
    return n;
}
