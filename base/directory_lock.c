#include "base/directory_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

int directory_lock(const char *directory, int *fd, struct error *e)
{
    if ((*fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return error_system(e, "%s: cannot open the directory", directory);
    if (flock(*fd, LOCK_EX | LOCK_NB) < 0) {
        const int held = errno == EWOULDBLOCK;

        close(*fd);
        *fd = -1;
        return held ? DIRECTORY_LOCKED : OK;
    }
    return OK;
}
