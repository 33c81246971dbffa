/* A file read in pieces, cut at every place, gives the run, the damage and the reader that one reader gives: for numbers
 * and other values, restarts, damage anywhere, and records in records. */
#include "eventlog/server/file_pieces.h"

#include "base/bytes.h"
#include "base/record_frame.h"
#include "tests/check.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MOST = 16384, DAMAGE_MOST = 256, RECORDS = 60 };

static char pieces_path[] = "/tmp/test_file_pieces.XXXXXX";
static uint8_t content[FILE_MOST];
static size_t content_size;
static uint64_t random_state;

static unsigned pick(unsigned n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % n;
}

static void add_framed(const void *data, size_t n)
{
    assert_true(content_size + n + RECORD_OVERHEAD <= sizeof content);
    bytes_copy(content + content_size + RECORD_HEADER, data, n);
    record_seal(content + content_size, n);
    content_size += n + RECORD_OVERHEAD;
}

/* wall time, step, and a field of that number with those bytes */
static void add_pieces_event(double wall, uint8_t step, uint8_t field, const uint8_t *bytes, size_t n)
{
    uint8_t event[160] = { 0x09 };

    assert_true(n < 128);
    put_le64(event + 1, double_bits(wall));
    event[9] = 0x10;
    event[10] = step;
    event[11] = (uint8_t)(field << 3 | 2);
    event[12] = (uint8_t)n;
    bytes_copy(event + 13, bytes, n);
    add_framed(event, 13 + n);
}

/* A number at a tag of one byte; a summary of one or more of them. */
static size_t value_of(uint8_t *out, uint8_t tag)
{
    const uint8_t value[] = { 0x0a, 8, 0x0a, 1, tag, 0x15, (uint8_t)pick(256), (uint8_t)pick(256), 0x80, 0x3f };

    bytes_copy(out, value, sizeof value);
    return sizeof value;
}

static void add_any(double wall, uint8_t step)
{
    static const uint8_t image[] = { 0x0a, 5, 0x0a, 1, 'i', 0x22, 0 };
    static const uint8_t tensor[] = { 0x0a, 14, 0x0a, 1, 't', 0x42, 9, 0x08, 1, 0x12, 0, 0x2a, 4, 0, 0, 0, 0, 0 };
    static const uint8_t image_at_number[] = { 0x0a, 5, 0x0a, 1, 'a', 0x22, 0 };
    uint8_t values[128], inner[64];
    size_t n = value_of(values, (uint8_t)('a' + pick(4)));

    switch (pick(12)) {
    case 0: add_pieces_event(wall, step, 5, image, sizeof image); break;
    case 1: add_pieces_event(wall, step, 5, tensor, sizeof tensor - 2); break;
    case 2: add_pieces_event(pick(2) ? NAN : INFINITY, step, 5, values, n); break;
    case 3: add_framed("\xff\xff", 2); break;
    case 4: /* a record in a record */
        bytes_copy(inner + RECORD_HEADER, "\x09\0\0\0\0\0\0\0\x40", 9);
        record_seal(inner, 9);
        add_pieces_event(wall, step, 3, inner, 9 + RECORD_OVERHEAD);
        break;
    case 5:
        n += value_of(values + n, 'x');
        add_pieces_event(wall, step, 5, values, n + value_of(values + n, 'a'));
        break;
    case 6:
        value_of(values, 0xff);
        add_pieces_event(wall, step, 5, values, n);
        break; /* not UTF-8 */
    case 7: add_pieces_event(wall, step, 5, image_at_number, sizeof image_at_number); break;
    default: add_pieces_event(wall, step, 5, values, n); break;
    }
}

static void make_content(uint64_t seed)
{
    double wall = 1000;

    random_state = seed;
    content_size = 0;
    for (unsigned i = 0, step = 0; i < RECORDS; i++) {
        add_any(wall += 1, (uint8_t)step);
        step = pick(15) ? step + pick(2) : pick(step + 1); /* the same again, and restarts */
    }
}

struct outcome {
    struct run_data *run;
    struct event_reader *reader;
    struct event_damage damages[DAMAGE_MOST];
    size_t damage_count, pieces;
};

static void note(void *context, const struct event_damage *damage)
{
    struct outcome *o = context;

    assert_true(o->damage_count < DAMAGE_MOST);
    o->damages[o->damage_count] = *damage;
    o->damages[o->damage_count].data = NULL; /* is not kept */
    o->damages[o->damage_count++].length = 0;
}

static int more(void *context)
{
    ((struct outcome *)context)->pieces++;
    return 1;
}

/* length 0: by one reader. */
static struct outcome *read_content(uint64_t length)
{
    struct outcome *o = calloc(1, sizeof *o);
    const struct file_pieces pieces = { length, o, note, more };
    struct event_damage damage;
    struct log_input input = { 0 };
    struct event event;
    uint64_t offset, next = 0;
    size_t n;
    int rc;

    assert_non_null(o->run = run_data_new("r", 1));
    assert_int_equal(event_reader_open(&o->reader, &input, pieces_path, NULL), OK);
    while ((rc = event_reader_next(o->reader, &event, &damage, NULL)) > 0) {
        if (rc == EVENT_READER_DAMAGE) {
            note(o, &damage);
            continue;
        }
        event_reader_record(o->reader, &n, &offset);
        assert_int_equal(run_data_event(o->run, 0, pieces_path, &event, offset, NULL), OK);
        if (length && event_reader_offset(o->reader) >= next) {
            assert_int_equal(file_pieces_read(&pieces, o->reader, o->run, 0, pieces_path, NULL), OK);
            next = event_reader_offset(o->reader) + 2 * length;
        }
    }
    assert_true(rc == EVENT_READER_END || rc == ERR_IO);
    log_input_release(&input);
    return o;
}

static void free_outcome(struct outcome *o)
{
    run_data_free(o->run);
    event_reader_close(o->reader);
    free(o);
}

static void expect_same_views(struct run_view *x, struct run_view *y)
{
    assert_true(!x == !y);
    if (!x)
        return;
    assert_true(x->start_time == y->start_time && x->count == y->count);
    for (size_t i = 0; i < x->count; i++) {
        const struct series_view *s = x->series[i], *t = y->series[i];

        assert_true(s->count == t->count && s->latest == t->latest && s->most_blobs == t->most_blobs);
        assert_true(s->info->class == t->info->class && s->info->tag_length == t->info->tag_length);
        assert_memory_equal(s->info->tag, t->info->tag, s->info->tag_length);
        for (size_t row = 0; row < s->count; row++)
            for (size_t c = 0; c < column_block_columns(s->blocks[0]); c++)
                assert_true(series_view_at(s, row, (enum column)c) == series_view_at(t, row, (enum column)c));
    }
}

static void expect_same_outcome(struct outcome *a, struct outcome *b)
{
    struct event_reader_place p, q;
    struct run_view *x, *y;
    int at_end = event_reader_place(a->reader, &p);

    assert_int_equal(a->damage_count, b->damage_count);
    assert_memory_equal(a->damages, b->damages, a->damage_count * sizeof *a->damages);
    assert_int_equal(event_reader_place(b->reader, &q), at_end);
    q.seen = p.seen;
    if (at_end)
        assert_memory_equal(&p, &q, sizeof p);
    assert_true(run_data_points(a->run) == run_data_points(b->run));
    assert_int_equal(run_data_view(a->run, &x, NULL), OK);
    assert_int_equal(run_data_view(b->run, &y, NULL), OK);
    expect_same_views(x, y);
    run_view_drop(x);
    run_view_drop(y);
}

static void save_content(void)
{
    int fd = open(pieces_path, O_WRONLY | O_TRUNC);

    assert_int_equal(write(fd, content, content_size), content_size);
    close(fd);
}

/* Returns how many pieces were read by others. */
static size_t compare_all(size_t every)
{
    struct outcome *one, *many;
    size_t pieces = 0;

    save_content();
    one = read_content(0);
    for (uint64_t length = 1; length < content_size / 2; length += every) {
        many = read_content(length);
        expect_same_outcome(one, many);
        pieces += many->pieces;
        free_outcome(many);
    }
    free_outcome(one);
    return pieces;
}

static int pieces_setup(void **state)
{
    int fd = mkstemp(pieces_path);

    (void)state;
    return fd < 0 || close(fd);
}

static int pieces_teardown(void **state)
{
    (void)state;
    return unlink(pieces_path);
}

static void test_sound(void **state)
{
    size_t pieces = 0;

    (void)state;
    for (uint64_t seed = 1; seed < 4; seed++) {
        make_content(seed);
        pieces += compare_all(3);
    }
    assert_true(sysconf(_SC_NPROCESSORS_ONLN) == 1 || pieces > 1000);
}

static void test_damaged(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 40; seed++) {
        make_content(seed);
        for (unsigned i = 0, count = 1 + pick(3); i < count; i++) {
            size_t at = pick((unsigned)content_size), n = 1 + pick(90);

            if (pick(2))
                content[at] ^= (uint8_t)(1 << pick(8));
            else
                memset(content + at, 0, n < content_size - at ? n : content_size - at);
        }
        if (!pick(4))
            content_size -= pick(200);
        compare_all(1 + content_size / 24);
    }
}

/* A tag that holds images is one of numbers in a piece alone. */
static void test_another_kind(void **state)
{
    static const uint8_t image[] = { 0x0a, 5, 0x0a, 1, 'a', 0x22, 0 };
    uint8_t value[16];

    (void)state;
    content_size = 0;
    for (int i = 0; i < 4; i++)
        add_pieces_event(1000 + i, (uint8_t)i, 5, image, sizeof image);
    for (int i = 4; i < 90; i++)
        add_pieces_event(1000 + i, (uint8_t)i, 5, value, value_of(value, 'a'));
    compare_all(37);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_another_kind),
    };

    return cmocka_run_group_tests(tests, pieces_setup, pieces_teardown);
}
