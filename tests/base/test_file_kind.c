/* What a file is by its bytes. The beginnings are those that the programs named write. */

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/file_kind.h"
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define B(text) text, sizeof text - 1
/* The head of a zip file's first member; its name's length and that of the extra field follow. */
#define ZEROS50 \
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0" \
    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define TAR ZEROS50 ZEROS50 ZEROS50 ZEROS50 ZEROS50 "ustar\00000"
#define ZIP "PK\3\4\0\0\x08\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"

static const struct {
    enum file_kind kind;
    const char *bytes;
    size_t n;
} cases[] = {
    { FILE_KIND_EMPTY, B("") },
    { FILE_KIND_GZIP, B("\x1f\x8b\x08\0\0\0\0\0\0\x03") },
    { FILE_KIND_ZSTD, B("\x28\xb5\x2f\xfd\x04\x58") },
    { FILE_KIND_ZSTD, B("\x50\x2a\x4d\x18\4\0\0\0\x12\0\0\0\x28\xb5\x2f\xfd") }, /* pzstd's */
    { FILE_KIND_TAR, B("BZhang/" TAR) }, /* though its first name begins as a bzip2 file */
    { FILE_KIND_ZIP, B("PK\3\4\0\0\x08\x08\0\0archive/data.pkl") },
    { FILE_KIND_TORCH, B(ZIP "\x0e\0\x14\0model/data.pklFB\x10") }, /* torch.save of 2.9 */
    { FILE_KIND_TORCH, B(ZIP "\x0d\0\x15\0script/data/0FB\x11") },  /* torch.jit's */
    { FILE_KIND_KERAS, B(ZIP "\x0d\0\0\0metadata.json{\"ker") },
    { FILE_KIND_NPZ, B(ZIP "\5\0\x14\0w.npy\1\0\x10") },
    { FILE_KIND_ZIP, B(ZIP "\5\0\x14\0w.txt\1\0\x10") },
    { FILE_KIND_ZIP, B(ZIP "\xff\xff\x14\0w.npy\1\0\x10") },
    { FILE_KIND_ONNX, B("\x08\x08\x12\x07pytorch\x1a\x05"
                        "2.1.0\x3a") },
    { FILE_KIND_UNKNOWN, B("\x08\x01\x12\xd9\xaa\x01\x0a\xd6\x0e\x12\xa6") }, /* a SavedModel */
    { FILE_KIND_PICKLE, B("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8") },
    { FILE_KIND_HDF5, B("\x89HDF\r\n\x1a\n\0\0\0\0") },
    { FILE_KIND_SQLITE, B("SQLite format 3\0\x10\0\1\1\0\x40") },
    { FILE_KIND_SAFETENSORS, B("\x40\0\0\0\0\0\0\0{\"weight\":{\"dtype\":\"F32\"") },
    { FILE_KIND_NUMPY, B("\x93NUMPY\1\0v\0{'descr'") },
    { FILE_KIND_PARQUET, B("PAR1\x15\4\x15") },
    { FILE_KIND_GIT_LFS,
      B("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22e\n") },
    { FILE_KIND_JSON, B("\n  {\"step\": 1}\n") },
    { FILE_KIND_JSON, B("[1, 2]") },
    { FILE_KIND_TEXT, B("run,tag,step,value,wall_time\n.,loss,0,0.5,1700000000.0\n") },
    { FILE_KIND_TEXT, B("gr\xc3\xb6\xc3\x9f"
                        "e\n") },
    { FILE_KIND_PROGRAM, B("\x7f"
                           "ELF\2\1\1\0") },
    { FILE_KIND_UNKNOWN, B("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0") },
    { FILE_KIND_UNKNOWN, B("text\0with a NUL") },
    { FILE_KIND_UNKNOWN, B("\xff\xfe\x41\x00") },
    { FILE_KIND_UNKNOWN, B("\x1f") },
};

static void test_beginnings(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (file_kind(cases[i].bytes, cases[i].n, NULL) != cases[i].kind)
            fail_msg("case %zu: %s", i, file_kind_text(file_kind(cases[i].bytes, cases[i].n, NULL)));
    for (int kind = 0; kind < FILE_KINDS; kind++)
        assert_true(strlen(file_kind_text((enum file_kind)kind)) > 4);
}

static void test_event_log_and_table(void **state)
{
    static const uint8_t table_end[8] = { 0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb };
    static const uint64_t lengths[] = { 0x8b1f /* gzip's first bytes */, 0x685a42 /* bzip2's */, 24 };
    uint8_t head[12];

    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        put_le64(head, lengths[i]);
        put_le32(head + 8, crc32c_mask(crc32c(head, 8)));
        assert_int_equal(file_kind(head, sizeof head, table_end), FILE_KIND_EVENT_LOG);
    }
    head[0] ^= 1;
    assert_int_equal(file_kind(head, sizeof head, NULL), FILE_KIND_UNKNOWN);
    assert_int_equal(file_kind(head, sizeof head, table_end), FILE_KIND_TABLE);
    assert_int_equal(file_kind(head, 11, NULL), FILE_KIND_UNKNOWN);
}

/* A text that is cut inside a character by the size of the head is text still. */
static void test_cut_text(void **state)
{
    char head[FILE_KIND_HEAD];

    (void)state;
    memset(head, 'a', sizeof head);
    head[sizeof head - 1] = '\xc3';
    assert_int_equal(file_kind(head, sizeof head, NULL), FILE_KIND_TEXT);
    assert_int_equal(file_kind(head + 1, sizeof head - 1, NULL), FILE_KIND_UNKNOWN);
}

static void test_files(void **state)
{
    char path[] = "/tmp/evalboard-kind-XXXXXX";
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(file_kind_of(path), FILE_KIND_EMPTY);
    assert_int_equal(write(fd, "PK\3\4", 4), 4);
    assert_int_equal(file_kind_of(path), FILE_KIND_ZIP);
    assert_int_equal(file_kind_of("/nowhere/at/all"), FILE_KIND_UNKNOWN);
    assert_int_equal(file_kind_of("/"), FILE_KIND_UNKNOWN);
    close(fd);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_beginnings),
        cmocka_unit_test(test_event_log_and_table),
        cmocka_unit_test(test_cut_text),
        cmocka_unit_test(test_files),
    };

    return cmocka_run_group_tests_name("file_kind", tests, NULL, NULL);
}
