/*
 * series_info.h - what is known of a series: its tag, the SummaryMetadata that is given to TensorBoard, and its class,
 * all decided by the first value of the tag in the run and constant from then on. The rules are those of TensorBoard's
 * own data server (legacy values get the metadata that their modern form would have), but display name and description
 * of a legacy value are kept, and audio clips have their encoding, as in TensorBoard's Python loader.
 *
 * Shared between threads by reference counts.
 */
#ifndef EVENTLOG_SERVER_STORE_SERIES_INFO_H
#define EVENTLOG_SERVER_STORE_SERIES_INFO_H

#include "eventlog/format/event_decode.h"

#include <stddef.h>
#include <stdint.h>

/* by TensorBoard's numbers of data classes */
enum series_class { SERIES_UNKNOWN, SERIES_SCALARS, SERIES_TENSORS, SERIES_BLOBS };

#define SERIES_GRAPH_TAG "__run_graph__"

struct series_info {
    enum series_class class; /* SERIES_UNKNOWN: no request can name it */
    const char *tag;         /* tag_length bytes of UTF-8 */
    size_t tag_length;
    const char *plugin; /* of the metadata: plugin_length bytes */
    size_t plugin_length;
    const uint8_t *metadata; /* metadata_length bytes: a SummaryMetadata of valid UTF-8 */
    size_t metadata_length;
    /* private */
    unsigned references;
};

/* Of a value of a summary; the tag is given apart, because it is the value's with every byte that is not UTF-8
 * replaced. NULL: no memory. series_info_drop() it. */
struct series_info *series_info_of_value(const char *tag, size_t n, const struct event_value *value);
/* Of an event with a graph, or with run metadata for a tag. */
struct series_info *series_info_of_graph(void);
struct series_info *series_info_of_run_metadata(const char *tag, size_t n);

struct series_info *series_info_keep(struct series_info *s); /* returns s */
void series_info_drop(struct series_info *s);                /* NULL is fine */

#endif
