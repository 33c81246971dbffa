/*
 * log_repair.h - a damaged event file as a sound one: every record whose CRCs are right and at which no loader gives
 * up, byte for byte and in order; what else is in the file is left out. A record that was torn and written over by
 * later appends costs only itself: where a length leads nowhere, the bytes it covers are searched for whole records.
 */
#ifndef EVENTLOG_REWRITE_LOG_REPAIR_H
#define EVENTLOG_REWRITE_LOG_REPAIR_H

#include "base/error.h"
#include "base/io.h"
#include "eventlog/read/log_input.h"

#include <stdint.h>

struct log_repair {
    uint64_t size;        /* of the damaged file, bytes */
    uint64_t kept, bytes; /* records in the new one, and their bytes: size - bytes are lost */
    uint64_t places;      /* where framing was broken */
    uint64_t refused;     /* records left out whose CRCs are right: no event, not UTF-8, wall time NaN */
    uint64_t cut;         /* bytes of the tail that were no whole record */
};

/* Writes the sound records of the file at path, as it is now, to fd; `to` names it in errors. */
int log_repair_copy(const struct io *io, const char *path, int fd, const char *to, struct log_repair *r,
                    struct error *e);

/* The same of what log_input_open() opens. ERR_CORRUPT: nothing of it would be left. */
int log_repair_into(struct log_input *in, const char *path, int fd, const char *to, struct log_repair *r,
                    struct error *e);

/* The repaired file, of what log_input_open() opens, under a new name, which appears whole by rename. ERR_ARG: `to`
 * exists and force is 0, or it is the file itself. ERR_IO, ERR_CORRUPT: it is no event file, or nothing of it would be
 * left; nothing is written then. The file at path may still be written: the copy is of this moment. io may be NULL for
 * io_real. */
int log_repair_to(const struct io *io, struct log_input *in, const char *path, const char *to, int force,
                  struct log_repair *r, struct error *e);

/*
 * The repaired file in place of the old one, by rename, with the old one beside it under a name that no TensorBoard
 * reads: log_replace_backup_name(). A sound file is left alone and has no backup (*changed 0). ERR_ARG: somebody has it
 * open for writing (asked of the kernel, so of this machine only), it grew or changed meanwhile, or a backup is there.
 * ERR_IO, ERR_CORRUPT as above.
 * A TensorBoard that runs goes on reading the old file until it is started again.
 */
int log_repair_in_place(const struct io *io, const char *path, int *changed, struct log_repair *r, struct error *e);

#endif
