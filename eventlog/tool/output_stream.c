#include "eventlog/tool/output_stream.h"

#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int output_stream_is(const char *path)
{
    return path && !strcmp(path, "-");
}

int output_stream_name(char *path, size_t size, struct error *e)
{
    const char *directory = getenv("TMPDIR");

    if (isatty(STDOUT_FILENO))
        return error_set(e, ERR_ARG, "'-o -': standard output is a terminal; redirect it to a file or pipe");
    if (snprintf(path, size, "%s/.eventlog.%ld.stream", directory && *directory ? directory : "/tmp",
                 (long)getpid()) >= (int)size)
        return error_set(e, ERR_ARG, "%s: path too long", directory);
    unlink(path); /* of a killed process with our number */
    return OK;
}

int output_stream_send(const char *path, struct error *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), rc = fd < 0 ? error_system(e, "%s: cannot be opened", path) : OK;
    char bytes[65536];
    ssize_t n = 1;

    while (rc == OK && n != 0) {
        if ((n = read(fd, bytes, sizeof bytes)) < 0 && errno != EINTR)
            rc = error_system(e, "%s: cannot be read", path);
        else if (n > 0 && io_write_full(&io_real, STDOUT_FILENO, bytes, (size_t)n) < 0)
            rc = error_system(e, "standard output: cannot write");
    }
    if (fd >= 0)
        close(fd);
    unlink(path);
    return rc;
}
