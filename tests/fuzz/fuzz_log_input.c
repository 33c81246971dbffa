/* Any bytes as a file that a command is given: as they are, which may be a compressed file or an archive; and packed by
 * ourselves, from which the same records must come. */
#include "eventlog/read/log_directory.h"

#include "base/crc32c.h"
#include "base/file.h"
#include "base/file_kind.h"
#include "tests/eventlog/made_tar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put(int fd, const void *bytes, size_t n)
{
    if (n && write(fd, bytes, n) != (ssize_t)n)
        abort();
}

static int memory(const void *bytes, size_t n)
{
    int fd = memfd_create("input", 0);

    if (fd < 0)
        abort();
    put(fd, bytes, n);
    if (lseek(fd, 0, SEEK_SET) != 0)
        abort();
    return fd;
}

static int packed(const void *bytes, size_t n)
{
    int fd = memfd_create("input", 0);
    gzFile file = gzdopen(dup(fd), "wb1");

    if (!file || (n && gzwrite(file, bytes, (unsigned)n) != (int)n) || gzclose(file) != Z_OK ||
        lseek(fd, 0, SEEK_SET) != 0)
        abort();
    return fd;
}

static int archived(int plain, int gzip)
{
    int fd = memfd_create("input", 0);
    const char *const names[] = { "a/x.tfevents", "b/x.tfevents.gz" };

    for (int i = 0; i < 2; i++) {
        struct buffer b = BUFFER_EMPTY;
        char path[40];

        snprintf(path, sizeof path, "/proc/self/fd/%d", i ? gzip : plain);
        if (file_read(path, 1 << 24, &b, NULL) != OK)
            abort();
        made_tar_put(fd, names[i], b.data, b.length);
        buffer_release(&b);
    }
    return fd;
}

/* Something that tells what is in the n-th run; 0 where it cannot be read. *runs: how many there are. */
static uint64_t read_run(int fd, size_t n, size_t *runs)
{
    struct log_input in = { 0 };
    struct log_directory d;
    struct record_file f;
    struct record r;
    char name[40], *path = name;
    uint64_t sum = 0;
    int rc;

    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    rc = log_directory_list(&d, &in, &path, 1, NULL);
    *runs = rc == OK ? d.count : 0;
    if (n < *runs) {
        if ((rc = log_input_open(&in, d.runs[n].files[0], &f, NULL)) == OK)
            while ((rc = record_file_next(&f, &r, NULL)) > 0)
                sum = sum * 31 + (rc == RECORD_DATA ? crc32c(r.data, r.length) : (uint64_t)r.damage) + r.offset;
        sum = sum * 31 + f.parser.offset + f.size + 1;
        record_file_close(&f);
    }
    log_directory_release(&d);
    log_input_release(&in);
    return rc < 0 ? 0 : sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int plain = memory(data, size), gzip = packed(data, size), archive;
    enum file_kind kind = file_kind_of_descriptor(plain);
    const struct log_archive *of;
    struct log_input in = { 0 };
    char path[40];
    size_t runs;
    uint64_t want = read_run(plain, 0, &runs);

    archive = archived(plain, gzip);
    /* Not so what is packed itself: that is unpacked once. */
    snprintf(path, sizeof path, "/proc/self/fd/%d", plain);
    if (kind != FILE_KIND_GZIP && kind != FILE_KIND_ZSTD && kind != FILE_KIND_XZ && kind != FILE_KIND_BZIP2 &&
        !log_input_archive(&in, path, &of, NULL))
        if (read_run(gzip, 0, &runs) != want || runs != 1 || read_run(archive, 0, &runs) != want || runs != 2 ||
            read_run(archive, 1, &runs) != want)
            abort();
    log_input_release(&in);
    close(archive);
    close(gzip);
    close(plain);
    return 0;
}
