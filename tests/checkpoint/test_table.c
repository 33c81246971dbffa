/* The index's table, its entries and keys as bytes: vectors, and damage to every byte. */
#include "tests/checkpoint/checkpoint_fixture.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "checkpoint/bundle_entry.h"
#include "checkpoint/saved_slices.h"
#include "checkpoint/table.h"
#include "tests/checkpoint/sha256.h"

/* model.ckpt-700.index with a snappy data block. */
/* clang-format off */
static const char snappy_hex[] =
    "77ec00000608011a020801000c0f636f6e76312f62696173657308011204120208022808" "3553f643d80c19112f4578706f6e656e7469"
    "616c4d6f76696e67184176657261676511" "2bac2008280835ae10eb81000b0d676c6f62616c5f7374657008091200201028"
    "0835d7ef4bd20000000001000000019481a2e7" "000000000100000000c0f2a1b0" "0001026800750000000001000000"
    "00306b20ff" "7a0887010e";
/* clang-format on */

struct entry_copy {
    char key[64];
    size_t key_length, value_length;
    uint8_t value[64];
};

struct entries {
    struct entry_copy items[8];
    size_t count;
};

static int copy_entry(void *context, const void *key, size_t key_length, const void *value, size_t value_length,
                      struct error *e)
{
    struct entries *list = context;
    struct entry_copy *item = &list->items[list->count++];

    (void)e;
    assert_in_range(list->count, 1, 8);
    assert_true(key_length < sizeof item->key && value_length <= sizeof item->value);
    memcpy(item->key, key, key_length);
    item->key_length = key_length;
    memcpy(item->value, value, value_length);
    item->value_length = value_length;
    return OK;
}

static int ignore_entry(void *context, const void *key, size_t key_length, const void *value, size_t value_length,
                        struct error *e)
{
    (void)context, (void)key, (void)key_length, (void)value, (void)value_length, (void)e;
    return OK;
}

static size_t from_hex(const char *hex, uint8_t *out)
{
    size_t n = 0;
    unsigned v;

    for (; sscanf(hex, "%2x", &v) == 1 && hex[0] && hex[1]; hex += 2)
        out[n++] = (uint8_t)v;
    return n;
}

static void test_small_and_snappy(void **state)
{
    static const char *const keys[] = { "", "conv1/biases", "conv1/biases/ExponentialMovingAverage", "global_step" };
    uint8_t snappy[202] = { 0 };
    struct entries plain = { .count = 0 }, packed = { .count = 0 };
    struct error e = { 0 };
    char sum[65];

    (void)state;
    assert_int_equal(from_hex(snappy_hex, snappy), 159);
    memcpy(snappy + 194, small_index + 196, 8);
    sha256_hex(snappy, sizeof snappy, sum);
    assert_string_equal(sum, "7ee0fe8de95f2c339c1a5321cf30f80c72f83d328b8b86396c7969a5abada43a");
    sha256_hex(small_index, sizeof small_index, sum);
    assert_string_equal(sum, "0d6d84dc2d37a967c8817bd258173ed9bd4ec7c633fc98b9e16c6775a678f508");
    assert_int_equal(table_read("plain", small_index, sizeof small_index, copy_entry, &plain, &e), OK);
    if (table_read("snappy", snappy, sizeof snappy, copy_entry, &packed, &e) != OK)
        fail_msg("%s", e.message);
    assert_int_equal(plain.count, 4);
    assert_memory_equal(&plain, &packed, sizeof plain);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(plain.items[i].key_length, strlen(keys[i]));
        assert_memory_equal(plain.items[i].key, keys[i], strlen(keys[i]));
    }
    for (size_t i = 0; i < sizeof snappy; i++)
        for (int bit = 0; bit < 8; bit++) {
            snappy[i] = (uint8_t)(snappy[i] ^ 1 << bit);
            assert_int_equal(table_read("damaged", snappy, sizeof snappy, ignore_entry, NULL, &e), ERR_CORRUPT);
            snappy[i] = (uint8_t)(snappy[i] ^ 1 << bit);
        }
}

/* Makes the stored CRC of the block at offset right again after a change. */
static void fix_crc(uint8_t *file, size_t offset, size_t size)
{
    put_le32(file + offset + size + 1, crc32c_mask(crc32c(file + offset, size + 1)));
}

static void test_broken_files(void **state)
{
    uint8_t file[SMALL_INDEX];
    struct error e = { 0 };

    (void)state;
#define REFUSED(n, words) \
    do { \
        assert_int_equal(table_read("m.index", file, n, ignore_entry, NULL, &e), ERR_CORRUPT); \
        assert_says(e, "m.index: "); \
        assert_says(e, words); \
        memcpy(file, small_index, sizeof file); \
    } while (0)
    memcpy(file, small_index, sizeof file);
    REFUSED(0, "too short: 0 bytes");
    REFUSED(47, "too short: 47 bytes");
    REFUSED(SMALL_INDEX - 1, "bad magic");
    file[50] ^= 1;
    REFUSED(SMALL_INDEX, "CRC mismatch in the data block");
    file[119] = 2;
    fix_crc(file, 0, 119);
    REFUSED(SMALL_INDEX, "unknown block type 2");
    file[39] = 0x0d;
    fix_crc(file, 0, 119);
    REFUSED(SMALL_INDEX, "malformed entry at byte 39");
    memmove(file + 161 + 8, file + 161, 196 - 161 - 8);
    memcpy(file + 160, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 10); /* 2^63 */
    REFUSED(SMALL_INDEX, "bad handle of the index block");
    file[119] = 1; /* says snappy: 00 00 06 .. is a length of 0, then data */
    fix_crc(file, 0, 119);
    REFUSED(SMALL_INDEX, "bad compressed data");
    memcpy(file, "\xff\xff\xff\xff\x0f", 5); /* a preamble of 4 GiB in 119 bytes */
    file[119] = 1;
    fix_crc(file, 0, 119);
    REFUSED(SMALL_INDEX, "cannot become 4294967295");
    file[84 + 3] = 'a'; /* "global_step" becomes "alobal_step", before "conv1" */
    fix_crc(file, 0, 119);
    REFUSED(SMALL_INDEX, "does not come after");
    put_le32(file + 115, 0x40000000); /* restarts */
    fix_crc(file, 0, 119);
    REFUSED(SMALL_INDEX, "claims 1073741824 restarts");
    file[137 + 3] = 'g' - 1; /* the index key goes below the last key */
    fix_crc(file, 137, 14);
    REFUSED(SMALL_INDEX, "is below its last key");
    file[180] = 1;
    REFUSED(SMALL_INDEX, "damaged footer: byte 180");
#undef REFUSED
}

/* 12,000 tensors of zeros make two data blocks. */
static void build_large(struct buffer *out, int tensors)
{
    struct table_builder t;
    struct buffer value = BUFFER_EMPTY;
    static const uint8_t zeros[28];
    struct error e = { 0 };
    int64_t offset = 0;
    char name[32];

    buffer_init(out);
    table_builder_init(&t, out);
    bundle_header_encode(&value, 1);
    table_builder_add(&t, "", 0, value.data, value.length);
    for (int i = 0; i < tensors; i++) {
        int64_t shape = i % 7 + 1;
        struct tensor_entry entry = { .name = name,
                                      .type = TENSOR_FLOAT,
                                      .rank = 1,
                                      .shape = &shape,
                                      .offset = offset,
                                      .size = 4 * shape,
                                      .crc = crc32c_mask(crc32c(zeros, 4 * (size_t)shape)) };

        buffer_clear(&value);
        assert_int_equal(bundle_entry_encode(&value, &entry, &e), OK);
        table_builder_add(&t, name, (size_t)snprintf(name, sizeof name, "t/%05d", i), value.data, value.length);
        offset += entry.size;
    }
    assert_int_equal(table_builder_finish(&t, &e), OK);
    table_builder_release(&t);
    buffer_release(&value);
}

static void test_two_blocks(void **state)
{
    struct buffer file;
    struct error e = { 0 };
    char sum[65];

    (void)state;
    build_large(&file, 12000);
    assert_int_equal(file.length, 283918);
    sha256_hex(file.data, file.length, sum);
    assert_string_equal(sum, "4351679fc68df7bb94abb781be671f6902a4b54b1ce4effc1902f9330707d13b");
    assert_int_equal(table_read("large", file.data, file.length, ignore_entry, NULL, &e), OK);
    for (size_t i = 0; i < file.length; i += i < 283700 ? 499 : 1) {
        file.data[i] = (char)(file.data[i] ^ 1 << i % 8);
        assert_int_equal(table_read("damaged", file.data, file.length, ignore_entry, NULL, &e), ERR_CORRUPT);
        file.data[i] = (char)(file.data[i] ^ 1 << i % 8);
    }
    buffer_release(&file);
}

/* Whoever looks for a key begins at a restart: TensorFlow does. Each must be where an entry begins that shares nothing. */
static int count_entry(void *context, const void *key, size_t key_length, const void *value, size_t value_length,
                       struct error *e)
{
    (void)key, (void)key_length, (void)value, (void)value_length, (void)e;
    ++*(size_t *)context;
    return OK;
}

/* Each value has a block of its own: the index names the blocks by keys between those of two. */
static void test_keys_between(void **state)
{
    static const char *const keys[] = { "",      "a",         "ab", "abc", "abd",  "abz",     "b",
                                        "b\xff", "b\xff\xff", "c",  "e",   "\xff", "\xff\xff" };
    static uint8_t value[300 << 10];

    (void)state;
    for (size_t n = 1; n <= sizeof keys / sizeof *keys; n++) {
        struct buffer file = BUFFER_EMPTY;
        struct table_builder t;
        struct error e = { 0 };
        size_t count = 0;

        table_builder_init(&t, &file);
        for (size_t i = 0; i < n; i++)
            table_builder_add(&t, keys[i], strlen(keys[i]), value, sizeof value);
        assert_int_equal(table_builder_finish(&t, &e), OK);
        table_builder_release(&t);
        if (table_read("keys", file.data, file.length, count_entry, &count, &e) != OK)
            fail_msg("%s", e.message);
        assert_int_equal(count, n);
        buffer_release(&file);
    }
}

static void test_restarts(void **state)
{
    struct buffer file;
    struct error e = { 0 };
    uint64_t metaindex;
    uint32_t restarts;
    uint8_t *bytes, *array;
    size_t size;

    (void)state;
    build_large(&file, 300);
    bytes = (uint8_t *)file.data;
    assert_true(get_varint(bytes + file.length - TABLE_FOOTER, VARINT_MAX, &metaindex) > 0);
    size = (size_t)metaindex - 5;
    restarts = get_le32(bytes + size - 4);
    assert_int_equal(restarts, (301 + 15) / 16);
    array = bytes + size - 4 - 4 * restarts;
    for (uint32_t i = 1; i < restarts; i++) {
        uint32_t right = get_le32(array + 4 * i), next = right + 3 + bytes[right + 1] + bytes[right + 2];
        const uint32_t wrong[] = { right - 1, right + 1, next };

        for (int k = 0; k < 3; k++) {
            put_le32(array + 4 * i, wrong[k]);
            fix_crc(bytes, 0, size);
            if (table_read("m.index", bytes, file.length, ignore_entry, NULL, &e) != ERR_CORRUPT)
                fail_msg("restart %u at %u instead of %u is not noticed", i, wrong[k], right);
            assert_says(e, "restart");
        }
        put_le32(array + 4 * i, right);
    }
    /* Without restarts a reader finds no entry: all tensors of the block would be gone. */
    put_le32(bytes + size - 4, 0);
    fix_crc(bytes, 0, size);
    assert_int_equal(table_read("m.index", bytes, file.length, ignore_entry, NULL, &e), ERR_CORRUPT);
    assert_says(e, "no restarts");
    buffer_release(&file);
}

/* [0, 13) a block without entries, then the small index's blocks; separator: of the first one, a byte or none. */
static size_t build_empty_first(const char *separator, uint8_t *file)
{
    static const uint8_t empty[8] = { 0, 0, 0, 0, 1 };
    const size_t n = strlen(separator), first = 13, metaindex = first + 124, index = metaindex + 13;
    size_t at = index;

    memset(file, 0, SMALL_INDEX + 64);
    memcpy(file, empty, sizeof empty);
    fix_crc(file, 0, sizeof empty);
    memcpy(file + first, small_index, 137);
    memcpy(file + at, (uint8_t[]){ 0, (uint8_t)n, 2 }, 3);
    memcpy(file + at + 3, separator, n);
    memcpy(file + at + 3 + n, (uint8_t[]){ 0, 8, 0, 1, 2, 'h', 13, 119 }, 8);
    at += 11 + n;
    memcpy(file + at, (uint8_t[]){ 0, 0, 0, 0, (uint8_t)(5 + n), 0, 0, 0, 2, 0, 0, 0 }, 12);
    at += 12;
    fix_crc(file, index, at - index);
    at += 5;
    memcpy(file + at, (uint8_t[]){ 0x89, 1, 8, 0x96, 1, (uint8_t)(at - 5 - index) }, 6);
    memcpy(file + at + TABLE_FOOTER - 8, small_index + SMALL_INDEX - 8, 8);
    return at + TABLE_FOOTER;
}

/* A search for a key below its separator would end in a first block that has no keys. */
static void test_empty_first_block(void **state)
{
    uint8_t file[SMALL_INDEX + 64];
    struct error e = { 0 };

    (void)state;
    for (int i = 0; i < 2; i++) {
        size_t n = build_empty_first(i ? "d" : "", file);

        assert_int_equal(table_read("m.index", file, n, ignore_entry, NULL, &e), ERR_CORRUPT);
        assert_says(e, "the index key before the block at byte 13 is not below its first key");
    }
}

/* Every bit of the small index, every byte of one of 300 tensors; and both cut at every length. */
static void test_every_damaged_byte(void **state)
{
    uint8_t small[SMALL_INDEX];
    struct buffer file;
    struct error e = { 0 };

    (void)state;
    memcpy(small, small_index, sizeof small);
    for (size_t i = 0; i < sizeof small; i++)
        for (int change = 1; change < 256; change++) {
            small[i] = (uint8_t)(small[i] ^ change);
            if (table_read("damaged", small, sizeof small, ignore_entry, NULL, &e) != ERR_CORRUPT)
                fail_msg("byte %zu ^ 0x%02x is not noticed", i, change);
            small[i] = (uint8_t)(small[i] ^ change);
        }
    build_large(&file, 300);
    for (size_t i = 0; i < file.length; i++) {
        file.data[i] = (char)(file.data[i] ^ 1 << i % 8);
        if (table_read("damaged", file.data, file.length, ignore_entry, NULL, &e) != ERR_CORRUPT)
            fail_msg("byte %zu is not noticed", i);
        file.data[i] = (char)(file.data[i] ^ 1 << i % 8);
        assert_int_equal(table_read("cut", file.data, i, ignore_entry, NULL, &e), ERR_CORRUPT);
    }
    buffer_release(&file);
}

/* The index of the CIFAR-10 tutorial at step 2000, which TensorFlow 1.x wrote: two shards. */
static void test_real_index(void **state)
{
    /* clang-format off */
    static const struct { const char *key; int type, shard, offset; uint32_t crc; int64_t shape[5]; } rows[] = {
        { "conv1/biases", 1, 1, 0, 0x761b1ef3, { 64 } },
        { "conv1/biases/ExponentialMovingAverage", 1, 1, 256, 0xb81ede54, { 64 } },
        { "conv1/weights", 1, 1, 512, 0x2c45604f, { 5, 5, 3, 64 } },
        { "conv1/weights/ExponentialMovingAverage", 1, 1, 19712, 0x31ee8bda, { 5, 5, 3, 64 } },
        { "conv2/biases", 1, 1, 38912, 0xf73ac4a8, { 64 } },
        { "conv2/biases/ExponentialMovingAverage", 1, 1, 39168, 0x9311daba, { 64 } },
        { "conv2/weights", 1, 1, 39424, 0xa0e4dc19, { 5, 5, 64, 64 } },
        { "conv2/weights/ExponentialMovingAverage", 1, 1, 449024, 0x7c5e63ca, { 5, 5, 64, 64 } },
        { "cross_entropy/avg", 1, 0, 0, 0xfd8a0251, { 0 } },
        { "global_step", 9, 0, 4, 0x5045624c, { 0 } },
        { "local3/biases", 1, 1, 858624, 0x956de3c7, { 384 } },
        { "local3/biases/ExponentialMovingAverage", 1, 1, 860160, 0x8c91df92, { 384 } },
        { "local3/weight_loss/avg", 1, 0, 12, 0xc9c15179, { 0 } },
        { "local3/weights", 1, 1, 861696, 0xb9631741, { 2304, 384 } },
        { "local3/weights/ExponentialMovingAverage", 1, 1, 4400640, 0xdea451ef, { 2304, 384 } },
        { "local4/biases", 1, 1, 7939584, 0xa12aeaac, { 192 } },
        { "local4/biases/ExponentialMovingAverage", 1, 1, 7940352, 0xe01ef1e0, { 192 } },
        { "local4/weight_loss/avg", 1, 0, 16, 0x372a9132, { 0 } },
        { "local4/weights", 1, 1, 7941120, 0x5575a864, { 384, 192 } },
        { "local4/weights/ExponentialMovingAverage", 1, 1, 8236032, 0x35e889b9, { 384, 192 } },
        { "softmax_linear/biases", 1, 1, 8530944, 0x13279648, { 10 } },
        { "softmax_linear/biases/ExponentialMovingAverage", 1, 1, 8530984, 0x96ca133a, { 10 } },
        { "softmax_linear/weights", 1, 1, 8531024, 0xd131fd58, { 192, 10 } },
        { "softmax_linear/weights/ExponentialMovingAverage", 1, 1, 8538704, 0xa9db09a3, { 192, 10 } },
        { "total_loss/avg", 1, 0, 20, 0x39020ffc, { 0 } },
    };
    /* clang-format on */
    struct buffer file = BUFFER_EMPTY, value = BUFFER_EMPTY;
    struct table_builder t;
    struct error e = { 0 };
    char sum[65];

    (void)state;
    table_builder_init(&t, &file);
    bundle_header_encode(&value, 2);
    table_builder_add(&t, "", 0, value.data, value.length);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tensor_entry entry = { .name = rows[i].key,
                                      .type = rows[i].type,
                                      .shape = rows[i].shape,
                                      .shard = rows[i].shard,
                                      .offset = rows[i].offset,
                                      .crc = rows[i].crc };
        uint64_t elements;

        while (rows[i].shape[entry.rank])
            entry.rank++;
        assert_int_equal(bundle_shape_elements(entry.rank, entry.shape, &elements), OK);
        entry.size = (int64_t)elements * (int64_t)tensor_type_size(entry.type);
        buffer_clear(&value);
        assert_int_equal(bundle_entry_encode(&value, &entry, &e), OK);
        table_builder_add(&t, rows[i].key, strlen(rows[i].key), value.data, value.length);
    }
    assert_int_equal(table_builder_finish(&t, &e), OK);
    assert_int_equal(file.length, 1193);
    sha256_hex(file.data, file.length, sum);
    assert_string_equal(sum, "0c34dd1fc6a8f55e189145249e29a2d6ed53050d75630f736c62a1d0c1744daa");
    table_builder_release(&t);
    buffer_release(&file);
    buffer_release(&value);
}

static void test_slice_numbers(void **state)
{
    /* clang-format off */
    static const struct { int64_t v; const char *bytes; size_t n; } cases[] = {
        { 0, "\x80", 1 },  { 1, "\x81", 1 },        { 63, "\xbf", 1 },           { 64, "\xc0\x40", 2 },
        { 100, "\xc0\x64", 2 }, { 8191, "\xdf\xff", 2 }, { 8192, "\xe0\x20\x00", 3 },
        { 1000000, "\xef\x42\x40", 3 }, { 0x424242, "\xf0\x42\x42\x42", 4 }, { -1, "\x7f", 1 }, { -64, "\x40", 1 },
        { -65, "\x3f\xbf", 2 }, { -0x800, "\x38\x00", 2 },
    };
    /* clang-format on */

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buffer out = BUFFER_EMPTY;

        slice_key_append_number(&out, cases[i].v);
        if (out.length != cases[i].n || memcmp(out.data, cases[i].bytes, out.length) != 0)
            fail_msg("%lld", (long long)cases[i].v);
        buffer_release(&out);
    }
    /* The order of the bytes is the order of the numbers, at every change of length. */
    for (int bit = 5; bit < 63; bit++)
        for (int side = -1; side <= 1; side += 2) {
            struct buffer low = BUFFER_EMPTY, high = BUFFER_EMPTY;
            int64_t v = side * ((int64_t)1 << bit);

            slice_key_append_number(&low, v - 1);
            slice_key_append_number(&high, v);
            assert_true(memcmp(low.data, high.data, low.length < high.length ? low.length : high.length) < 0);
            buffer_release(&low);
            buffer_release(&high);
        }
}

/* One entry's bytes against what is wanted of them. */
static void test_entries(void **state)
{
    /* clang-format off */
    static const struct { const char *name, *hex; int rc; const char *says; } cases[] = {
        { "conv1/biases", "08011204120208022808" "3553f643d8", OK, "" },
        { "size does not match", "0801120412020802280c" "3553f643d8", ERR_CORRUPT, "does not match its shape" },
        { "shard 1 of 1", "080112041202080218012808", ERR_CORRUPT, "shard 1 of 1" },
        { "negative shard", "0801120412020802" "18ffffffffffffffffff01" "2808", ERR_CORRUPT, "shard -1" },
        { "no type", "12041202080228083553f643d8", ERR_CORRUPT, "dtype 0" },
        { "negative dimension", "0801120d120b08ffffffffffffffffff01", ERR_CORRUPT, "negative or too large" },
        { "product overflow", "0801" "1214" "12080880808080808020" "12080880808080808020", ERR_CORRUPT, "too large" },
        { "unknown rank", "080112021801", ERR_CORRUPT, "rank is unknown" },
        { "cut", "080112041202", ERR_CORRUPT, "not a BundleEntryProto" },
        { "offset overflow", "08011200" "20ffffffffffffffff7f" "2804", ERR_CORRUPT, "offset 9223372036854775807" },
        { "reference type, scalar without shape", "0865" "2804", OK, "" },
        { "unknown field", "08011200" "2804" "f80701", OK, "" },
        { "the last field", "08011200" "2804" "f8ffffff0f01", OK, "" },
        { "field 2^29", "08011200" "2804" "808080801001", ERR_CORRUPT,
          "tensor field 2^29: a field with an invalid number" },
        { "field 0 in two bytes", "08011200" "2804" "800000", ERR_CORRUPT, "a field with an invalid number" },
        { "field 0 in a dimension", "0801" "1207" "1205" "0801" "800000" "2804", ERR_CORRUPT,
          "a field with an invalid number" },
        { "field 0 in a slice", "0801120412020802" "3a09" "0a07" "08001002" "820000", ERR_CORRUPT,
          "a field with an invalid number" },
        { "text that is no UTF-8", "0801" "1205" "1203" "1201ff" "2800", ERR_CORRUPT, "not UTF-8" },
        { "name of a dimension", "0801" "1207" "1205" "1203" "61c3a9" "2800", OK, "" },
        { "strings", "080712041202080228" "01", ERR_CORRUPT, "2 strings" },
        { "slice rank", "0801120412020802" "3a00", ERR_CORRUPT, "has 0 dimensions, the tensor 1" },
        { "slice beyond", "0801120412020802" "3a060a0408011002", ERR_CORRUPT, "does not lie within dimension 0" },
    };
    /* clang-format on */
    struct tensor_entry *entry;
    uint8_t bytes[128];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error e = { 0 };
        size_t n = from_hex(cases[i].hex, bytes);
        int rc = bundle_entry_decode("m.index", cases[i].name, strlen(cases[i].name), bytes, n, 1, &entry, &e);

        if (rc != cases[i].rc || !strstr(e.message, cases[i].says))
            fail_msg("%s: %d, %s", cases[i].name, rc, e.message);
        free(entry);
    }
}

static void test_headers(void **state)
{
    static const struct {
        const char *hex;
        int rc;
        const char *says;
    } cases[] = {
        { "08011a020801", OK, "" },
        { "0802", OK, "" }, /* no version: before September 2016 */
        { "08011a0408011002", ERR_CORRUPT, "reader of version 2" },
        { "08011a0408011801", ERR_CORRUPT, "excludes" },
        { "08011a05"
          "08011a0101",
          ERR_CORRUPT, "excludes" },
        { "080110011a020801", ERR_CORRUPT, "big-endian" },
        { "1a020801", ERR_CORRUPT, "0 shards" },
        { "08", ERR_CORRUPT, "not a BundleHeaderProto" },
        { "0801"
          "800000",
          ERR_CORRUPT, "the header has a field with an invalid number" },
        { "0801"
          "1a050801"
          "800000",
          ERR_CORRUPT, "the header has a field with an invalid number" },
    };
    uint8_t bytes[64];
    int32_t shards;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error e = { 0 };
        int rc = bundle_header_decode("m.index", bytes, from_hex(cases[i].hex, bytes), &shards, &e);

        if (rc != cases[i].rc || !strstr(e.message, cases[i].says))
            fail_msg("%s: %d, %s", cases[i].hex, rc, e.message);
    }
}

static void test_slices(void **state)
{
    static const int64_t shape[] = { 4, 4 };
    static const struct {
        int n;
        int64_t box[4][4];
        const char *says;
    } cases[] = {
        /* row, column, rows, columns */
        { 2, { { 0, 0, 2, -1 }, { 2, 0, 2, -1 } }, NULL },
        { 4, { { 0, 0, 2, 2 }, { 0, 2, 2, 2 }, { 2, 0, 2, 2 }, { 2, 2, 2, 2 } }, NULL },
        { 3, { { 0, 0, 4, 2 }, { 0, 2, 1, 2 }, { 1, 2, 3, 2 } }, NULL },
        { 1, { { 0, 0, 3, 4 } }, "do not cover" },
        { 2, { { 0, 0, 2, 4 }, { 1, 0, 2, 4 } }, "overlap" },
        { 2, { { 0, 0, 4, 4 }, { 1, 0, 1, 4 } }, "overlap" },
        { 3, { { 0, 0, 4, 2 }, { 0, 1, 2, 2 }, { 0, 3, 4, 1 } }, "overlap" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tensor_slice slices[4];
        struct tensor_entry entry = {
            .name = "v", .rank = 2, .shape = shape, .elements = 16, .slice = slices, .slices = (size_t)cases[i].n
        };
        struct error e = { 0 };
        int rc;

        for (int k = 0; k < cases[i].n; k++)
            slices[k] = (struct tensor_slice){ cases[i].box[k], cases[i].box[k] + 2 };
        rc = bundle_slices_check("m.index", &entry, &e);
        if (rc != (cases[i].says ? ERR_CORRUPT : OK) || !strstr(e.message, cases[i].says ? cases[i].says : ""))
            fail_msg("case %zu: %d, %s", i, rc, e.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_and_snappy), cmocka_unit_test(test_broken_files),
        cmocka_unit_test(test_two_blocks),       cmocka_unit_test(test_every_damaged_byte),
        cmocka_unit_test(test_real_index),       cmocka_unit_test(test_slice_numbers),
        cmocka_unit_test(test_entries),          cmocka_unit_test(test_headers),
        cmocka_unit_test(test_slices),           cmocka_unit_test(test_keys_between),
        cmocka_unit_test(test_restarts),         cmocka_unit_test(test_empty_first_block),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
