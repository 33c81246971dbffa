#include "evaluator/score/runner_log.h"

#include "base/file.h"

#include <inttypes.h>
#include <stdio.h>

int runner_log_path(const struct runner_job *job, char *out, size_t size)
{
    char name[256];

    if (!job->eval_directory || file_join(out, size, job->eval_directory, "logs", NULL) != OK ||
        file_make_directories(out, NULL) != OK)
        return 0;
    snprintf(name, sizeof name, "logs/%" PRId64 "-%.200s.log", job->checkpoint->step, job->checkpoint->name);
    return file_join(out, size, job->eval_directory, name, NULL) == OK;
}
