/*
 * row_packet.h - messages between workers and the servers of tables (table_protocol.h), as bytes. Rows are named by ids
 * (table_parts.h). Pure; what is read is checked, since it comes from another process.
 *
 *   names   head, ids (count)                                      rows that a worker asks for
 *   values  head, values (of each of the rows that were named)     the answer
 *   sums    head, a row_packet_part for each of `count` vectors, their ids, their values
 *
 * The sums have those rows of each of the worker's vectors (reduction.h) that the server holds. In all of them ids
 * ascend, and values are as wide as their table.
 */
#ifndef TRAINER_SERVER_ROW_PACKET_H
#define TRAINER_SERVER_ROW_PACKET_H

#include "base/error.h"
#include "model/network.h"
#include "trainer/server/table_parts.h"

#include <stddef.h>
#include <stdint.h>

struct row_packet_head {
    int64_t step;
    int32_t count;  /* names and values: rows; sums: vectors */
    uint32_t flags; /* enum tally_flag, of the sender's signal */
};

struct row_packet_part {
    double weight; /* of the vector's samples */
    int32_t rows;
    int32_t nothing; /* 0 */
};

/* Bytes of a message with so many rows. */
size_t row_packet_names_size(size_t rows);
size_t row_packet_values_size(const struct table_parts *p, const int32_t *ids, size_t rows);
/* Bytes of the largest message with at most so many rows, in all vectors together. */
size_t row_packet_values_room(const struct table_parts *p, size_t rows);
size_t row_packet_sums_room(const struct table_parts *p, size_t rows, size_t vectors);

/* Writes names. Returns the bytes. */
size_t row_packet_put_names(void *bytes, const struct row_packet_head *head, const int32_t *ids);
/* Reads names out of `room` bytes. *ids is in them. ERR_CORRUPT, with a sentence, if they are not sound, or not all
 * rows of this server. */
int row_packet_get_names(const void *bytes, size_t room, const struct table_parts *p, int server,
                         struct row_packet_head *head, const int32_t **ids, struct error *e);

/* Copies rows between `values` and the parameters of a network. Returns how many reals. */
size_t row_packet_take_values(const struct table_parts *p, const int32_t *ids, size_t rows, const real *parameters,
                              real *values);
size_t row_packet_give_values(const struct table_parts *p, const int32_t *ids, size_t rows, real *parameters,
                              const real *values);

/* Writes the sums of `head->count` vectors: gradients (count, tables), of which only this server's rows are written;
 * -1: all. weights (count). Returns the bytes. */
size_t row_packet_put_sums(void *bytes, const struct row_packet_head *head, const struct table_parts *p, int server,
                           const struct row_gradient *gradients, const real *weights);
/* Reads the sums of `vectors` vectors, with at most `most` rows together, out of bytes that have room for these, and
 * changes them: gradients (vectors, tables) then point there. server -1: rows of any. ERR_CORRUPT as above. */
int row_packet_get_sums(void *bytes, size_t room, const struct table_parts *p, int server, size_t vectors, size_t most,
                        struct row_packet_head *head, struct row_gradient *gradients, real *weights, struct error *e);

#endif
