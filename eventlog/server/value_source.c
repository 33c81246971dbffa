#include "eventlog/server/value_source.h"

#include "base/file.h"
#include "eventlog/format/record.h"
#include "eventlog/read/log_input.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RECORD_LIMIT = 256 * 1024 * 1024 };

struct value_source_file {
    char *path;
    struct record_file file;
    struct stat named; /* what the path led to when it was opened */
    size_t users;
    uint64_t used; /* the source's clock at the last use */
};

struct value_source {
    pthread_mutex_t lock;
    struct value_source_file *files[VALUE_SOURCE_FILES];
    struct log_input input;
    uint64_t clock;
};

void value_record_release(struct value_record *r)
{
    free(r->bytes);
    memset(r, 0, sizeof *r);
}

struct value_source *value_source_new(void)
{
    struct value_source *s = calloc(1, sizeof *s);

    if (s)
        pthread_mutex_init(&s->lock, NULL);
    return s;
}

static void close_file(struct value_source_file *f)
{
    record_file_close(&f->file);
    free(f->path);
    free(f);
}

void value_source_free(struct value_source *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < VALUE_SOURCE_FILES; i++)
        if (s->files[i])
            close_file(s->files[i]);
    log_input_release(&s->input);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static struct value_source_file *open_file(struct value_source *s, const char *path, const struct stat *named)
{
    struct value_source_file *f = calloc(1, sizeof *f);

    if (!f || !(f->path = strdup(path))) {
        free(f);
        return NULL;
    }
    f->named = *named;
    if (log_input_open(&s->input, f->path, &f->file, NULL) != OK) {
        close_file(f);
        return NULL;
    }
    return f;
}

/* The place of a file that is open for the path, or else a free one, or that of the unused file used longest ago; -1:
 * all are in use. */
static int place_of(const struct value_source *s, const char *path, const struct stat *named)
{
    int best = -1;

    for (int i = 0; i < VALUE_SOURCE_FILES; i++) {
        const struct value_source_file *f = s->files[i];

        if (f && !strcmp(f->path, path) && f->named.st_ino == named->st_ino && f->named.st_dev == named->st_dev &&
            (!f->file.packed || f->named.st_mtim.tv_sec == named->st_mtim.tv_sec))
            return i;
        if (!f || (!f->users && (best < 0 || (s->files[best] && f->used < s->files[best]->used))))
            best = best >= 0 && !s->files[best] ? best : i;
    }
    return best;
}

struct value_source_file *value_source_open(struct value_source *s, const char *path)
{
    struct value_source_file *f = NULL;
    struct stat named;
    int place;

    if (stat(path, &named) < 0)
        return NULL;
    pthread_mutex_lock(&s->lock);
    place = place_of(s, path, &named);
    if (place >= 0 && s->files[place] && !strcmp(s->files[place]->path, path) &&
        s->files[place]->named.st_ino == named.st_ino) {
        f = s->files[place];
    } else if ((f = open_file(s, path, &named)) && place >= 0) {
        if (s->files[place])
            close_file(s->files[place]);
        s->files[place] = f;
    }
    if (f) {
        f->users++;
        f->used = ++s->clock;
    }
    pthread_mutex_unlock(&s->lock);
    return f;
}

void value_source_done(struct value_source *s, struct value_source_file *f)
{
    int kept = 0;

    if (!f)
        return;
    pthread_mutex_lock(&s->lock);
    f->users--;
    for (int i = 0; i < VALUE_SOURCE_FILES; i++)
        kept |= s->files[i] == f;
    if (!kept)
        close_file(f);
    pthread_mutex_unlock(&s->lock);
}

int value_source_read(struct value_source_file *f, uint64_t offset, struct value_record *r)
{
    uint8_t header[RECORD_HEADER];
    struct record_parser parser;
    struct record record;
    struct stat st;
    uint64_t length;
    size_t size;

    if (pread(f->file.fd, header, sizeof header, (off_t)offset) != (ssize_t)sizeof header ||
        !record_header_right(header, &length) || length > RECORD_LIMIT || fstat(f->file.fd, &st) < 0 ||
        (uint64_t)st.st_size < offset + RECORD_OVERHEAD + length)
        return 0;
    size = (size_t)length + RECORD_OVERHEAD;
    if (size > r->capacity) {
        free(r->bytes);
        r->capacity = 0;
        if (!(r->bytes = malloc(size)))
            return 0;
        r->capacity = size;
    }
    if (pread(f->file.fd, r->bytes, size, (off_t)offset) != (ssize_t)size)
        return 0;
    record_parser_init(&parser, offset, RECORD_LIMIT);
    return record_next(&parser, r->bytes, size, offset + size, &record) == RECORD_DATA &&
           event_decode(record.data, record.length, &r->event, NULL) == OK;
}
