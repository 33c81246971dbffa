/*
 * golden_log.h - for tests of the public reader: a directory of their own, the golden file of the format's
 * specification, and scalars as records of a file.
 */
#ifndef TESTS_EVENTLOG_GOLDEN_LOG_H
#define TESTS_EVENTLOG_GOLDEN_LOG_H

#include "base/bytes.h"
#include "eventlog/format/record.h"
#include "tests/check.h"
#include "tests/eventlog/hex.h"
#include "tests/eventlog/remove_tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Eleven records: file version; loss at steps 0, 1, 2; a histogram, an image, a clip, a text, a graph, hyperparameters;
 * loss at step 1 again. 624 bytes, SHA-256 818c8c5f811e95d2... */
static const char golden_hex[] =
    "1800000000000000a37f4b22090000000065cdcd411a0d627261696e2e4576656e743a32f4eb195e1800000000000000a37f"
    "4b22090000800065cdcd412a0d0a0b0a046c6f73731500000040deaae8b21a00000000000000129bd82d090000000165cdcd"
    "4110012a0d0a0b0a046c6f7373150000803f0da02dfc1a00000000000000129bd82d090000800165cdcd4110022a0d0a0b0a"
    "046c6f7373150000003f2f248e2573000000000000000d737cc8090000000265cdcd412a680a660a01772a61090000000000"
    "00f0bf110000000000000840190000000000001040210000000000000040290000000000002c403218000000000000000000"
    "00000000000040ffffffffffffef7f3a18000000000000f03f0000000000000040000000000000f03ff9813d5c2000000000"
    "00000029eda950090000800265cdcd412a150a130a03696d67220c080210031803220489504e47e309dc892e000000000000"
    "00c5cb57fa090000000365cdcd412a230a210a03736e64321a0d0000fa45100118012204524946462a09617564696f2f7761"
    "761dd09c9a2e00000000000000c5cb57fa090000800365cdcd412a230a210a046e6f7465420f080712041202080142056865"
    "6c6c6f4a080a060a047465787466cc30c41700000000000000e7cef81e090000000465cdcd41220c0a0a0a01611205436f6e"
    "7374fc16807b3c00000000000000c8b7a352090000800465cdcd412a310a2f0a1c5f68706172616d735f2f73657373696f6e"
    "5f73746172745f696e666f4a0f0a0d0a0768706172616d7312021a00c3ed16e61a00000000000000129bd82d090000000a65"
    "cdcd4110012a0d0a0b0a046c6f7373150000403fe68cef19";

static uint8_t golden[800];
static size_t golden_size;
static char directory[64];

static inline const char *in(const char *name)
{
    static char paths[4][256];
    static int turn;

    turn = (turn + 1) % 4;
    snprintf(paths[turn], sizeof paths[turn], "%s/%s", directory, name);
    return paths[turn];
}

static inline int setup(void **state)
{
    (void)state;
    golden_size = hex_bytes(golden_hex, golden);
    strcpy(directory, "/tmp/test_log_reader.XXXXXX");
    return mkdtemp(directory) ? 0 : -1;
}

static inline int empty(void **state)
{
    (void)state;
    return empty_tree(directory);
}

static inline int teardown(void **state)
{
    return empty(state) || rmdir(directory);
}

static inline void put(const char *path, int flags, const void *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | flags, 0666);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    assert_int_equal(close(fd), 0);
}

/* One scalar as a record of its own file or behind it. */
static inline void scalar(const char *path, int flags, const char *tag, int64_t step, double wall, float value)
{
    uint8_t record[200] = { 0 }, *p = record + RECORD_HEADER;
    size_t tag_length = strlen(tag), n = 0;

    p[n++] = 0x09;
    put_le64(p + n, double_bits(wall));
    n += 8;
    p[n++] = 0x10;
    n += (size_t)put_varint(p + n, (uint64_t)step);
    p[n++] = 0x2a;
    p[n++] = (uint8_t)(tag_length + 9);
    p[n++] = 0x0a;
    p[n++] = (uint8_t)(tag_length + 7);
    p[n++] = 0x0a;
    p[n++] = (uint8_t)tag_length;
    memcpy(p + n, tag, tag_length);
    n += tag_length;
    p[n++] = 0x15;
    put_le32(p + n, float_bits(value));
    n += 4;
    record_seal(record, n);
    put(path, flags, record, n + RECORD_OVERHEAD);
}

#endif
