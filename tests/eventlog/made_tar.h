/* made_tar.h - writes members of a tar archive, as POSIX describes them (pax, "ustar Interchange Format"). */
#ifndef TESTS_EVENTLOG_MADE_TAR_H
#define TESTS_EVENTLOG_MADE_TAR_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MADE_TAR_BLOCK = 512 };

/* Makes any block a header: with the magic, and the checksum that fits the rest. */
static inline void made_tar_seal(uint8_t *block)
{
    unsigned sum = 0;

    memcpy(block + 257, "ustar\00000", 8);
    memset(block + 148, ' ', 8);
    for (int i = 0; i < MADE_TAR_BLOCK; i++)
        sum += block[i];
    snprintf((char *)block + 148, 7, "%06o", sum);
}

static inline void made_tar_put(int fd, const char *name, const void *bytes, size_t n)
{
    const size_t all = MADE_TAR_BLOCK + (n + MADE_TAR_BLOCK - 1) / MADE_TAR_BLOCK * MADE_TAR_BLOCK;
    uint8_t *member = calloc(all, 1);

    if (!member)
        abort();
    snprintf((char *)member, 100, "%s", name);
    snprintf((char *)member + 100, 8, "0000644");
    snprintf((char *)member + 124, 12, "%011o", (unsigned)n);
    member[156] = '0';
    made_tar_seal(member);
    if (n)
        memcpy(member + MADE_TAR_BLOCK, bytes, n);
    if (write(fd, member, all) != (ssize_t)all)
        abort();
    free(member);
}

#endif
