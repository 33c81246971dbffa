/* Messages with rows: what is written is read, and what is not sound is refused. */
#include "trainer/server/row_packet.h"

#include "tests/check.h"

#include <string.h>

enum { ROOM = 4096, MOST = 12 };

/* Table 0: ids 0 to 9, three wide; table 1: ids 10 to 14, two wide. Parts in turn on two servers. */
static struct table tables[] = { { 0, 0, 3, 0, 10 }, { 1, 30, 2, 10, 5 } };
static struct table_part parts[] = { { 0, 0, 5, 0 }, { 0, 5, 5, 1 }, { 1, 10, 3, 0 }, { 1, 13, 2, 1 } };
static const struct table_parts all = { tables, 2, parts, 4, 15, 2 };

static void test_find(void **state)
{
    (void)state;
    for (int32_t id = 0; id < all.rows; id++) {
        const struct table_part *p = table_parts_find(&all, id);

        assert_true(id >= p->first && id < p->first + p->rows);
    }
}

static void test_names(void **state)
{
    static const struct {
        int32_t count, ids[4];
        const char *why; /* NULL: sound, for server 0 */
    } cases[] = {
        { 0, { 0 }, NULL },
        { 3, { 0, 4, 12 }, NULL },
        { 2, { 4, 4 }, "names row 4 after 4" },
        { 2, { 4, 3 }, "names row 3 after 4" },
        { 1, { -1 }, "names row -1" },
        { 1, { 15 }, "names row 15" },
        { 2, { 4, 5 }, "which is on server 1" },
        { -1, { 0 }, "names -1 rows" },
        { 5, { 0 }, "names 5 rows" },
    };
    const size_t room = row_packet_names_size(4);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct row_packet_head head = { .step = 7, .count = cases[i].count, .flags = 2 }, got;
        _Alignas(8) char bytes[ROOM];
        struct error e = { 0 };
        const int32_t *ids;

        memcpy(bytes, &head, sizeof head);
        memcpy(bytes + sizeof head, cases[i].ids, sizeof cases[i].ids);
        if (row_packet_get_names(bytes, room, &all, 0, &got, &ids, &e) < 0
                ? !cases[i].why || !strstr(e.message, cases[i].why)
                : !!cases[i].why)
            fail_msg("case %zu: %s", i, e.message);
        if (!cases[i].why)
            assert_memory_equal(ids, cases[i].ids, (size_t)head.count * sizeof *ids);
    }
    assert_int_equal(
        row_packet_get_names("", 3, &all, 0, &(struct row_packet_head){ 0 }, &(const int32_t *){ NULL }, NULL),
        ERR_CORRUPT);
}

/* Two vectors; server 1 gets its rows of both tables, others stay. */
static const int32_t first[] = { 1, 6, 9 }, second[] = { 3 };
static const real first_values[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 }, second_values[] = { -1, -2 }, weights[] = { 4, 8 };
static const struct row_gradient gradients[] = {
    { 0, 3, 3, first, first_values },
    { 1, 1, 2, second, second_values },
    { 0, 0, 3, first, first_values },
    { 1, 1, 2, second, second_values },
};

static size_t put(char *bytes)
{
    return row_packet_put_sums(bytes, &(struct row_packet_head){ .step = 5, .count = 2 }, &all, 1, gradients, weights);
}

static void test_sums(void **state)
{
    _Alignas(8) char bytes[ROOM];
    struct row_packet_head head;
    struct row_gradient got[4];
    real w[2];

    (void)state;
    /* head, two vectors, ids of four rows, two of them three wide and two two wide */
    assert_int_equal(put(bytes), 16 + 2 * 16 + 4 * 4 + (2 * 3 + 2 * 2) * sizeof(real));
    assert_int_equal(row_packet_get_sums(bytes, ROOM, &all, 1, 2, MOST, &head, got, w, NULL), OK);
    assert_true(head.step == 5 && w[0] == 4 && w[1] == 8);
    assert_true(got[0].count == 2 && got[0].rows[0] == 6 && got[0].rows[1] == 9);
    assert_memory_equal(got[0].values, first_values + 3, 6 * sizeof(real));
    assert_true(got[1].count == 1 && got[1].variable == 1 && got[1].rows[0] == 3 && got[1].width == 2);
    assert_memory_equal(got[1].values, second_values, sizeof second_values);
    assert_true(got[2].count == 0 && got[3].count == 1);
    assert_memory_equal(got[3].values, second_values, sizeof second_values);
}

/* Whatever one byte is changed to, it is refused, or what is read lies within the message. */
static void test_changed(void **state)
{
    int refused = 0;

    (void)state;
    for (size_t at = 0; at < 16 + 2 * 16 + 4 * 4; at++)
        for (int value = 0; value < 256; value += 5) {
            _Alignas(8) char bytes[ROOM];
            struct row_packet_head head;
            struct row_gradient got[4];
            real w[2];

            put(bytes);
            bytes[at] = (char)value;
            if (row_packet_get_sums(bytes, ROOM, &all, 1, 2, MOST, &head, got, w, NULL) < 0) {
                refused++;
                continue;
            }
            for (size_t i = 0; i < 4; i++)
                for (size_t k = 0; k < got[i].count; k++)
                    assert_true(got[i].rows[k] >= 0 && got[i].rows[k] < tables[i % 2].rows &&
                                (const char *)(got[i].values + got[i].count * got[i].width) <= bytes + ROOM);
        }
    assert_true(refused > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_changed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
