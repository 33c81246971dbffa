/*
 * data_request.h - the messages that TensorBoard sends to a data server: package tensorboard.data, service
 * TensorBoardDataProvider (tensorboard/data/proto/data_provider.proto of TensorBoard 2.21). All of them are read by one
 * function, since the numbers of their common fields agree. Pure. Texts are borrowed from the bytes given.
 *
 * As in protobuf: fields in any order, packed or not, unknown ones skipped, the last of a singular field counts,
 * sub-messages merge.
 */
#ifndef EVENTLOG_SERVER_DATA_REQUEST_H
#define EVENTLOG_SERVER_DATA_REQUEST_H

#include "base/error.h"
#include "eventlog/format/summary_metadata.h"

#include <stddef.h>
#include <stdint.h>

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

#endif
