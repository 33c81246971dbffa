/* The public functions that repair files and choose points; eventlog.h describes them. */
#include "eventlog/public.h"
#include "eventlog/read/log_input.h"
#include "eventlog/rewrite/downsample.h"
#include "eventlog/rewrite/log_repair.h"

#include <string.h>

int eventlog_repair(const char *path, const char *to, int force, struct eventlog_repair *out,
                    struct eventlog_error *error)
{
    struct error e = { 0 };
    struct log_input input = { 0 };
    struct eventlog_repair r = { 0 };
    int rc;

    if (!path)
        rc = error_set(&e, ERR_ARG, "no file to repair: the path is NULL");
    else if (to)
        rc = log_repair_to(NULL, &input, path, to, force, &r, &e);
    else
        rc = log_repair_in_place(NULL, path, &r, &e);
    log_input_release(&input);
    if (out)
        *out = rc == OK ? r : (struct eventlog_repair){ 0 };
    return rc == OK ? EVENTLOG_OK : public_error(error, &e);
}

int eventlog_downsample(const double *x, const double *y, size_t n, size_t most, uint8_t *keep,
                        struct eventlog_error *error)
{
    struct error e = { 0 };

    if (most < 2) {
        error_set(&e, ERR_ARG, "at most %zu points to keep: give 2 or more, as the first and the last always are",
                  most);
        return public_error(error, &e);
    }
    if (x && y)
        downsample_curve(x, y, n, most, keep);
    else
        downsample_even(n, most, keep);
    return EVENTLOG_OK;
}
