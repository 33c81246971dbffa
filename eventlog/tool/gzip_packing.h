/*
 * gzip_packing.h - compresses a stream with gzip while more of it is made: blocks of 1 MiB become members of the file
 * (RFC 1952, 2.2: a file is a series of members, which readers join), packed by as many threads as there are cores, by
 * libdeflate or, where that is missing, by zlib. Equal bytes give an equal file, on any number of cores. No thread is
 * started for the first block. For one thread at a time.
 */
#ifndef EVENTLOG_TOOL_GZIP_PACKING_H
#define EVENTLOG_TOOL_GZIP_PACKING_H

#include "base/error.h"

#include <stddef.h>

enum { GZIP_PACKING_LEVEL_MAX = 9 };

struct gzip_packing;

/* level: 1, quick, to 9, small. write gets what has been packed, in order, in the caller's thread. On OK *out is yours:
 * gzip_packing_close(). */
int gzip_packing_open(struct gzip_packing **out, int level, void (*write)(void *context, const void *bytes, size_t n),
                      void *context, struct error *e);

/* For what follows; before anything was added. */
void gzip_packing_level(struct gzip_packing *p, int level);

void gzip_packing_add(struct gzip_packing *p, const void *bytes, size_t n);

/* Packs and writes what is left: at least an empty member. OK, or ERR_NOMEM if something could not be packed. */
int gzip_packing_finish(struct gzip_packing *p, struct error *e);

/* Ends the threads and frees p; NULL is fine. Without gzip_packing_finish(), what has not been written is lost. */
void gzip_packing_close(struct gzip_packing *p);

#endif
