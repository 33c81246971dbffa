/*
 * table_move.h - moves rows between the servers of tables when these are cut into other parts: values, slots and
 * averages of each row go from the server that had it to the one that has it now, all that two servers exchange in one
 * message, or in several where it is long. Collective over the servers. ERR_PEER, with a sentence that names the server
 * waited for.
 */
#ifndef TRAINER_SERVER_TABLES_TABLE_MOVE_H
#define TRAINER_SERVER_TABLES_TABLE_MOVE_H

#include "base/error.h"
#include "trainer/collective/world.h"
#include "trainer/optimizer.h"
#include "trainer/server/tables/table_parts.h"

#include <stdint.h>

/* who moves what */
struct table_movers {
    struct world *world;         /* server j is rank workers + j */
    struct optimizer *optimizer; /* holds the rows */
    int workers, servers, server;
};

/* old and parts are of the same tables. step: for sentences. */
int table_move(const struct table_movers *movers, const struct table_parts *old, const struct table_parts *parts,
               int64_t step, struct error *e);

#endif
