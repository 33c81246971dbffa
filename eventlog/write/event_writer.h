/*
 * event_writer.h - what the library's own files need of the writer beyond eventlog.h: system calls that tests can make
 * fail, and the way in which all values but scalars get into the file. kinds/event_writer_<family>.c encodes its values
 * with wire.h, without I/O, and passes the bytes to event_writer_finish().
 *
 * Its parts come first: a value that is not a scalar, and the table of tags.
 */
#ifndef EVENTLOG_WRITE_EVENT_WRITER_H
#define EVENTLOG_WRITE_EVENT_WRITER_H

#include "base/error.h"
#include "base/io.h"
#include "eventlog/eventlog.h"
#include "eventlog/format/tag_index.h"
#include "eventlog/format/wire.h"

#include <stddef.h>
#include <stdint.h>

/* ---- event writer value ------------------------------------------------------------------------------------------ */

/*
 * One value that is not a scalar, and the bytes around those that its kind encodes. All
 * functions are pure. The field numbers are from TensorBoard's .proto files.
 */

/* Fields of the messages that several families write. */
enum {
    EVENT_FIELD_GRAPH = 4,
    EVENT_FIELD_SUMMARY = 5,
    EVENT_FIELD_RUN_METADATA = 8,
    VALUE_FIELD_TENSOR = 8,
    TENSOR_FIELD_DTYPE = 1,
    TENSOR_FIELD_SHAPE = 2,
    TENSOR_FIELD_CONTENT = 4,
    TENSOR_FIELD_STRING = 8,
};

/* A value without its bytes. All texts are borrowed for the call. */
struct event_writer_value {
    const char *tag;
    int64_t step;
    double wall_time; /* 0: now */
    const char *plugin;
    const void *content; /* plugin_data.content */
    size_t content_length;
    int data_class; /* 0: readers take it from the plugin */
    int blob;       /* TensorBoard serves it under a key made from the tag: some characters are not allowed */
    const struct eventlog_value_options *options;
};

/* Writes the start of a Summary.Value's tensor, up to and including its shape (empty for rank 0). Write the contents
 * next, then call wire_end() with the mark that this returns. */
size_t event_writer_value_tensor(struct wire *w, int dtype, const int64_t *shape, size_t rank);

/* The fields of a TensorShapeProto. */
void event_writer_value_shape(struct wire *w, const int64_t *shape, size_t rank);

/* A whole tensor of n bytes, which are 0 at first: where they stand, until w grows; NULL where there are none, or no
 * memory, which w knows. */
uint8_t *event_writer_value_room(struct wire *w, int dtype, const int64_t *shape, size_t rank, size_t n);

/* ---- tag table --------------------------------------------------------------------------------------------------- */

/*
 * Which tags a run has already, and the plugin that each belongs to. One thread at a time. It is asked at
 * every call of the writer: fastest where tags come in the same order again and again.
 */

struct tag_entry {
    const char *plugin; /* that it was added with; the table's */
    uint64_t file;      /* the caller's: number of the last file that has the tag's metadata; 0 at first */
};

struct tag_table {
    struct tag_index tags; /* items: struct tag_entry */
    struct tag_index plugins;
};

#define TAG_TABLE_EMPTY \
    { \
        TAG_INDEX_OF(struct tag_entry), TAG_INDEX_EMPTY \
    }

void tag_table_release(struct tag_table *t);

/* The entry of the tag of n bytes, borrowed until the next add; NULL when the table does not have it. */
struct tag_entry *tag_table_entry(struct tag_table *t, const char *tag, size_t n);

/* Adds a tag that is not in it; both texts are copied. Its entry, or NULL without memory. */
struct tag_entry *tag_table_add(struct tag_table *t, const char *tag, const char *plugin);

/* ---- event writer ------------------------------------------------------------------------------------------------ */

/* eventlog_writer_open() with the system calls of io, which outlives the writer; NULL: io_real. */
int event_writer_open_io(struct eventlog_writer **out, const char *directory,
                         const struct eventlog_writer_options *options, const struct io *io,
                         struct eventlog_error *error);

/* ERR_ARG if an option makes no sense. */
int event_writer_check_options(const struct eventlog_writer_options *o, struct error *e);

/* The last step of every function of a family. rc: the result of encoding, with its error in e; on OK, member (the
 * fields of Summary.Value besides tag and metadata) becomes an event with metadata: complete if the tag is new to the
 * file, later without name and description. Releases member, copies e to error. */
int event_writer_finish(struct eventlog_writer *w, int rc, const struct event_writer_value *value, struct wire *member,
                        struct error *e, struct eventlog_error *error);

/* The same for an event that is not a summary: body has its fields besides wall time and step. */
int event_writer_finish_event(struct eventlog_writer *w, int rc, int64_t step, double wall_time, struct wire *body,
                              struct error *e, struct eventlog_error *error);

/* The wall time that a call means: its own, or now for 0. */
double event_writer_time(double wall_time);

/* From now on a wall time of 0 means 1970: for callers that copy points unchanged. */
void event_writer_exact_times(struct eventlog_writer *w);

/* For writing files other than event files. OK, or ERR_ARG in a forked child, or without a directory. */
int event_writer_check_directory(const struct eventlog_writer *w, struct error *e);
const char *event_writer_directory(const struct eventlog_writer *w);
const struct io *event_writer_io(const struct eventlog_writer *w);

#endif
