#include "eventlog/tool/output_stream.h"

#include "base/io.h"
#include "base/spool.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int output_stream_is(const char *path)
{
    return path && !strcmp(path, "-");
}

int output_stream_open(int *fd, struct error *e)
{
    struct spool spool;
    int rc;

    if (isatty(STDOUT_FILENO))
        return error_set(e, ERR_ARG, "'-o -': standard output is a terminal; redirect it to a file or pipe");
    rc = spool_open(&spool, e);
    *fd = spool.fd;
    return rc;
}

int output_stream_send(int fd, struct error *e)
{
    int rc = lseek(fd, 0, SEEK_SET) < 0 ? error_system(e, "the temporary file: cannot be read") : OK;
    char bytes[65536];
    ssize_t n = 1;

    while (rc == OK && n != 0) {
        if ((n = read(fd, bytes, sizeof bytes)) < 0 && errno != EINTR)
            rc = error_system(e, "the temporary file: cannot be read");
        else if (n > 0 && io_write_full(&io_real, STDOUT_FILENO, bytes, (size_t)n) < 0)
            rc = error_system(e, "standard output: cannot write");
    }
    close(fd);
    return rc;
}
