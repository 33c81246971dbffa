/* The text of a lock file: whatever it is, what is taken from it is whole strings and a process number. */
#include "evaluator/record/evaluation_lock.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct evaluation_lock l;

    if (evaluation_lock_parse((const char *)data, size, &l) &&
        (l.process.pid <= 0 || !*l.process.host || (strcmp(l.state, "running") && strcmp(l.state, "ended")) ||
         !memchr(l.why, 0, sizeof l.why) || !memchr(l.checkpoint_directory, 0, PATH_MAX)))
        abort();
    return 0;
}
