/*
 * time_report.h - what the time of all ranks was spent on: as a table, as JSON, and in a sentence about the rank that
 * the others waited for. Pure.
 */
#ifndef TRAINER_TIMING_TIME_REPORT_H
#define TRAINER_TIMING_TIME_REPORT_H

#include "base/buffer.h"
#include "base/process.h"
#include "trainer/timing/phase_clock.h"

/* All borrowed. */
struct rank_times {
    struct phase_times *all; /* (ranks) of a whole run; a server's steps are its updates */
    int ranks, workers;      /* the first ranks are workers, the others servers */
    int synchronous;
    const struct process *places; /* (ranks) hosts; NULL: one rank */
};

/* Appends two tables with a row for each rank, in milliseconds a step and in %, of the phases that anybody spent time
 * in, at most `columns` wide (0: no limit). Of more than TIME_REPORT_RANKS ranks only those that waited least, which
 * the table says. */
enum { TIME_REPORT_RANKS = 16 };
void time_report_table(struct buffer *out, const struct rank_times *t, int columns, int ascii);

/* Appends a sentence about the slowest worker, or about the busiest server if all workers waited for it; 1. 0: there is
 * nothing to report, as after less than a second or TIME_REPORT_STEPS steps. */
enum { TIME_REPORT_STEPS = 20 };
int time_report_straggler(struct buffer *out, const struct rank_times *t);

/* Appends members of a JSON object: "time": [{"rank": 0, "host": "a", "server": false, "steps": 500, "seconds": 5.4,
 * "input": 0.02, ...}, ...] in seconds, the phases adding up to "seconds"; "straggler": null or {"rank": 2, "ratio":
 * 1.8, "cost": 0.31, "phase": "backward"}. */
void time_report_json(struct buffer *out, const struct rank_times *t);

#endif
