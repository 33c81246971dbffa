/*
 * summary_metadata.h - reads a serialized SummaryMetadata: which plugin shows the series, under which name, and, for
 * the plugin `hparams`, the hyperparameters of a session. Pure functions; all texts are borrowed from the bytes given
 * and may contain anything.
 */
#ifndef EVENTLOG_FORMAT_SUMMARY_METADATA_H
#define EVENTLOG_FORMAT_SUMMARY_METADATA_H

#include <stddef.h>
#include <stdint.h>

struct span {
    const uint8_t *bytes; /* length of them; never NULL */
    size_t length;
};

struct summary_metadata {
    struct span plugin, content; /* of plugin_data */
    struct span display_name, description;
    int data_class; /* as given; 0 if it is not */
};

/* Bytes that are not a message are read up to the first error. */
void summary_metadata_read(struct summary_metadata *m, const uint8_t *bytes, size_t n);

enum hparam_type { HPARAM_OTHER, HPARAM_NUMBER, HPARAM_TEXT, HPARAM_BOOL }; /* OTHER: null, a list, a structure */

struct hparam {
    struct span name;
    enum hparam_type type;
    double number;    /* of HPARAM_NUMBER; 0 or 1 of HPARAM_BOOL */
    struct span text; /* of HPARAM_TEXT */
};

/* Calls each() for every hyperparameter of a session start in m->content, in the order of the bytes: if a name is
 * repeated, the last one counts. A result other than 0 from each() ends the walk and is returned. */
int summary_metadata_hparams(const struct summary_metadata *m, int (*each)(void *context, const struct hparam *h),
                             void *context);

#endif
