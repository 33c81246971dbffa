/*
 * value_form.h - values in the form in which TensorBoard is given them: legacy histograms as tensors, images, clips and
 * graphs as blobs. What cannot be given, or would make TensorBoard reject the whole answer, is recognised. Pure
 * functions over an event that event_decode() accepted; spans are borrowed from it.
 */
#ifndef EVENTLOG_SERVER_STORE_VALUE_FORM_H
#define EVENTLOG_SERVER_STORE_VALUE_FORM_H

#include "base/buffer.h"
#include "eventlog/format/event_decode.h"
#include "eventlog/format/summary_metadata.h"
#include "eventlog/server/store/series_info.h"

#include <stddef.h>
#include <stdint.h>

/* Where a value of a series is: in a summary's value, or in the event itself if `value` is NULL. */
struct value_form {
    const struct event *event;
    const struct event_value *value;
};

/* 1 if the value belongs into a series of this class. Of a tensor only the kind is looked at, for speed; *blobs is how
 * many it has. */
int value_form_fits(const struct value_form *v, const struct series_info *s, uint64_t *blobs);

/* Appends a TensorProto. 1; 0 if TensorBoard could make no array of it, or memory runs out (see buffer_ok()). */
int value_form_tensor(const struct value_form *v, struct buffer *out);

/* 1 and the blob of that index, borrowed from the event or from `digits`; 0: there is none. */
enum { VALUE_FORM_DIGITS = 24 };
int value_form_blob(const struct value_form *v, const struct series_info *s, uint64_t index,
                    char digits[VALUE_FORM_DIGITS], struct span *blob);

/* The tag of an event with run metadata. 1, or 0: it has none. */
int value_form_run_metadata_tag(const struct event *event, struct span *tag);

#endif
