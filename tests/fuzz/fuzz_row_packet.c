/* Any bytes as a message of rows: what is accepted names rows of the server alone, in order and within the message, and
 * is written again as it was read. The first byte chooses names or sums, whose server, how many vectors and rows. */
#include "trainer/server/row_packet.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TABLES = 2, VECTORS = 3, MOST = 12 };

/* Two tables on two servers. */
static struct table tables[TABLES] = { { 1, 0, 2, 0, 7 }, { 4, 100, 3, 7, 5 } };
static struct table_part held[] = { { 0, 0, 4, 0 }, { 0, 4, 3, 1 }, { 1, 7, 2, 1 }, { 1, 9, 3, 0 } };
static const struct table_parts parts = { tables, TABLES, held, 4, 12, 2 };

static void check(int good)
{
    if (!good)
        abort();
}

static void check_names(const uint8_t *data, size_t size, int server)
{
    struct row_packet_head head;
    char *message = malloc(size + 1), *again = malloc(size + sizeof head);
    const int32_t *ids;

    if (message && again) {
        memcpy(message, data, size);
        if (row_packet_get_names(message, size, &parts, server, &head, &ids, NULL) == OK) {
            check(row_packet_names_size((size_t)head.count) <= size && head.count <= parts.rows);
            for (int32_t i = 0; i < head.count; i++)
                check(ids[i] >= 0 && ids[i] < parts.rows && (i == 0 || ids[i] > ids[i - 1]) &&
                      (server < 0 || table_parts_find(&parts, ids[i])->server == server));
            check(memcmp(message, again, row_packet_put_names(again, &head, ids)) == 0);
        }
    }
    free(message);
    free(again);
}

/* The rows of one vector; they and their values are within the message. Returns how many. */
static size_t check_gradients(const struct row_gradient *g, const char *message, size_t room, int server)
{
    size_t rows = 0;

    for (size_t t = 0; t < TABLES; t++) {
        check(g[t].variable == tables[t].variable && g[t].width == tables[t].width);
        check(g[t].count <= (size_t)tables[t].rows);
        check((const char *)g[t].values >= message &&
              (const char *)(g[t].values + g[t].count * g[t].width) <= message + room);
        for (size_t i = 0; i < g[t].count; i++)
            check(g[t].rows[i] >= 0 && g[t].rows[i] < tables[t].rows && (i == 0 || g[t].rows[i] > g[t].rows[i - 1]) &&
                  (server < 0 || table_parts_find(&parts, tables[t].first + g[t].rows[i])->server == server));
        rows += g[t].count;
    }
    return rows;
}

static void check_sums(const uint8_t *data, size_t size, int server, size_t vectors, size_t most)
{
    const size_t room = row_packet_sums_room(&parts, most, vectors);
    char *message = calloc(1, room), *read = malloc(room), *again = calloc(1, room);
    struct row_gradient gradients[VECTORS * TABLES];
    const size_t heads = sizeof(struct row_packet_head), weights_end = heads + vectors * sizeof(struct row_packet_part);
    real weights[VECTORS];
    struct row_packet_head head;
    size_t rows = 0, bytes;

    if (message && read && again) {
        memcpy(message, data, size < room ? size : room);
        memcpy(read, message, room); /* reading changes the message */
        if (row_packet_get_sums(message, room, &parts, server, vectors, most, &head, gradients, weights, NULL) == OK) {
            for (size_t v = 0; v < vectors; v++)
                rows += check_gradients(gradients + v * TABLES, message, room, server);
            check(rows <= most);
            bytes = row_packet_put_sums(again, &head, &parts, server, gradients, weights);
            check(bytes <= room && memcmp(read, again, heads) == 0);
            /* Weights are rounded to reals, and there may be a gap before the values. */
            check(memcmp(read + weights_end, again + weights_end, rows * sizeof(int32_t)) == 0);
            for (size_t v = 0, at = weights_end + rows * sizeof(int32_t); v < vectors; v++)
                for (size_t t = 0; t < TABLES; t++) {
                    const struct row_gradient *g = &gradients[v * TABLES + t];
                    const size_t n = g->count * g->width * sizeof(real);

                    at = at % sizeof(real) ? at + sizeof(real) - at % sizeof(real) : at;
                    check(n == 0 || memcmp(again + at, g->values, n) == 0);
                    at += n;
                }
        }
    }
    free(message);
    free(read);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t first = size > 0 ? data[0] : 0;
    const int server = (first >> 1 & 3) - 1 > 1 ? -1 : (first >> 1 & 3) - 1;

    if (size == 0)
        return 0;
    if (first & 1)
        check_names(data + 1, size - 1, server);
    else
        check_sums(data + 1, size - 1, server, 1 + (first >> 3) % VECTORS, MOST);
    return 0;
}
