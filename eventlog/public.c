#include "eventlog/public.h"

#include "base/version.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(((struct eventlog_error *)0)->message) == sizeof(((struct error *)0)->message) &&
                   (int)EVENTLOG_ERROR_IO == (int)ERR_IO && (int)EVENTLOG_ERROR_CORRUPT == (int)ERR_CORRUPT &&
                   (int)EVENTLOG_ERROR_MEMORY == (int)ERR_NOMEM && (int)EVENTLOG_ERROR_ARGUMENT == (int)ERR_ARG,
               "eventlog_error is the public twin of error");

int public_error(struct eventlog_error *to, const struct error *from)
{
    if (to) {
        to->code = from->code;
        to->system = from->system;
        memcpy(to->message, from->message, sizeof to->message);
    }
    return from->code;
}

const char *eventlog_version(void)
{
    return EVALBOARD_VERSION;
}

void eventlog_free(void *bytes)
{
    free(bytes);
}
