/*
 * write_events DIRECTORY [--option value]...: writes scalars as fast as told, and says on standard output what is safe.
 * For tests that kill it, starve it of disk, or run many of it at once.
 *   --tag PREFIX (t)       thread K writes the series PREFIX/K; the value at a step is the step modulo 1000
 *   --first STEP (0)  --count N (no end)  --seconds S (no end)
 *   --threads T (1)        each with a writer of its own; with a queue all share one
 *   --pace N (0)           a pause of a millisecond after so many events; 0: none
 *   --flush-every N (0)    and prints "flushed K STEP" after it returned
 *   --queue BYTES (0)  --drop 1  --buffer BYTES (0)  --rotate BYTES (0)  --sync SECONDS (0: never; negative: at flush)
 *   --resume new|append|purge  --purge STEP
 *   --until-room 1         one thread: writes until events are refused or dropped, prints "full", writes on, slowly,
 *                          until a flush works, prints "room", then `count` more
 * At the end "events E dropped D errors N" of each writer; exit 1 and a sentence on standard error where a call failed
 * (not with --until-room).
 */
#include "eventlog/eventlog.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct settings {
    const char *directory, *tag, *resume;
    int64_t first, count;
    double seconds;
    int threads, pace, flush_every, until_room;
    struct eventlog_writer_options options;
};

struct writing {
    const struct settings *s;
    struct eventlog_writer *w;
    pthread_t thread;
    int number, failed;
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void pause_a_moment(void)
{
    nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
}

/* One line, whole: standard output is a pipe that another thread writes, too. */
static void say(const char *word, int number, int64_t step)
{
    char line[80];
    int n = snprintf(line, sizeof line, "%s %d %" PRId64 "\n", word, number, step);

    fwrite(line, 1, (size_t)n, stdout);
    fflush(stdout);
}

static int failed(const char *what, const struct eventlog_error *e)
{
    fprintf(stderr, "write_events: %s: %s\n", what, e->message);
    return 1;
}

static void *write_all(void *argument)
{
    struct writing *x = argument;
    const struct settings *s = x->s;
    double end = s->seconds > 0 ? now() + s->seconds : 0;
    struct eventlog_error e;
    char tag[200];

    snprintf(tag, sizeof tag, "%s/%d", s->tag, x->number);
    for (int64_t i = 0; (!s->count || i < s->count) && (end <= 0 || now() < end); i++) {
        int64_t step = s->first + i;

        if (eventlog_writer_scalar(x->w, tag, step, 0, (float)(step % 1000), &e) != EVENTLOG_OK)
            x->failed = failed("scalar", &e);
        if (s->flush_every && (i + 1) % s->flush_every == 0) {
            if (eventlog_writer_flush(x->w, &e) != EVENTLOG_OK)
                x->failed = failed("flush", &e);
            else
                say("flushed", x->number, step);
        }
        if (s->pace && (i + 1) % s->pace == 0)
            pause_a_moment();
    }
    return NULL;
}

/* The disk becomes full, and has room again. Steps of refused events are used again, those of dropped ones are not. */
static int write_until_room(struct writing *x)
{
    const struct settings *s = x->s;
    struct eventlog_writer_statistics n = { 0 };
    int64_t step = s->first, calls = 0;
    double end = now() + 600; /* only a hang takes as long */
    char tag[200];

    snprintf(tag, sizeof tag, "%s/0", s->tag);
    /* A queue that drops does so while the disk is only slow, too. */
    for (; (n.dropped < 1000 || !n.errors) && now() < end; calls++) {
        uint64_t dropped = n.dropped;

        eventlog_writer_scalar(x->w, tag, step, 0, (float)(step % 1000), NULL);
        eventlog_writer_statistics(x->w, &n, NULL);
        step += n.dropped == dropped;
    }
    say("full", 0, step);
    while (eventlog_writer_flush(x->w, NULL) != EVENTLOG_OK) {
        uint64_t dropped = n.dropped;

        eventlog_writer_scalar(x->w, tag, step, 0, (float)(step % 1000), NULL);
        eventlog_writer_statistics(x->w, &n, NULL);
        step += n.dropped == dropped;
        calls++;
        pause_a_moment();
        if (now() > end)
            return 1;
    }
    say("room", 0, step);
    for (int64_t i = 0; i < s->count; i++, calls++, step++)
        if (eventlog_writer_scalar(x->w, tag, step, 0, (float)(step % 1000), NULL) != EVENTLOG_OK)
            return 1;
    say("calls", 0, calls);
    return 0;
}

static int parse(int argc, char **argv, struct settings *s)
{
    const char *resumes[] = { "new", "append", "purge" };

    if (argc < 2 || argc % 2 || argv[1][0] == '-') /* without an end it fills the disk */
        return -1;
    s->directory = argv[1];
    for (int i = 2; i < argc; i += 2) {
        const char *name = argv[i], *v = argv[i + 1];

        if (!strcmp(name, "--tag"))
            s->tag = v;
        else if (!strcmp(name, "--first"))
            s->first = atoll(v);
        else if (!strcmp(name, "--count"))
            s->count = atoll(v);
        else if (!strcmp(name, "--seconds"))
            s->seconds = atof(v);
        else if (!strcmp(name, "--threads"))
            s->threads = atoi(v);
        else if (!strcmp(name, "--pace"))
            s->pace = atoi(v);
        else if (!strcmp(name, "--flush-every"))
            s->flush_every = atoi(v);
        else if (!strcmp(name, "--until-room"))
            s->until_room = atoi(v);
        else if (!strcmp(name, "--queue"))
            s->options.queue_bytes = (size_t)atoll(v);
        else if (!strcmp(name, "--drop"))
            s->options.when_full = EVENTLOG_WHEN_FULL_DROP;
        else if (!strcmp(name, "--buffer"))
            s->options.buffer_bytes = (size_t)atoll(v);
        else if (!strcmp(name, "--rotate"))
            s->options.rotate_bytes = (uint64_t)atoll(v);
        else if (!strcmp(name, "--purge"))
            s->options.purge_step = atoll(v);
        else if (!strcmp(name, "--sync"))
            s->options.sync_seconds = atof(v);
        else if (!strcmp(name, "--resume"))
            s->resume = v;
        else
            return -1;
    }
    if (s->options.sync_seconds != 0)
        s->options.sync = s->options.sync_seconds > 0 ? EVENTLOG_SYNC_EVERY : EVENTLOG_SYNC_AT_FLUSH;
    for (int i = 0; i < 3; i++)
        if (s->resume && !strcmp(s->resume, resumes[i]))
            s->options.resume = (enum eventlog_resume)i;
    return s->threads > 0 && s->threads <= 64 ? 0 : -1;
}

static int finish(struct eventlog_writer *w)
{
    struct eventlog_writer_statistics n;
    struct eventlog_error e;
    int rc = 0;

    eventlog_writer_flush(w, NULL);
    eventlog_writer_statistics(w, &n, NULL);
    if (eventlog_writer_close(w, &e) != EVENTLOG_OK)
        rc = failed("close", &e);
    printf("events %" PRIu64 " dropped %" PRIu64 " errors %" PRIu64 "\n", n.events, n.dropped, n.errors);
    return rc;
}

int main(int argc, char **argv)
{
    struct settings s = { .tag = "t", .threads = 1 };
    struct writing x[64];
    struct eventlog_error e;
    int rc = 0;

    if (parse(argc, argv, &s) < 0) {
        fprintf(stderr, "usage: write_events DIRECTORY [--option value]...\n");
        return 2;
    }
    for (int i = 0; i < s.threads; i++) {
        x[i] = (struct writing){ .s = &s, .number = i, .w = i ? x[0].w : NULL };
        if ((!i || !s.options.queue_bytes) && eventlog_writer_open(&x[i].w, s.directory, &s.options, &e) != EVENTLOG_OK)
            return failed("open", &e);
    }
    say("open", 0, 0);
    if (s.until_room) {
        rc = write_until_room(&x[0]);
    } else {
        for (int i = 0; i < s.threads; i++)
            if (pthread_create(&x[i].thread, NULL, write_all, &x[i]) != 0)
                return 1;
        for (int i = 0; i < s.threads; i++) {
            pthread_join(x[i].thread, NULL);
            rc |= x[i].failed;
        }
    }
    for (int i = 0; i < s.threads && (!i || !s.options.queue_bytes); i++)
        rc |= finish(x[i].w);
    return rc;
}
