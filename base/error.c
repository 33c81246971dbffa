#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int error_set(struct error *e, int code, const char *format, ...)
{
    va_list args;

    if (!e)
        return code;
    e->code = code;
    e->system = 0;
    va_start(args, format);
    vsnprintf(e->message, sizeof e->message, format, args);
    va_end(args);
    return code;
}

int error_memory(struct error *e, const char *where, const char *purpose, ...)
{
    va_list args;
    size_t used;

    if (!e)
        return ERR_NOMEM;
    error_set(e, ERR_NOMEM, "%s%sno memory ", where ? where : "", where ? ": " : "");
    used = strlen(e->message);
    va_start(args, purpose);
    vsnprintf(e->message + used, sizeof e->message - used, purpose, args);
    va_end(args);
    return ERR_NOMEM;
}

int error_system(struct error *e, const char *format, ...)
{
    int system = errno, code = system == ENOMEM ? ERR_NOMEM : ERR_IO;
    char text[128];
    va_list args;
    size_t used;

    if (!e)
        return code;
    e->code = code;
    e->system = system;
    va_start(args, format);
    vsnprintf(e->message, sizeof e->message, format, args);
    va_end(args);
    used = strlen(e->message);
    snprintf(e->message + used, sizeof e->message - used, ": %s", strerror_r(system, text, sizeof text));
    return code;
}

int error_prefix(struct error *e, const char *format, ...)
{
    char rest[sizeof e->message];
    va_list args;
    size_t used;

    if (!e)
        return OK;
    memcpy(rest, e->message, sizeof rest);
    va_start(args, format);
    vsnprintf(e->message, sizeof e->message, format, args);
    va_end(args);
    used = strlen(e->message);
    snprintf(e->message + used, sizeof e->message - used, ": %s", rest);
    return e->code;
}

int error_copy(struct error *e, const struct error *from)
{
    if (e && from->code != OK)
        *e = *from;
    return from->code;
}

int error_may_pass(const struct error *e)
{
    static const int passing[] = { ESTALE,   EIO,        EACCES,       EPERM,        ETIMEDOUT,    EINTR,    EBUSY,
                                   ENOLINK,  EREMOTEIO,  ENETDOWN,     ENETUNREACH,  EHOSTDOWN,    ENODEV,   ENXIO,
                                   ENOTCONN, ECONNRESET, ECONNREFUSED, ECONNABORTED, EHOSTUNREACH, ESHUTDOWN };

    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
        if (e->code == ERR_IO && e->system == passing[i])
            return 1;
    return 0;
}

int error_is_lack(const struct error *e)
{
    return e->code == ERR_NOMEM || e->system == EMFILE || e->system == ENFILE || e->system == EAGAIN;
}
