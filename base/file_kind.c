#include "base/file_kind.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/file.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    enum file_kind kind;
    const char *bytes;
    size_t n;
} beginnings[] = {
    { FILE_KIND_GZIP, "\x1f\x8b", 2 },
    { FILE_KIND_ZSTD, "\x28\xb5\x2f\xfd", 4 },
    { FILE_KIND_XZ, "\3757zXZ\0", 6 },
    { FILE_KIND_BZIP2, "BZh", 3 },
    { FILE_KIND_ZIP, "PK\3\4", 4 },
    { FILE_KIND_ZIP, "PK\5\6", 4 },
    { FILE_KIND_HDF5, "\x89HDF\r\n\x1a\n", 8 },
    { FILE_KIND_SQLITE, "SQLite format 3\0", 16 },
    { FILE_KIND_NUMPY, "\x93NUMPY", 6 },
    { FILE_KIND_PARQUET, "PAR1", 4 },
    { FILE_KIND_GIT_LFS, "version https://git-lfs.github.com/spec/", 40 },
    { FILE_KIND_PROGRAM, "\177ELF", 4 },
};

/* LevelDB's table magic, little-endian, ends every table (specification of checkpoints, section 2). */
static const uint8_t table_end[FILE_KIND_TAIL] = { 0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb };

/* The header of a record: u64 length and its masked CRC-32C. */
static int is_event_log(const uint8_t *p, size_t n)
{
    return n >= 12 && crc32c_mask(crc32c(p, 8)) == get_le32(p + 8);
}

/* u64 length of the JSON text that begins there. */
static int is_safetensors(const uint8_t *p, size_t n)
{
    return n >= 10 && p[8] == '{' && get_le64(p) >= 2 && get_le64(p) < (uint64_t)1 << 32;
}

/* Protocol 2 and later: PROTO n at the start. */
static int is_pickle(const uint8_t *p, size_t n)
{
    return n >= 3 && p[0] == 0x80 && p[1] >= 2 && p[1] <= 5;
}

/* A zip file, by the name of its first member: it begins at byte 30, and its length is at byte 26. */
static enum file_kind zip_kind(const uint8_t *p, size_t n)
{
    size_t length = n >= 30 ? get_le16(p + 26) : 0;
    const char *name = (const char *)p + 30, *slash;

    if (!length || length > n - 30)
        return FILE_KIND_ZIP;
    if (length > 4 && !memcmp(name + length - 4, ".npy", 4))
        return FILE_KIND_NPZ;
    if ((length == 13 && !memcmp(name, "metadata.json", 13)) || (length == 11 && !memcmp(name, "config.json", 11)))
        return FILE_KIND_KERAS;
    if ((slash = memchr(name, '/', length))) { /* torch puts everything into a folder named after the file */
        length -= (size_t)(slash + 1 - name);
        if ((length == 8 && !memcmp(slash, "/data.pkl", 9)) || (length > 5 && !memcmp(slash, "/data/", 6)))
            return FILE_KIND_TORCH;
    }
    return FILE_KIND_ZIP;
}

/* An ONNX model has no magic: protobuf with a small ir_version, then the name of the program that wrote it, then that
 * program's version, the graph, or a domain. */
static int is_onnx(const uint8_t *p, size_t n)
{
    size_t length = n > 4 ? p[3] : 0;

    if (!length || length >= n - 4 || p[0] != 0x08 || !p[1] || p[1] > 30 || p[2] != 0x12)
        return 0;
    for (size_t i = 4; i < 4 + length; i++)
        if (p[i] < 0x20 || p[i] > 0x7e)
            return 0;
    return p[4 + length] == 0x1a || p[4 + length] == 0x22 || p[4 + length] == 0x3a;
}

/* POSIX and GNU; in archives before 1988 nothing tells. */
static int is_tar(const uint8_t *p, size_t n)
{
    return n >= 262 && !memcmp(p + 257, "ustar", 5);
}

/* A skippable frame, with which pzstd begins its files: RFC 8878, section 3.1.2. */
static int is_zstd_frame(const uint8_t *p, size_t n)
{
    return n >= 8 && (get_le32(p) & 0xfffffff0) == 0x184d2a50;
}

/* No control bytes but white space, and valid UTF-8 in all whole characters. */
static int is_text(const uint8_t *p, size_t n)
{
    size_t bad;

    for (size_t i = 0; i < n; i++)
        if (p[i] == 0x7f || (p[i] < 0x20 && (p[i] < '\t' || p[i] > '\r')))
            return 0;
    return utf8_valid(p, n, &bad) || (n == FILE_KIND_HEAD && n - bad < 4);
}

enum file_kind file_kind(const void *head, size_t n, const void *tail)
{
    const uint8_t *p = head;
    size_t blanks = 0;

    if (!n)
        return FILE_KIND_EMPTY;
    if (is_event_log(p, n)) /* first: a record of 35,615 bytes begins like a gzip file, except for its CRC */
        return FILE_KIND_EVENT_LOG;
    if (is_tar(p, n)) /* before what may be the name of its first member */
        return FILE_KIND_TAR;
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (n >= beginnings[i].n && !memcmp(p, beginnings[i].bytes, beginnings[i].n))
            return beginnings[i].kind == FILE_KIND_ZIP ? zip_kind(p, n) : beginnings[i].kind;
    if (is_zstd_frame(p, n))
        return FILE_KIND_ZSTD;
    if (tail && !memcmp(tail, table_end, sizeof table_end))
        return FILE_KIND_TABLE;
    if (is_safetensors(p, n))
        return FILE_KIND_SAFETENSORS;
    if (is_pickle(p, n))
        return FILE_KIND_PICKLE;
    if (is_onnx(p, n))
        return FILE_KIND_ONNX;
    if (!is_text(p, n))
        return FILE_KIND_UNKNOWN;
    while (blanks < n && strchr(" \t\r\n", p[blanks]))
        blanks++;
    return blanks < n && (p[blanks] == '{' || p[blanks] == '[') ? FILE_KIND_JSON : FILE_KIND_TEXT;
}

enum file_kind file_kind_of_descriptor(int fd)
{
    uint8_t head[FILE_KIND_HEAD], tail[FILE_KIND_TAIL];
    struct stat st;
    ssize_t n;
    int ends;

    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (n = file_read_at(fd, head, sizeof head, 0)) < 0)
        return FILE_KIND_UNKNOWN;
    ends = st.st_size >= FILE_KIND_TAIL &&
           file_read_at(fd, tail, sizeof tail, (uint64_t)st.st_size - sizeof tail) == sizeof tail;
    return file_kind(head, (size_t)n, ends ? tail : NULL);
}

enum file_kind file_kind_of(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    enum file_kind kind = fd < 0 ? FILE_KIND_UNKNOWN : file_kind_of_descriptor(fd);

    if (fd >= 0)
        close(fd);
    return kind;
}

const char *file_kind_text(enum file_kind kind)
{
    static const char *const texts[FILE_KINDS] = {
        [FILE_KIND_UNKNOWN] = "of no kind known here",
        [FILE_KIND_EMPTY] = "empty",
        [FILE_KIND_EVENT_LOG] = "an event file or another TFRecord file",
        [FILE_KIND_TAR] = "a tar archive",
        [FILE_KIND_GZIP] = "a gzip file",
        [FILE_KIND_ZSTD] = "a zstd file",
        [FILE_KIND_XZ] = "an xz file",
        [FILE_KIND_BZIP2] = "a bzip2 file",
        [FILE_KIND_ZIP] = "a zip file",
        [FILE_KIND_TORCH] = "a PyTorch file",
        [FILE_KIND_KERAS] = "a Keras model (.keras)",
        [FILE_KIND_NPZ] = "a NumPy archive (.npz)",
        [FILE_KIND_PICKLE] = "a Python pickle (as PyTorch before 1.6 saves)",
        [FILE_KIND_ONNX] = "an ONNX model",
        [FILE_KIND_HDF5] = "an HDF5 file (Keras .h5)",
        [FILE_KIND_SQLITE] = "an SQLite database",
        [FILE_KIND_SAFETENSORS] = "a safetensors file",
        [FILE_KIND_TABLE] = "the index of a TensorFlow checkpoint",
        [FILE_KIND_NUMPY] = "a NumPy array (.npy)",
        [FILE_KIND_PARQUET] = "a Parquet file",
        [FILE_KIND_GIT_LFS] = "a Git LFS pointer; 'git lfs pull' fetches the file itself",
        [FILE_KIND_JSON] = "JSON text",
        [FILE_KIND_TEXT] = "a text file",
        [FILE_KIND_PROGRAM] = "a program",
    };

    return texts[kind < FILE_KINDS ? kind : FILE_KIND_UNKNOWN];
}
