/*
 * evaluation_prom.h - writes the newest point of each curve and the state of the work in Prometheus' text format 0.0.4,
 * for the textfile collector of its node_exporter: the metrics of `eventlog export --format=prom`, and tb_eval_...
 * ones.
 */
#ifndef EVALUATOR_RECORD_EVALUATION_PROM_H
#define EVALUATOR_RECORD_EVALUATION_PROM_H

#include "base/buffer.h"
#include "base/error.h"
#include "evaluator/record/evaluation_log.h"
#include "evaluator/record/ledger.h"

#include <stddef.h>
#include <stdint.h>

/* zero is empty; owned by the struct */
struct evaluation_series {
    struct evaluation_newest {
        char *tag;
        float value; /* as in the event file */
        int64_t step;
        double wall_time;
        size_t points;
    } * items;
    size_t count, capacity;
};

/* Adds what one line of the ledger wrote to the event file; ignores lines without metrics. ERR_NOMEM. */
int evaluation_series_add(struct evaluation_series *s, const struct evaluation_tags *tags,
                          const struct ledger_record *r, struct error *e);
void evaluation_series_release(struct evaluation_series *s);

/* one eval directory; all borrowed */
struct evaluation_prom_row {
    const char *run; /* its name in TensorBoard */
    const struct evaluation_series *series;
    const struct ledger_summary *summary;
    size_t pending;    /* checkpoints waiting or being evaluated */
    int64_t last_step; /* of the newest line in the ledger; -1: none, no sample is written */
};

/* Writes the whole text to a file, by rename: the collector may read at any time. */
int evaluation_prom_write(const char *path, const struct evaluation_prom_row *rows, size_t count, struct error *e);

#endif
