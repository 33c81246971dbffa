/*
 * log_repair.h - repairs a damaged event file: copies every record with correct CRCs at which no loader gives up, byte
 * for byte and in order, and leaves out the rest. If later appends follow a torn record, only that record is lost:
 * where its length leads nowhere, the bytes that it covers are searched for whole records.
 */
#ifndef EVENTLOG_REWRITE_LOG_REPAIR_H
#define EVENTLOG_REWRITE_LOG_REPAIR_H

#include "base/error.h"
#include "base/io.h"
#include "eventlog/eventlog.h"
#include "eventlog/read/log_input.h"

#include <stdint.h>

/* Writes the sound records of the file at path, as it is now, to fd; `to` names it in errors. *r: what was done; only
 * the last two set r->changed. */
int log_repair_copy(const struct io *io, const char *path, int fd, const char *to, struct eventlog_repair *r,
                    struct error *e);

/* The same for anything that log_input_open() opens. ERR_CORRUPT: nothing in it can be kept. */
int log_repair_into(struct log_input *in, const char *path, int fd, const char *to, struct eventlog_repair *r,
                    struct error *e);

/* Repairs anything that log_input_open() opens into a new file `to`, which appears by rename once complete. ERR_ARG:
 * `to` exists and force is 0, or it is the file itself. ERR_IO, ERR_CORRUPT: not an event file, or nothing in it can be
 * kept; then nothing is written. The file at path may still be growing: the copy is of this moment. io may be NULL for
 * io_real. */
int log_repair_to(const struct io *io, struct log_input *in, const char *path, const char *to, int force,
                  struct eventlog_repair *r, struct error *e);

/*
 * Repairs a file in place, by rename, and keeps the old one beside it under a name that TensorBoard does not read:
 * log_replace_backup_name(). A sound file is left alone, without a backup (changed 0). ERR_ARG: the file is open for
 * writing (as far as the kernel knows, so on this machine only), it grew or changed meanwhile, or a backup already
 * exists. ERR_IO, ERR_CORRUPT as above. A running TensorBoard keeps reading the old file until it is restarted.
 */
int log_repair_in_place(const struct io *io, const char *path, struct eventlog_repair *r, struct error *e);

#endif
