#include "eventlog/write/event_output.h"

#include "base/buffer.h"
#include "eventlog/public.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* A file and the one that follows it are open together for a moment; their descriptors are places in `objects`. */
enum { OBJECTS = 2 };

struct event_output {
    struct io io;
    struct eventlog_output to;
    void *objects[OBJECTS];
    int open[OBJECTS];
    pid_t pid; /* what a forked child has of an object is a copy, which must not end it */
    pthread_mutex_t mutex;
    struct buffer memory; /* with the mutex */
};

/* The result of a system call, from that of a caller's function. */
static int output_result(int system)
{
    if (!system)
        return 0;
    errno = system < 0 || system == EINTR || system == EEXIST ? EIO : system;
    return -1;
}

/* ---- as system calls --------------------------------------------------------------------------------------------- */

static int output_open(void *context, const char *name, int flags, mode_t mode)
{
    struct event_output *o = context;
    int fd = o->open[0];

    (void)flags;
    (void)mode;
    o->objects[fd] = o->to.context;
    if (o->to.begin && output_result(o->to.begin(o->to.context, name, &o->objects[fd])) < 0)
        return -1;
    o->open[fd] = 1;
    return fd;
}

static ssize_t output_write(void *context, int fd, const void *bytes, size_t n)
{
    struct event_output *o = context;

    return output_result(o->to.write(o->objects[fd], bytes, n)) < 0 ? -1 : (ssize_t)n;
}

static int output_sync(void *context, int fd)
{
    struct event_output *o = context;

    return o->to.sync ? output_result(o->to.sync(o->objects[fd])) : 0;
}

static int output_close(void *context, int fd)
{
    struct event_output *o = context;

    o->open[fd] = 0;
    return o->to.end && getpid() == o->pid ? output_result(o->to.end(o->objects[fd])) : 0;
}

static int output_unlink(void *context, const char *name)
{
    (void)context;
    (void)name;
    return 0;
}

static int output_truncate(void *context, int fd, off_t length)
{
    (void)context;
    (void)fd;
    (void)length;
    return output_result(EIO);
}

static int output_rename(void *context, const char *from, const char *to)
{
    (void)context;
    (void)from;
    (void)to;
    return output_result(EIO);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static int output_remember(void *context, const void *bytes, size_t n)
{
    struct event_output *o = context;
    char *room;

    pthread_mutex_lock(&o->mutex);
    room = buffer_reserve(&o->memory, n);
    if (room)
        buffer_append(&o->memory, bytes, n);
    o->memory.failed = 0; /* what is there stays, and later there may be room */
    pthread_mutex_unlock(&o->mutex);
    return room ? 0 : ENOMEM;
}

int event_output_take(struct event_output *o, void **bytes, size_t *n, struct error *e)
{
    if (!o || o->to.write != output_remember)
        return error_set(e, ERR_ARG, "this writer does not write to memory");
    pthread_mutex_lock(&o->mutex);
    *bytes = o->memory.data;
    *n = o->memory.length;
    o->memory = (struct buffer)BUFFER_EMPTY;
    pthread_mutex_unlock(&o->mutex);
    return OK;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static int output_check(const struct eventlog_output *to, const struct eventlog_writer_options *options,
                        struct error *e)
{
    if (to && !to->write)
        return error_set(e, ERR_ARG, "an output needs a function that writes");
    if (options->resume == EVENTLOG_RESUME_APPEND)
        return error_set(e, ERR_ARG, "a writer without a directory has no file to append to");
    if (options->leave_lost)
        return error_set(e, ERR_ARG, "leave_lost is for the files of a directory");
    if ((!to || !to->begin) && (options->rotate_bytes || options->rotate_seconds > 0))
        return error_set(e, ERR_ARG, "rotation needs a function that begins another object");
    return OK;
}

int event_output_new(struct event_output **out, const struct eventlog_output *to,
                     const struct eventlog_writer_options *options, struct error *e)
{
    struct event_output *o;

    *out = NULL;
    if (output_check(to, options, e) != OK)
        return ERR_ARG;
    if (!(o = calloc(1, sizeof *o)))
        return error_memory(e, NULL, "for an output");
    o->io = (struct io){ .open = output_open,
                         .write = output_write,
                         .fsync = output_sync,
                         .ftruncate = output_truncate,
                         .rename = output_rename,
                         .unlink = output_unlink,
                         .close = output_close,
                         .context = o };
    o->to = to ? *to : (struct eventlog_output){ .context = o, .write = output_remember };
    o->pid = getpid();
    pthread_mutex_init(&o->mutex, NULL);
    *out = o;
    return OK;
}

void event_output_free(struct event_output *o)
{
    if (!o)
        return;
    pthread_mutex_destroy(&o->mutex);
    buffer_release(&o->memory);
    free(o);
}

const struct io *event_output_io(const struct event_output *o)
{
    return &o->io;
}
