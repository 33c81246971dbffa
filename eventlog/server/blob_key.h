/*
 * blob_key.h - the keys by which TensorBoard asks for blobs: the JSON text [experiment, run, tag, step, index] in
 * base64 for URLs without padding, as TensorBoard's own data server makes them. It cannot read its own keys if a text
 * has a quote, a backslash or a control character; this can. Pure.
 */
#ifndef EVENTLOG_SERVER_BLOB_KEY_H
#define EVENTLOG_SERVER_BLOB_KEY_H

#include "base/buffer.h"
#include "base/error.h"
#include "eventlog/format/summary_metadata.h"

#include <stddef.h>
#include <stdint.h>

struct blob_key {
    struct span experiment, run, tag; /* UTF-8 */
    int64_t step;
    uint64_t index;
    /* private */
    char *texts;
};

/* Appends the text of the key. */
void blob_key_append(struct buffer *out, const struct blob_key *key);

/* What many keys have in common is written once: the JSON text up to the step; then blob_key_append_of() appends the
 * key of each step and index. */
void blob_key_begin(struct buffer *json, const struct blob_key *key);
void blob_key_append_of(struct buffer *out, const struct buffer *json, int64_t step, uint64_t index);

/* OK, then blob_key_release() it; ERR_ARG and why; ERR_NOMEM. */
int blob_key_read(struct blob_key *key, const uint8_t *text, size_t n, struct error *e);
void blob_key_release(struct blob_key *key);

#endif
