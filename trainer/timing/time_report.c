#include "trainer/timing/time_report.h"

#include "base/json.h"
#include "base/program/table.h"
#include "trainer/timing/straggler.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A server is worth a sentence if it is almost never idle, and workers wait. */
#define SERVER_IDLE_MOST 0.1
#define WORKERS_WAIT_LEAST 0.2
#define REPORT_NANOSECONDS 1000000000

static double step_milliseconds(const struct phase_times *t, int64_t nanoseconds)
{
    return t->steps > 0 ? (double)nanoseconds / 1e6 / (double)t->steps : 0;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

/* 1: rank r is among the `most` that waited least, ties by rank. */
static int is_shown(const struct rank_times *t, int r, int most)
{
    const double mine = phase_times_share(&t->all[r], PHASE_WAITING);
    int before = 0;

    for (int k = 0; k < t->ranks && t->ranks > most; k++) {
        const double its = phase_times_share(&t->all[k], PHASE_WAITING);

        before += its < mine || (its == mine && k < r);
    }
    return before < most;
}

/* The phases in which anybody spent time, in order; returns how many. */
static int phases_used(const struct rank_times *t, enum phase used[PHASE_COUNT])
{
    int count = 0;

    for (int p = 0; p < PHASE_COUNT; p++)
        for (int r = 0; r < t->ranks; r++)
            if (t->all[r].nanoseconds[p] > 0) {
                used[count++] = (enum phase)p;
                break;
            }
    return count;
}

/* percent: 0: milliseconds. */
static void print_times(struct buffer *out, const struct rank_times *t, int percent, int columns, int ascii)
{
    struct table_column list[PHASE_COUNT + 2] = { { .title = "rank", .right = 1 } };
    enum phase used[PHASE_COUNT];
    const int count = phases_used(t, used), total = count + 1;
    struct table table;

    for (int i = 0; i < count; i++)
        list[i + 1] = (struct table_column){ .title = phase_names[used[i]], .right = 1 };
    list[total] = (struct table_column){ .title = "total", .right = 1, .leave_out = 1 };
    table_init(&table, list, (size_t)total + !percent);
    for (int r = 0; r < t->ranks; r++) {
        const struct phase_times *of = &t->all[r];

        if (!is_shown(t, r, TIME_REPORT_RANKS))
            continue;
        table_cell(&table, "%d", r);
        for (int i = 0; i < count; i++)
            if (percent)
                table_cell(&table, "%.1f", 100 * phase_times_share(of, used[i]));
            else
                table_cell(&table, "%.2f", step_milliseconds(of, of->nanoseconds[used[i]]));
        if (!percent)
            table_cell(&table, "%.2f", step_milliseconds(of, phase_times_total(of)));
    }
    table_print(&table, 0, columns, ascii, out);
    table_release(&table);
}

void time_report_table(struct buffer *out, const struct rank_times *t, int columns, int ascii)
{
    buffer_append_text(out, "time of each rank, in milliseconds a step:\n");
    print_times(out, t, 0, columns, ascii);
    buffer_append_text(out, "in % of its time:\n");
    print_times(out, t, 1, columns, ascii);
    if (t->ranks - t->workers == 1)
        buffer_format(out, "rank %d is a server: waiting is being idle, a step is an update\n", t->workers);
    else if (t->ranks > t->workers)
        buffer_format(out, "ranks %d to %d are servers: waiting is being idle, a step is an update\n", t->workers,
                      t->ranks - 1);
    if (t->ranks > TIME_REPORT_RANKS)
        buffer_format(out, "these %d of %d ranks waited least; --json has all\n", TIME_REPORT_RANKS, t->ranks);
}

/* ---- the sentence ------------------------------------------------------------------------------------------------ */

static void rank_text(const struct rank_times *t, int r, char *text, size_t size)
{
    if (t->places)
        snprintf(text, size, "rank %d on host %s", r, t->places[r].host);
    else
        snprintf(text, size, "rank %d", r);
}

/* worker -1: none, or it cannot be told. */
static struct straggler find(const struct rank_times *t)
{
    struct straggler s = { .worker = -1 };
    double *room = malloc((size_t)t->workers * sizeof *room);

    for (int r = 0; r < t->workers && room; r++)
        if (t->all[r].steps < TIME_REPORT_STEPS || phase_times_total(&t->all[r]) < REPORT_NANOSECONDS) {
            free(room);
            return s;
        }
    if (room)
        straggler_find(&s, t->all, t->workers, t->synchronous, room);
    free(room);
    return s;
}

/* The server that is idle least. -1: the workers do not wait much, or no server is busy all the time. */
static int busiest_server(const struct rank_times *t)
{
    int busiest = -1;

    for (int r = 0; r < t->workers; r++)
        if (t->all[r].steps < TIME_REPORT_STEPS || phase_times_total(&t->all[r]) < REPORT_NANOSECONDS ||
            phase_times_share(&t->all[r], PHASE_WAITING) < WORKERS_WAIT_LEAST)
            return -1;
    for (int r = t->workers; r < t->ranks; r++)
        if (phase_times_share(&t->all[r], PHASE_WAITING) <
            (busiest < 0 ? SERVER_IDLE_MOST : phase_times_share(&t->all[busiest], PHASE_WAITING)))
            busiest = r;
    return busiest;
}

int time_report_straggler(struct buffer *out, const struct rank_times *t)
{
    const struct straggler s = find(t);
    const int server = s.worker < 0 ? busiest_server(t) : -1;
    char name[HOST_NAME_MAX + 32];
    double least = 1;

    if (s.worker >= 0) {
        rank_text(t, s.worker, name, sizeof name);
        straggler_text(out, &s, name, 1);
        return 1;
    }
    if (server < 0)
        return 0;
    for (int r = 0; r < t->workers; r++)
        least = phase_times_share(&t->all[r], PHASE_WAITING) < least ? phase_times_share(&t->all[r], PHASE_WAITING)
                                                                     : least;
    rank_text(t, server, name, sizeof name);
    buffer_format(out, "%s, a server, was busy %.0f %% of the time, and every worker waited for at least %.0f %%", name,
                  100 * (1 - phase_times_share(&t->all[server], PHASE_WAITING)), 100 * least);
    return 1;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void member(struct buffer *out, const char *name, double value)
{
    buffer_format(out, ", \"%s\": ", name);
    json_double(out, value);
}

void time_report_json(struct buffer *out, const struct rank_times *t)
{
    const struct straggler s = t->ranks > 0 ? find(t) : (struct straggler){ .worker = -1 };

    buffer_append_text(out, "\"time\": [");
    for (int r = 0; r < t->ranks; r++) {
        const struct phase_times *of = &t->all[r];

        buffer_format(out, "%s{\"rank\": %d, \"host\": ", r ? ", " : "", r);
        json_text(out, t->places ? t->places[r].host : NULL);
        buffer_format(out, ", \"server\": %s, \"steps\": %" PRId64, r < t->workers ? "false" : "true", of->steps);
        member(out, "seconds", (double)phase_times_total(of) / 1e9);
        for (int p = 0; p < PHASE_COUNT; p++)
            member(out, phase_names[p], (double)of->nanoseconds[p] / 1e9);
        buffer_append_byte(out, '}');
    }
    buffer_append_text(out, "], \"straggler\": ");
    if (s.worker < 0) {
        buffer_append_text(out, "null");
        return;
    }
    buffer_format(out, "{\"rank\": %d", s.worker);
    member(out, "ratio", s.ratio);
    member(out, "cost", s.cost);
    buffer_format(out, ", \"phase\": \"%s\"}", phase_names[s.phase]);
}
