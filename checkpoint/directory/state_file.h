/*
 * state_file.h - parses and writes the file `checkpoint`: a CheckpointState in protobuf's text format. Pure; time and
 * memory grow with the length of the text. The format is described at the top of state_file.c.
 */
#ifndef CHECKPOINT_DIRECTORY_STATE_FILE_H
#define CHECKPOINT_DIRECTORY_STATE_FILE_H

#include "base/buffer.h"
#include "base/error.h"

#include <stddef.h>

struct state_file {
    char *newest; /* model_checkpoint_path; NULL if not given or empty */
    char **paths; /* all_model_checkpoint_paths, in order of saving */
    size_t count;
    double *timestamps; /* all_model_checkpoint_timestamps: seconds since 1970; as many as the file has, often none */
    size_t timestamp_count;
    double last_preserved; /* last_preserved_timestamp, 0 if not given */
};

/* Parses n bytes of text; fields other than these four are skipped. On OK *out is yours: state_file_release() it.
 * ERR_CORRUPT names line and column. An empty text is OK and names nothing. */
int state_file_parse(const char *text, size_t n, struct state_file *out, struct error *e);
void state_file_release(struct state_file *s);

/* Appends the text of s as TensorFlow writes it. */
void state_file_encode(const struct state_file *s, struct buffer *out);

#endif
