/* Any bytes as an event file: read in pieces it gives the points, the damage and the place of the reader that it gives to
 * one reader. The first byte is the length of a piece, and which calls the run has. */
#include "tests/eventlog/pieces_run.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pieces_run one, many;
    char path[64];
    int fd;

    if (!size || (fd = memfd_create("events", MFD_CLOEXEC)) < 0)
        return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (write(fd, data + 1, size - 1) != (ssize_t)(size - 1))
        abort();
    if (pieces_run_read(&one, path, 0, *data & 1, *data & 2) !=
        pieces_run_read(&many, path, 1 + (uint64_t)*data * 2, *data & 1, *data & 2))
        abort();
    if (one.reader && !pieces_same(&one, &many))
        abort();
    pieces_run_release(&one);
    pieces_run_release(&many);
    close(fd);
    return 0;
}
