/*
 * resource_info.h - reads a list of hosts in the format of Parallax's resource_info: one host per line, and the devices
 * to be used on it.
 *
 *   # any comment, also after a host; blank lines are skipped
 *   node-1:0,1,2        devices 0, 1 and 2: three workers
 *   node-2: 0-3         a range: four workers
 *   node-3              one worker, as node-3:0
 *
 * The first host is the one of rank 0. A host is a name or an IPv4 address. What Parallax takes silently is an error
 * here: a host or a device that is listed twice, and a list that is no list. A host without a list has one worker:
 * there are no devices to be counted on it. Pure.
 */
#ifndef TRAINER_LAUNCH_RESOURCE_INFO_H
#define TRAINER_LAUNCH_RESOURCE_INFO_H

#include "base/error.h"

#include <stddef.h>

enum {
    RESOURCE_HOSTS_MOST = 4096,
    RESOURCE_DEVICES_MOST = 1024, /* on one host, and above every device's number */
    RESOURCE_NAME_MAX = 254,      /* bytes of a host's name with its NUL: of DNS */
};

struct resource_host {
    char name[RESOURCE_NAME_MAX];
    int devices; /* how many: 1 or more */
};

struct resource_info {
    struct resource_host *hosts;
    size_t count, capacity;
};

/* Reads n bytes. `path` names them in errors: ERR_ARG "PATH:LINE: what is wrong; what to do". On OK *out is yours,
 * resource_info_release() it; it has at least one host. */
int resource_info_parse(struct resource_info *out, const char *text, size_t n, const char *path, struct error *e);
void resource_info_release(struct resource_info *r);

/* How many workers the hosts' devices make. */
int resource_info_workers(const struct resource_info *r);

/* Sets *out to the first hosts, which have `workers` devices together; the last one may have fewer than in r. ERR_ARG:
 * r has not so many; ERR_NOMEM. On OK *out is yours, as above. */
int resource_info_first(struct resource_info *out, const struct resource_info *r, int workers, struct error *e);

enum { RESOURCE_COUNTS_MOST = 16 };
/* Numbers of workers that show how hosts scale, ascending: 1, and those of the first 1, 2, 4, ... and of all hosts.
 * Sets counts (RESOURCE_COUNTS_MOST); returns how many there are. */
int resource_info_counts(const struct resource_info *r, int *counts);

#endif
