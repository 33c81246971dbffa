/*
 * One byte flipped, the file cut, zeros in the middle or at the end, all over a file of 2,000 records of every size:
 * the check names the record that is hit, the repair keeps all others byte for byte, the reader hands all others out.
 */
#include "eventlog/check/log_check.h"
#include "eventlog/eventlog.h"
#include "eventlog/format/record_file.h"
#include "eventlog/rewrite/log_repair.h"

#include "base/random.h"
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RECORDS = 2000, ZEROS = 4096, SAMPLES = 1500 };

static uint8_t *whole, *broken, *repaired;
static size_t size, starts[RECORDS + 1];
static int input, output;
static char path[512];

/* A file as the writer makes it: scalars of several tags, a text now and then, an image of some kilobytes. */
static int setup(void **state)
{
    static uint8_t pixels[3 * 40 * 40];
    char directory[] = "/tmp/test_damage.XXXXXX", note[400];
    const struct eventlog_reader_options o = { .records_only = 1 };
    struct eventlog_writer *w;
    struct eventlog_reader *r;
    struct random random;
    FILE *f;
    (void)state;

    random_init(&random, 9, RANDOM_TEST, 0, 0);
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)random_u32(&random);
    memset(note, 'x', sizeof note - 1);
    if (!mkdtemp(directory) || eventlog_writer_open(&w, directory, NULL, NULL) != EVENTLOG_OK)
        return -1;
    for (int i = 1; i < RECORDS; i++) {
        int rc = i % 400 == 0  ? eventlog_writer_image(w, "image", i, 5, pixels, 1, 40, 40, 3, NULL, NULL)
                 : i % 50 == 0 ? eventlog_writer_text(w, "note", i, 5, note + random_u32(&random) % 390, NULL, NULL)
                               : eventlog_writer_scalar(w, i % 2 ? "loss" : "accuracy/test", i, 5, (float)i, NULL);
        if (rc != EVENTLOG_OK)
            return -1;
    }
    snprintf(path, sizeof path, "%s", eventlog_writer_path(w));
    if (eventlog_writer_flush(w, NULL) != EVENTLOG_OK || !(f = fopen(path, "rb")) || !(whole = malloc(1 << 20)))
        return -1;
    size = fread(whole, 1, 1 << 20, f);
    fclose(f);
    if (eventlog_reader_open(&r, path, &o, NULL) != EVENTLOG_OK)
        return -1;
    for (size_t i = 0; eventlog_reader_next(r, NULL) == EVENTLOG_READ_EVENT; i++)
        starts[i < RECORDS ? i : RECORDS] = (size_t)eventlog_reader_event(r)->offset;
    starts[RECORDS] = size;
    eventlog_reader_close(r);
    eventlog_writer_close(w, NULL);
    unlink(path);
    rmdir(directory);
    broken = malloc(size + ZEROS);
    repaired = malloc(size + ZEROS);
    input = memfd_create("broken", MFD_CLOEXEC);
    output = memfd_create("repaired", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", input);
    return broken && repaired && input >= 0 && output >= 0 && starts[RECORDS - 1] ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    free(whole);
    free(broken);
    free(repaired);
    close(input);
    close(output);
    return 0;
}

/* The record that holds the byte at that place. */
static size_t record_of(size_t place)
{
    size_t low = 0, high = RECORDS;

    while (high - low > 1) {
        size_t middle = (low + high) / 2;

        *(starts[middle] <= place ? &low : &high) = middle;
    }
    return low;
}

/* Where the first finding is that is no note, SIZE_MAX if there is none; *kind which. */
static uint64_t check(enum log_finding_kind *kind)
{
    const struct log_finding *found;
    struct record_file f;
    struct record record;
    struct log_check *c;
    uint64_t place = UINT64_MAX;
    size_t count;
    int rc;

    assert_int_equal(log_check_new(&c, "run", NULL), OK);
    assert_int_equal(record_file_open(&f, path, NULL), OK);
    assert_int_equal(log_check_file(c, "a.tfevents", NULL), OK);
    while ((rc = record_file_next(&f, &record, NULL)) != RECORD_MORE) {
        assert_true(rc == RECORD_DATA || rc == RECORD_DAMAGE);
        if (rc == RECORD_DATA)
            assert_int_equal(log_check_record(c, record.offset, record.data, record.length, NULL), OK);
        else
            assert_int_equal(log_check_damage(c, &record, NULL), OK);
    }
    assert_int_equal(log_check_end(c, f.parser.offset, f.size, NULL), OK);
    record_file_close(&f);
    found = log_check_findings(c, &count);
    for (size_t i = 0; i < count && place == UINT64_MAX; i++)
        if (found[i].kind == LOG_PARTIAL || log_finding_text(found[i].kind)->level == LOG_DAMAGE) {
            place = found[i].offset;
            *kind = found[i].kind;
        }
    log_check_free(c);
    return place;
}

/* What is in broken (n bytes), in which the records from first up to behind are hit and all others whole: `from` is
 * where the check must find damage, UINT64_MAX for none. */
static void expect(size_t n, size_t first, size_t behind, uint64_t from, size_t at)
{
    const struct eventlog_reader_options o = { .records_only = 1 };
    enum log_finding_kind kind = LOG_KINDS;
    struct eventlog_reader *r;
    struct eventlog_repair repair;
    size_t kept = starts[first] + (size - starts[behind]), i = 0;
    uint64_t found;
    int rc;

    assert_int_equal(ftruncate(input, 0), 0);
    assert_int_equal(pwrite(input, broken, n, 0), n);
    if ((found = check(&kind)) != from)
        fail_msg("at %zu: damage is found at %lld, not at %lld", at, (long long)found, (long long)from);
    assert_int_equal(ftruncate(output, 0), 0);
    assert_int_equal(lseek(output, 0, SEEK_SET), 0);
    assert_int_equal(log_repair_copy(&io_real, path, output, "repaired", &repair, NULL), OK);
    assert_int_equal(pread(output, repaired, size + ZEROS, 0), kept);
    assert_memory_equal(repaired, whole, starts[first]);
    assert_memory_equal(repaired + starts[first], whole + starts[behind], size - starts[behind]);
    assert_int_equal(eventlog_reader_open(&r, path, &o, NULL), EVENTLOG_OK);
    while ((rc = eventlog_reader_next(r, NULL)) != EVENTLOG_READ_END) {
        if (rc != EVENTLOG_READ_EVENT)
            continue;
        i = i == first ? behind : i;
        if (i >= RECORDS || eventlog_reader_event(r)->length != starts[i + 1] - starts[i] - RECORD_OVERHEAD ||
            memcmp(eventlog_reader_event(r)->data, whole + starts[i] + RECORD_HEADER,
                   starts[i + 1] - starts[i] - RECORD_OVERHEAD) != 0)
            fail_msg("at %zu: the reader goes on with another record than %zu", at, i);
        i++;
    }
    i = i == first ? behind : i;
    assert_int_equal(i, RECORDS);
    eventlog_reader_close(r);
}

/* Every byte of some records of each kind and of the last ones, and others at random. */
static size_t sample(struct random *r, size_t turn)
{
    if (turn < 120)
        return starts[399] + turn; /* the last scalar before an image, and into it */
    if (turn < 240)
        return size - 1 - (turn - 120);
    if (turn < 320)
        return turn - 240;
    return (size_t)random_u32(r) % size;
}

static void test_flipped_bytes(void **state)
{
    struct random random;
    (void)state;

    random_init(&random, 10, RANDOM_TEST, 0, 0);
    for (size_t i = 0; i < SAMPLES; i++) {
        size_t at = sample(&random, i), hit = record_of(at);

        memcpy(broken, whole, size);
        broken[at] ^= (uint8_t)(i % 2 ? 1u << random_u32(&random) % 8 : 1 + random_u32(&random) % 255);
        expect(size, hit, hit + 1, starts[hit], at);
    }
}

static void test_cuts(void **state)
{
    struct random random;
    (void)state;

    random_init(&random, 11, RANDOM_TEST, 0, 0);
    for (size_t i = 0; i < SAMPLES; i++) {
        size_t at = sample(&random, i), last = record_of(at);

        memcpy(broken, whole, at);
        if (at) /* an empty file is a finding of its own */
            expect(at, last, RECORDS, at == starts[last] ? UINT64_MAX : starts[last], at);
    }
}

static void test_zeros(void **state)
{
    struct random random;
    (void)state;

    random_init(&random, 12, RANDOM_TEST, 0, 0);
    for (size_t i = 0; i < SAMPLES / 5; i++) {
        size_t at = (size_t)random_u32(&random) % (size - ZEROS), first = record_of(at);
        size_t behind = record_of(at + ZEROS - 1) + 1;

        while (at < size - ZEROS && !whole[at]) /* the first record whose bytes change is the first that is hit */
            first = record_of(++at);
        memcpy(broken, whole, size);
        memset(broken + at, 0, ZEROS);
        behind = record_of(at + ZEROS - 1) + 1;
        if (!memcmp(broken + starts[behind - 1], whole + starts[behind - 1], starts[behind] - starts[behind - 1]))
            behind--;
        expect(size, first, behind, starts[first], at);
        memcpy(broken, whole, size); /* and at the end, behind the last record or in the place of the last ones */
        memset(broken + size, 0, ZEROS);
        expect(size + ZEROS, RECORDS, RECORDS, size, size);
        at = size - random_u32(&random) % 300 - 1;
        first = record_of(at);
        memset(broken + at, 0, size - at);
        if (memcmp(broken + starts[first], whole + starts[first], starts[first + 1] - starts[first]) != 0)
            expect(size, first, RECORDS, starts[first], at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flipped_bytes),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_zeros),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
