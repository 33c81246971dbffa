/* Any bytes as an archive. So that a fuzzer gets behind the CRCs, they are made right where the first byte says so: the
 * rest is then members, whose lengths the second byte gives, and a directory. Contents must be what the entry says. */
#include "eventlog/read/log_archive.h"

#include "base/bytes.h"
#include "base/crc32c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int count_bytes(void *context, const void *bytes, size_t n, struct error *e)
{
    uint64_t *sum = context;

    (void)bytes;
    (void)e;
    *sum += n;
    return *sum > (uint64_t)1 << 24 ? ERR_ARG : OK;
}

static void put(int fd, const void *bytes, size_t n)
{
    if (n && write(fd, bytes, n) != (ssize_t)n)
        abort();
}

/* An archive around the bytes: head, members, directory, footer. */
static void around(int fd, const uint8_t *data, size_t size)
{
    uint8_t head[16] = "\x89TFZ\r\n\x1a\n\1", footer[LOG_ARCHIVE_FOOTER];
    size_t members = size ? data[0] : 0, directory;

    members = members < size ? members : size;
    directory = size - members;
    put_le64(footer, 16 + members);
    put_le64(footer + 8, directory);
    put_le64(footer + 16, directory ? data[members] : 0);
    put_le32(footer + 24, crc32c(data + members, directory));
    put_le32(footer + 28, crc32c(footer, 28));
    memcpy(footer + 32, "TFZ end\n", 8);
    put(fd, head, sizeof head);
    put(fd, data, size);
    put(fd, footer, sizeof footer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("archive", 0);
    struct log_archive a;
    char path[40];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (size && data[0] & 1)
        around(fd, data + 1, size - 1);
    else if (size)
        put(fd, data + 1, size - 1);
    if (log_archive_open(&a, path, NULL) == OK)
        for (size_t i = 0; i < a.count; i++) {
            uint64_t sum = 0;

            if (!log_archive_name_allowed(a.entries[i].name, strlen(a.entries[i].name)))
                abort();
            if (log_archive_read(&a, &a.entries[i], count_bytes, &sum, NULL) == OK && sum != a.entries[i].size)
                abort();
            if (sum > a.entries[i].size)
                abort();
        }
    log_archive_release(&a);
    close(fd);
    return 0;
}
