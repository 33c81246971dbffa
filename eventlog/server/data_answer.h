/*
 * data_answer.h - answers requests from the current snapshot, as TensorBoard's data provider expects it. Any thread.
 *
 * The answer is a sequence of gRPC messages: each a byte 0, its length as 32-bit big-endian, and the message. All
 * methods answer with one, but for ReadBlob, whose messages are parts of the blob, in order.
 */
#ifndef EVENTLOG_SERVER_DATA_ANSWER_H
#define EVENTLOG_SERVER_DATA_ANSWER_H

#include "base/buffer.h"
#include "base/error.h"
#include "eventlog/format/summary_metadata.h"
#include "eventlog/server/sample_hints.h"
#include "eventlog/server/store/snapshot.h"
#include "eventlog/server/value_source.h"

#include <stddef.h>
#include <stdint.h>

/* ---- data request ------------------------------------------------------------------------------------------------ */

/*
 * The messages that TensorBoard sends to a data server: package tensorboard.data, service
 * TensorBoardDataProvider (tensorboard/data/proto/data_provider.proto of TensorBoard 2.21). All of them are read by one
 * function, since the numbers of their common fields agree. Pure. Texts are borrowed from the bytes given.
 *
 * As in protobuf: fields in any order, packed or not, unknown ones skipped, the last of a singular field counts,
 * sub-messages merge.
 */

enum data_method {
    DATA_GET_EXPERIMENT,
    DATA_LIST_PLUGINS,
    DATA_LIST_RUNS,
    DATA_LIST_SCALARS,
    DATA_READ_SCALARS,
    DATA_LIST_TENSORS,
    DATA_READ_TENSORS,
    DATA_LIST_BLOBS,
    DATA_READ_BLOBS,
    DATA_READ_BLOB,
    DATA_METHODS
};

struct data_names {
    int given; /* 0: all names; 1: only these, sorted as bytes, each once */
    struct span *names;
    size_t count, capacity;
};

struct data_request {
    enum data_method method;
    struct span experiment;
    struct span plugin;
    struct data_names runs, tags;
    int has_limit;
    int64_t limit; /* how many points of each series at most */
    struct span blob_key;
};

/* The method of that path, "/tensorboard.data.TensorBoardDataProvider/ListRuns"; what follows a '?' does not count.
 * DATA_METHODS: there is none. */
enum data_method data_request_method(const char *path, size_t n);

/* OK; ERR_CORRUPT: not such a message; ERR_NOMEM. On OK data_request_release() it. */
int data_request_read(struct data_request *r, enum data_method method, const uint8_t *bytes, size_t n, struct error *e);
void data_request_release(struct data_request *r);

/* ---- data answer ------------------------------------------------------------------------------------------------- */

/* gRPC's numbers */
enum data_code {
    DATA_OK = 0,
    DATA_CANCELLED = 1,
    DATA_INVALID_ARGUMENT = 3,
    DATA_DEADLINE_EXCEEDED = 4,
    DATA_NOT_FOUND = 5,
    DATA_RESOURCE_EXHAUSTED = 8,
    DATA_OUT_OF_RANGE = 11,
    DATA_UNIMPLEMENTED = 12,
    DATA_INTERNAL = 13,
};

enum {
    DATA_PREFIX = 5,              /* bytes before each message */
    DATA_BLOB_PART = 8 << 20,     /* bytes of a blob in one message at most */
    DATA_ANSWER_MOST = 240 << 20, /* TensorBoard takes 256 MiB: beyond, fewer points are given */
    DATA_CURVE_LEAST = 200,       /* points, which a chart is hardly wide enough for */
    DATA_ANSWER_MESSAGE = 1000,   /* room for a text that explains a code */
};

struct data_source {
    struct snapshot *snapshot;
    struct value_source *values;
    const char *location; /* of the log, as GetExperiment tells it; borrowed */
    struct sample_hints hints;
    int extremes; /* as of series_sample.h */
    size_t most;  /* points of numbers in an answer, but at least DATA_CURVE_LEAST of each curve; 0: no limit */
};

struct data_patience {
    double deadline;      /* monotonic; 0: none */
    const int *cancelled; /* atomic; NULL: never */
};

/* An enum data_code; if it is not DATA_OK, out is empty and message explains. */
enum data_code data_answer(const struct data_source *s, const struct data_request *r, const struct data_patience *p,
                           struct buffer *out, char message[DATA_ANSWER_MESSAGE]);

#endif
