#include "eventlog/tool/directory_below.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int directory_below_open(int root, const char *root_path, const char *path, const char **base, struct error *e)
{
    char part[NAME_MAX + 1];
    const char *slash;
    int at = dup(root);

    if (at < 0)
        return error_system(e, "%s: cannot be entered", root_path);
    for (*base = path; (slash = strchr(*base, '/')); *base = slash + 1) {
        size_t n = (size_t)(slash - *base);
        int next = -1, rc = OK;

        if (n < sizeof part) {
            memcpy(part, *base, n);
            part[n] = '\0';
            if (mkdirat(at, part, 0777) == 0 || errno == EEXIST)
                next = openat(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        } else {
            errno = ENAMETOOLONG;
        }
        if (next < 0)
            rc = error_system(e, "%s/%s: cannot enter directory '%.*s' (links are not followed)",
                              root_path, path, (int)n, *base);
        close(at);
        if ((at = next) < 0)
            return rc;
    }
    return at;
}
