/* Any bytes as an event file: read in pieces, by commands and by the data server, it gives the points, the damage and the
 * place of the reader that it gives to one reader. The first byte is the length of a piece, and which calls a run has. */
#include "tests/eventlog/pieces.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void compare_runs(const char *path, uint64_t length, unsigned calls)
{
    struct pieces_run one, many;

    if (pieces_run_read(&one, path, 0, calls & 1, calls & 2) !=
        pieces_run_read(&many, path, length, calls & 1, calls & 2))
        abort();
    if (one.file.reader && !pieces_same_runs(&one, &many))
        abort();
    pieces_run_release(&one);
    pieces_run_release(&many);
}

static void compare_data(const char *path, uint64_t length)
{
    struct pieces_data one, many;

    if (pieces_data_read(&one, path, 0) != pieces_data_read(&many, path, length))
        abort();
    if (one.file.reader && many.file.reader && !pieces_same_data(&one, &many))
        abort();
    pieces_data_release(&one);
    pieces_data_release(&many);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    int fd;

    if (!size || (fd = memfd_create("events", MFD_CLOEXEC)) < 0)
        return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (write(fd, data + 1, size - 1) != (ssize_t)(size - 1))
        abort();
    compare_runs(path, 1 + (uint64_t)*data * 2, *data);
    compare_data(path, 1 + (uint64_t)*data * 2);
    close(fd);
    return 0;
}
