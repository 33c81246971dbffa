/*
 * table_parts.h - which server holds which rows of the tables (variable.row_width, model/network.h). Pure.
 *
 * The rows of all tables have one range of numbers, ids, table after table, so that a message may name rows of several
 * tables in one ascending list. Each table is cut into p parts of neighbouring rows whose sizes differ by at most one
 * (the first V mod p get one more); the parts are placed from the largest to the smallest, each on the server with the
 * fewest bytes so far. Ties: the part that comes first, the server with the lowest number. Where a row is decides about
 * nothing but speed. Source: strategies, section 4.
 */
#ifndef TRAINER_SERVER_TABLE_PARTS_H
#define TRAINER_SERVER_TABLE_PARTS_H

#include "base/error.h"
#include "model/network.h"

#include <stddef.h>
#include <stdint.h>

struct table {
    size_t variable, offset, width; /* its index in network_variables(), its place, reals of a row */
    int32_t first, rows;            /* ids [first, first + rows) */
};

struct table_part {
    size_t table;
    int32_t first, rows; /* ids; rows >= 1 */
    int server;
};

struct table_parts {
    struct table *tables;
    size_t table_count;
    struct table_part *parts; /* ascending; together all ids */
    size_t count;
    int32_t rows; /* of all tables */
    int servers;
};

/* The tables of a network, each in `partitions` parts, or as many as it has rows. ERR_NOMEM; ERR_ARG: too many rows. On
 * OK table_parts_release() it. */
int table_parts_make(struct table_parts *out, const struct network *n, int servers, int partitions, struct error *e);
void table_parts_release(struct table_parts *p); /* zeroed is fine */

/* Who holds what of the tables' gradients: p->count parts of the exchange vector. */
struct gradient_part;
void table_parts_held(const struct table_parts *p, struct gradient_part *held);

/* How many tables a network has. */
size_t table_parts_tables(const struct network *n);
/* The part that has this id, 0 <= id < rows. */
const struct table_part *table_parts_find(const struct table_parts *p, int32_t id);
/* The most rows that a batch of `samples` samples can use, of all tables together. */
size_t table_parts_rows_most(const struct table_parts *p, const struct network *n, size_t samples);
/* Rows of the largest table, 2^30 at most: more parts than that change nothing. */
int table_parts_most(const struct table_parts *p);
/* Reals of the widest row. */
size_t table_parts_widest(const struct table_parts *p);

#endif
