/* record_pieces.h: cut anywhere, pieces give what one reader gives from the start: in sound files, in damaged ones, and
 * where a cut is inside a record that holds records. */
#include "eventlog/read/record_pieces.h"

#include "base/bytes.h"
#include "tests/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIZE_MOST = 4096, FOUND_MOST = 256, LIMIT = 700 };

struct found {
    uint64_t offset, length;
    int damage; /* -1: data */
};

struct list {
    struct found items[FOUND_MOST];
    size_t count;
    uint64_t lost;
};

static char path[] = "/tmp/test_record_pieces.XXXXXX";
static uint8_t file[SIZE_MOST];
static size_t size;

static int setup(void **state)
{
    int fd = mkstemp(path);

    (void)state;
    return fd < 0 || close(fd);
}

static int teardown(void **state)
{
    (void)state;
    return unlink(path);
}

static void add_record(const void *data, size_t n)
{
    assert_true(size + n + RECORD_OVERHEAD <= sizeof file);
    memcpy(file + size + RECORD_HEADER, data, n);
    record_seal(file + size, n);
    size += n + RECORD_OVERHEAD;
}

/* Records of 0 to 96 bytes, and in the middle one whose data is five whole records, and one that is over the limit. */
static void make_file(void)
{
    uint8_t data[1024], records[1024];

    size = 0;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 31 + 7);
    for (size_t i = 0; i < 5; i++)
        add_record(data + i, 20 * i);
    memcpy(records, file, size);
    add_record(records, size);
    for (size_t i = 0; i < 12; i++)
        add_record(data + i, i * 37 % 97);
    add_record(data, 800);
    for (size_t i = 0; i < 6; i++)
        add_record(data + i, i * 11);
}

static void save(void)
{
    int fd = open(path, O_WRONLY | O_TRUNC);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, file, size), size);
    close(fd);
}

static void take(struct record_piece *p, struct list *l)
{
    struct record r;
    int rc;

    while ((rc = record_piece_next(p, &r, NULL)) == RECORD_DATA || rc == RECORD_DAMAGE) {
        assert_true(l->count < FOUND_MOST);
        if (rc == RECORD_DATA)
            assert_memory_equal(r.data, file + r.offset + RECORD_HEADER, r.length);
        l->items[l->count++] = (struct found){ r.offset, rc == RECORD_DATA ? r.length : 0,
                                               rc == RECORD_DATA ? -1 : (int)r.damage };
    }
    assert_int_equal(rc, RECORD_MORE);
}

/* As record_pieces.h describes, one after the other. Returns how many pieces were given up. */
static int in_pieces(const uint64_t *starts, size_t count, struct list *all)
{
    static struct record_piece pieces[SIZE_MOST];
    static struct list lists[64];
    int given_up = 0;

    all->count = 0;
    all->lost = 0;
    assert_true(count <= 64);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(record_piece_open(&pieces[i], path, starts[i], starts[i + 1], size, LIMIT, NULL), OK);
        lists[i].count = 0;
        take(&pieces[i], &lists[i]);
    }
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && !pieces[i].met; next++, given_up++) {
            pieces[i].end = pieces[next].end;
            take(&pieces[i], &lists[i]);
        }
        memcpy(all->items + all->count, lists[i].items, lists[i].count * sizeof *all->items);
        all->count += lists[i].count;
        all->lost += pieces[i].file.parser.lost;
    }
    for (size_t i = 0; i < count; i++)
        record_piece_close(&pieces[i]);
    return given_up;
}

static void same(const struct list *a, const struct list *b, const char *what, size_t at)
{
    if (a->count != b->count || a->lost != b->lost || memcmp(a->items, b->items, a->count * sizeof *a->items) != 0)
        fail_msg("%s %zu: %zu results and %llu bytes lost, not %zu and %llu", what, at, b->count,
                 (unsigned long long)b->lost, a->count, (unsigned long long)a->lost);
}

/* Cut once, from every byte on, and into as many pieces as there are. Returns how many pieces were given up. */
static int cut_everywhere(const char *what, size_t at)
{
    const uint64_t whole[] = { 0, size };
    struct list one, more;
    struct record_file f;
    uint64_t starts[65], place, last = 0;
    int given_up = 0, count;

    save();
    in_pieces(whole, 1, &one);
    assert_int_equal(record_file_open(&f, path, NULL), OK);
    for (uint64_t from = 1; from < size && record_file_find(&f, from, size, &place) == 1; from = place + 1) {
        given_up += in_pieces((const uint64_t[]){ 0, place, size }, 2, &more);
        same(&one, &more, what, at);
        assert_true(place > last);
        last = place;
    }
    for (size_t most = 2; most <= 64; most *= 2) {
        count = record_pieces_cut(&f, most, 1, starts);
        assert_in_range(count, 1, most);
        assert_int_equal(starts[count], size);
        in_pieces(starts, (size_t)count, &more);
        same(&one, &more, what, at);
    }
    record_file_close(&f);
    return given_up;
}

static void sound(void **state)
{
    (void)state;
    make_file();
    /* the five records inside a record; and the one over the limit, which counts as damage at the cut */
    assert_int_equal(cut_everywhere("sound", 0), 6);
}

static void every_byte_damaged(void **state)
{
    (void)state;
    make_file();
    for (size_t i = 0; i < size; i += 3) {
        file[i] ^= 0x40;
        cut_everywhere("damaged at", i);
        file[i] ^= 0x40;
    }
}

static void cut_short_or_zero(void **state)
{
    size_t whole;

    (void)state;
    make_file();
    whole = size;
    for (size = 1; size < whole; size += 23)
        cut_everywhere("truncated to", size);
    size = whole;
    for (size_t i = 100; i < size; i += 41) {
        memset(file + i, 0, i % 200 < size - i ? i % 200 : size - i);
        cut_everywhere("zeros at", i);
        make_file();
    }
    memset(file + 700, 0, size - 700);
    cut_everywhere("zeros from", 700);
}

static void small_files_stay_whole(void **state)
{
    struct record_file f;
    uint64_t starts[9];

    (void)state;
    make_file();
    save();
    assert_int_equal(record_file_open(&f, path, NULL), OK);
    assert_int_equal(record_pieces_cut(&f, 8, RECORD_PIECE_LEAST, starts), 1);
    assert_int_equal(starts[1], size);
    assert_int_equal(record_pieces_cut(&f, 8, size / 2, starts), 2);
    record_file_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound),
        cmocka_unit_test(every_byte_damaged),
        cmocka_unit_test(cut_short_or_zero),
        cmocka_unit_test(small_files_stay_whole),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
