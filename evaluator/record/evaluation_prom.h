/*
 * evaluation_prom.h - the newest point of each curve and how the work stands, in Prometheus' text format 0.0.4, for the
 * textfile collector of its node_exporter: the same metrics as `eventlog export --format=prom`, and tb_eval_... beside.
 */
#ifndef EVALUATOR_RECORD_EVALUATION_PROM_H
#define EVALUATOR_RECORD_EVALUATION_PROM_H

#include "base/buffer.h"
#include "base/error.h"
#include "evaluator/record/evaluation_log.h"
#include "evaluator/record/ledger.h"

#include <stddef.h>
#include <stdint.h>

struct evaluation_series { /* zero is empty; owned by the struct */
    struct evaluation_newest {
        char *tag;
        float value; /* as it stands in the event file */
        int64_t step;
        double wall_time;
        size_t points;
    } *items;
    size_t count, capacity;
};

/* Takes in what one line of the ledger wrote into the event file; lines without metrics change nothing. ERR_NOMEM. */
int evaluation_series_add(struct evaluation_series *s, const struct evaluation_tags *tags,
                          const struct ledger_record *r, struct error *e);
void evaluation_series_release(struct evaluation_series *s);

struct evaluation_prom_row { /* one eval directory; all borrowed */
    const char *run;         /* as TensorBoard would call it */
    const struct evaluation_series *series;
    const struct ledger_summary *summary;
    size_t pending;          /* checkpoints that wait or are being evaluated */
    int64_t last_step;       /* of the newest line in the ledger; -1: none, and no sample of it */
};

/* The whole text into a file, by rename: the collector reads whenever it likes. */
int evaluation_prom_write(const char *path, const struct evaluation_prom_row *rows, size_t count, struct error *e);

#endif
