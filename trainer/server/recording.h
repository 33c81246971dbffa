/*
 * recording.h - writes the record of a run's pushes (arrivals.h) while the run goes on: into FILE.part, every push as
 * soon as it is decided; renamed to FILE once the run has ended. So FILE is whole or not there, and what a killed run
 * leaves as FILE.part is a record up to its last whole update.
 *
 * If it cannot be written, the run goes on without it, and recording_close() says why. One thread.
 */
#ifndef TRAINER_SERVER_RECORDING_H
#define TRAINER_SERVER_RECORDING_H

#include "base/error.h"
#include "base/io.h"
#include "trainer/server/arrivals.h"

#include <stddef.h>

#define RECORDING_PART ".part"

struct recording;

/* io may be NULL for io_real. ERR_ARG, ERR_IO: the file cannot be made. On OK *out is yours, recording_free() it. */
int recording_open(struct recording **out, const struct io *io, const char *path, const struct arrivals_header *h,
                   struct error *e);
void recording_add(struct recording *r, const struct arrival *pushes, size_t count);
/* Call at the end of the run: ends the record, and gives it its name. ERR_IO: of any write since it was opened. */
int recording_close(struct recording *r, struct error *e);
/* Without recording_close() the unfinished file stays. NULL is fine. */
void recording_free(struct recording *r);

#endif
