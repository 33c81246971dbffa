/* Any bytes as an archive, or as a file in xz or bzip2. So that a fuzzer gets behind tar's checksums, they are made right
 * where the first byte says so: each block of 512 bytes, and as many after it as the second byte says, are then a
 * header and contents. What is found must be inside what was stored, under names that lead nowhere else. */
#include "eventlog/read/log_archive.h"

#include "tests/eventlog/made_tar.h"

#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1 << 24 };

static int count_bytes(void *context, const void *bytes, size_t n, struct error *e)
{
    uint64_t *sum = context;

    (void)bytes;
    (void)e;
    *sum += n;
    return *sum > MOST ? ERR_ARG : OK;
}

static void put(int fd, const uint8_t *data, size_t size, int is_tar, size_t blocks)
{
    for (size_t i = 0; size; i++) {
        uint8_t block[MADE_TAR_BLOCK] = { 0 };
        const size_t n = size < sizeof block ? size : sizeof block;

        memcpy(block, data, n);
        if (is_tar && i % (1 + blocks) == 0)
            made_tar_seal(block);
        if (write(fd, block, is_tar ? sizeof block : n) < 0)
            abort();
        data += n;
        size -= n;
    }
}

static void check(const struct log_archive *a)
{
    const struct log_archive_member *members = a->members.items;

    for (size_t i = 0; i < a->members.count; i++) {
        char parts[4200];

        if (log_archive_find(a, a->members.entries[i].text) != &members[i] ||
            members[i].offset + members[i].size > a->contents.size)
            abort();
        snprintf(parts, sizeof parts, "/%s/", a->members.entries[i].text);
        if (!strstr(strrchr(a->members.entries[i].text, '/') ? strrchr(a->members.entries[i].text, '/') : parts,
                    "tfevents") ||
            strstr(parts, "/../") || strstr(parts, "//") || strstr(parts, "/./"))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("archive", 0), whole;
    struct log_archive a;
    uint64_t sum = 0;

    if (size > 2)
        put(fd, data + 2, size - 2, data[0] & 1, data[1] % 4);
    if (log_archive_read(&a, fd, "archive", NULL) == OK)
        check(&a);
    log_archive_release(&a);
    log_archive_unpack(fd, count_bytes, &sum, &whole, NULL);
    close(fd);
    return 0;
}
