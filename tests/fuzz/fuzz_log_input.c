/* Any bytes as a file that a command is given: as they are, which may be a compressed file or an archive; and packed by
 * ourselves, from which the same records must come. */
#include "eventlog/read/log_directory.h"

#include "base/crc32c.h"
#include "base/file_kind.h"

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
    struct log_archive_writer *w;

    if (log_archive_writer_new(&w, fd, "input", 1, NULL) != OK ||
        log_archive_writer_add(w, "a/x.tfevents", 0, 0, plain, "plain", NULL, NULL) != OK ||
        log_archive_writer_add(w, "b/x.tfevents.gz", 0, 0, gzip, "gzip", NULL, NULL) != OK ||
        log_archive_writer_finish(w, NULL) != OK)
        abort();
    log_archive_writer_free(w);
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
    size_t runs;
    uint64_t want = read_run(plain, 0, &runs);

    archive = archived(plain, gzip);
    /* Not so what is packed itself: that is unpacked once. */
    if (kind != FILE_KIND_GZIP && kind != FILE_KIND_ZSTD && kind != FILE_KIND_ARCHIVE)
        if (read_run(gzip, 0, &runs) != want || runs != 1 || read_run(archive, 0, &runs) != want || runs != 2 ||
            read_run(archive, 1, &runs) != want)
            abort();
    close(archive);
    close(gzip);
    close(plain);
    return 0;
}
