#include "dataset/stream/sample_stream.h"

#include <pthread.h>
#include <stdlib.h>

enum { KEPT_MAX = 1000 };

struct sample_stream {
    const struct sample_stream_format *format;
    void *context;
    size_t records;
    int skip;
    pthread_mutex_t lock; /* for all below */
    unsigned char *bad;   /* (records) 1: known to be broken */
    size_t count;         /* of these */
    struct error *kept;   /* a ring would forget: the first KEPT_MAX sentences */
    size_t kept_count, told;
};

int sample_stream_new(struct sample_stream **out, const struct sample_stream_format *format, void *context,
                      size_t records, int skip, struct error *e)
{
    struct sample_stream *s = calloc(1, sizeof *s);

    *out = NULL;
    if (!s) {
        format->free(context);
        return error_memory(e, NULL, "for reading samples");
    }
    s->format = format;
    s->context = context;
    s->records = records;
    s->skip = skip;
    pthread_mutex_init(&s->lock, NULL);
    s->bad = calloc(records ? records : 1, 1);
    s->kept = skip ? malloc(KEPT_MAX * sizeof *s->kept) : NULL;
    if (!s->bad || (skip && !s->kept)) {
        sample_stream_free(s);
        return error_memory(e, NULL, "for marks of %zu samples", records);
    }
    *out = s;
    return OK;
}

static int is_bad(struct sample_stream *s, size_t record)
{
    int bad;

    pthread_mutex_lock(&s->lock);
    bad = s->bad[record];
    pthread_mutex_unlock(&s->lock);
    return bad;
}

static void note(struct sample_stream *s, size_t record, const struct error *why)
{
    pthread_mutex_lock(&s->lock);
    if (!s->bad[record]) {
        s->bad[record] = 1;
        s->count++;
        if (s->kept_count < KEPT_MAX)
            s->kept[s->kept_count++] = *why;
    }
    pthread_mutex_unlock(&s->lock);
}

int sample_stream_read(struct sample_stream *s, size_t first, size_t count, size_t i, void *out, size_t *used,
                       struct error *e)
{
    struct error why = { 0 };
    int rc;

    for (size_t tries = 0; tries < count; tries++, i = (i + 1) % count) {
        if (is_bad(s, first + i))
            continue;
        *used = i;
        if ((rc = s->format->read(s->context, first + i, out, &why)) == OK)
            return OK;
        if (rc != ERR_CORRUPT || !s->skip) {
            if (e)
                *e = why;
            return rc == ERR_CORRUPT && e ? error_set(e, rc, "%.400s (--bad-samples skip leaves such out)", why.message)
                                          : rc;
        }
        note(s, first + i, &why);
    }
    return error_set(e, ERR_CORRUPT, "none of the %zu samples can be read", count);
}

size_t sample_stream_bad(struct sample_stream *s)
{
    size_t count;

    pthread_mutex_lock(&s->lock);
    count = s->count;
    pthread_mutex_unlock(&s->lock);
    return count;
}

int sample_stream_next_bad(struct sample_stream *s, struct error *why)
{
    int there;

    pthread_mutex_lock(&s->lock);
    if ((there = s->told < s->kept_count))
        *why = s->kept[s->told++];
    pthread_mutex_unlock(&s->lock);
    return there;
}

void sample_stream_free(struct sample_stream *s)
{
    if (!s)
        return;
    s->format->free(s->context);
    pthread_mutex_destroy(&s->lock);
    free(s->bad);
    free(s->kept);
    free(s);
}
