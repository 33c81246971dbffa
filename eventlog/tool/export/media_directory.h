/*
 * media_directory.h - files DIR/run/tag/step/index.ext. Runs and tags become single safe names: every byte outside A-Z
 * a-z 0-9 . _ + @ = - and a leading '.' become '_', and names are cut at 200 bytes; names that become equal get -2, -3,
 * ... in order of arrival. No link is followed below DIR, so nothing is ever written outside it. Files appear once
 * complete.
 */
#ifndef EVENTLOG_TOOL_EXPORT_MEDIA_DIRECTORY_H
#define EVENTLOG_TOOL_EXPORT_MEDIA_DIRECTORY_H

#include "base/buffer.h"
#include "base/error.h"
#include "eventlog/format/tag_index.h"

#include <stdint.h>

struct media_directory {
    const char *path; /* borrowed */
    int fd, force;
    struct tag_index run_names, tag_names, step_names; /* names in use: of all runs; of the tags and of run/tag/step in
                                                        * this run */
    struct tag_index runs, tags; /* all runs, the tags of this run; value: the number of the name */
};

/* force: files may be overwritten. Release d also after an error. */
int media_directory_open(struct media_directory *d, const char *path, int force, struct error *e);
void media_directory_release(struct media_directory *d);

/* Begins another run, or the same one again. */
void media_directory_run(struct media_directory *d);

/* Chooses the directory of a value, "run/tag/step", and puts it into name. A step that comes again is "step-2" and so
 * on. */
int media_directory_value(struct media_directory *d, const char *run, const char *tag, size_t tag_length, int64_t step,
                          struct buffer *name, struct error *e);

/* Writes `file` into that directory, which is made if missing. */
int media_directory_write(struct media_directory *d, const char *name, const char *file, const void *bytes, size_t n,
                          struct error *e);

#endif
