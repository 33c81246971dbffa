/*
 * log_finding.h - a table of what can be wrong with a log: the word for it, how bad it is, and what TensorBoard's two
 * loaders do: the default one (its data server) and the one in Python (--load_fast=false).
 */
#ifndef EVENTLOG_CHECK_LOG_FINDING_H
#define EVENTLOG_CHECK_LOG_FINDING_H

#include <stddef.h>
#include <stdint.h>

enum log_level {
    LOG_NOTE,   /* the loaders differ, or a newer point replaces an older one; nothing is wrong with the bytes */
    LOG_HIDDEN, /* sound bytes, but TensorBoard drops, hides or misreads something that was logged */
    LOG_DAMAGE, /* a reader gives up on the file there, or stops all loading; a repair removes it */
};

/* damage of records, then findings of a file, an event, a series */
enum log_finding_kind {
    /* clang-format off */
    LOG_LENGTH_CRC, LOG_DATA_CRC, LOG_TOO_LONG, LOG_NO_LOG, LOG_STREAM, LOG_PROTOBUF, LOG_GROUP_END, LOG_WIRE_TYPE,
    LOG_EXAMPLE, LOG_UTF8, LOG_WALL_NAN,
    LOG_COMPRESSED, LOG_PARTIAL, LOG_EMPTY_FILE, LOG_NO_VERSION, LOG_NAME_ORDER, LOG_DIRECTORY_NAME, LOG_RUN_NAME,
    LOG_BACKUP_NAME, LOG_HIDDEN_DIRECTORY,
    LOG_WALL_INFINITE, LOG_WALL_ZERO, LOG_WALL_UNIT, LOG_START_AGAIN, LOG_START_FIRST,
    LOG_SCALAR_FORM, LOG_SCALAR_VALUE, LOG_NO_VALUE, LOG_SCALAR_CHANGED, LOG_KIND_CHANGED, LOG_BLOB_FORM,
    LOG_BLOB_SHAPE, LOG_BLOB_TAG, LOG_NO_CLASS, LOG_DATA_CLASS, LOG_LEGACY_CLASS, LOG_TENSOR_COUNT,
    LOG_HISTOGRAM_LENGTHS, LOG_HISTOGRAM_EDGES, LOG_HPARAMS, LOG_MESH_SHAPE, LOG_LAYOUT_TAG, LOG_IMAGE_TYPE,
    LOG_NO_PICTURE, LOG_GRAPH, LOG_TEXT_LOST, LOG_TEXT_LATE, LOG_METADATA_ONCE, LOG_INTERLEAVED, LOG_STEP_TWICE,
    LOG_STEP_BACK, LOG_STALE_TAIL,
    LOG_KINDS,
    /* clang-format on */
};

struct log_finding_text {
    const char *word; /* for programs: "data_crc" */
    enum log_level level;
    const char *what, *default_loader, *python_loader; /* for people; parts of a sentence */
};

struct log_finding {
    enum log_finding_kind kind;
    size_t file;            /* which file of the run, from 0 */
    uint64_t offset;        /* of the first byte of the (first) record it is about */
    uint64_t count;         /* how often in this file (and series) */
    uint64_t lost;          /* damage, a truncated tail: bytes skipped */
    uint64_t found, wanted; /* CRCs; lengths; for LOG_PROTOBUF and the next four kinds, found is the offset in the
                             * data */
    const char *tag;        /* of a series: tag_length bytes, borrowed from the check; else NULL */
    size_t tag_length;
};

const struct log_finding_text *log_finding_text(enum log_finding_kind kind);
const char *log_level_word(enum log_level level);

#endif
