#include "eventlog/tool/gzip_packing.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <zlib.h>
#if DEFLATE
#include <libdeflate.h>
#endif

enum { BLOCK = 1 << 20, THREADS_MOST = 8, MORE_SLOTS = 2, SLOTS_MOST = THREADS_MOST + MORE_SLOTS };

/* ---- a member -------------------------------------------------------------------------------------------------- */

#if DEFLATE
typedef struct libdeflate_compressor *compressor;

static compressor compressor_new(int level)
{
    return libdeflate_alloc_compressor(level);
}

static void compressor_free(compressor c)
{
    if (c)
        libdeflate_free_compressor(c);
}

static size_t member_bound(size_t n)
{
    return libdeflate_gzip_compress_bound(NULL, n);
}

/* The member's length; 0: it could not be packed. Its header has no name and time 0. */
static size_t pack_member(compressor c, const void *bytes, size_t n, void *out, size_t room)
{
    return libdeflate_gzip_compress(c, bytes, n, out, room);
}
#else
typedef z_stream *compressor;

static compressor compressor_new(int level)
{
    z_stream *z = calloc(1, sizeof *z);

    if (z && deflateInit2(z, level, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) != Z_OK) { /* 31: gzip */
        free(z);
        z = NULL;
    }
    return z;
}

static void compressor_free(compressor z)
{
    if (z)
        deflateEnd(z);
    free(z);
}

static size_t member_bound(size_t n)
{
    return compressBound(n) + 64; /* gzip's head and end are longer than zlib's */
}

static size_t pack_member(compressor z, const void *bytes, size_t n, void *out, size_t room)
{
    deflateReset(z);
    z->next_in = (Bytef *)(uintptr_t)bytes;
    z->avail_in = (uInt)n;
    z->next_out = out;
    z->avail_out = (uInt)room;
    return deflate(z, Z_FINISH) == Z_STREAM_END ? room - z->avail_out : 0;
}
#endif

/* ---- blocks, a ring of them ------------------------------------------------------------------------------------ */

struct slot {
    char *bytes, *packed;
    size_t n, packed_n;
    int done; /* packed, or impossible: packed_n is 0 */
};

/*
 * Block number i is in slots[i % slot_count]. The caller fills number `filled` and writes number `written`; threads
 * take number `taken`. written <= taken <= filled < written + slot_count.
 */
struct gzip_packing {
    void (*write)(void *context, const void *bytes, size_t n);
    void *context;
    int level, failed, any;
    compressor own; /* of the caller's thread, for a stream of one block or if no thread could be started */
    struct slot slots[SLOTS_MOST];
    size_t slot_count, written, filled;
    pthread_t threads[THREADS_MOST];
    size_t thread_count;
    pthread_mutex_t lock; /* of the members below, and of done, packed and packed_n of blocks that were handed over */
    pthread_cond_t work, packed;
    size_t taken, handed; /* handed: as filled, for the threads */
    int stop;
};

static void pack_slot(compressor c, struct slot *s)
{
    if (!s->packed)
        s->packed = malloc(member_bound(BLOCK));
    s->packed_n = c && s->packed ? pack_member(c, s->bytes, s->n, s->packed, member_bound(BLOCK)) : 0;
}

static void *pack_blocks(void *argument)
{
    struct gzip_packing *p = argument;
    compressor c = compressor_new(p->level);

    pthread_mutex_lock(&p->lock);
    for (;;) {
        struct slot *s;

        while (!p->stop && p->taken == p->handed)
            pthread_cond_wait(&p->work, &p->lock);
        if (p->stop)
            break;
        s = &p->slots[p->taken++ % p->slot_count];
        pthread_mutex_unlock(&p->lock);
        pack_slot(c, s);
        pthread_mutex_lock(&p->lock);
        s->done = 1;
        pthread_cond_signal(&p->packed);
    }
    pthread_mutex_unlock(&p->lock);
    compressor_free(c);
    return NULL;
}

static void start_threads(struct gzip_packing *p)
{
    size_t wanted = (size_t)get_nprocs();

    wanted = wanted < THREADS_MOST ? wanted : THREADS_MOST;
    while (p->thread_count < wanted && !pthread_create(&p->threads[p->thread_count], NULL, pack_blocks, p))
        p->thread_count++;
}

/* Waits for the oldest block that was handed over, and writes it. */
static void write_oldest(struct gzip_packing *p)
{
    struct slot *s = &p->slots[p->written % p->slot_count];

    pthread_mutex_lock(&p->lock);
    while (!s->done)
        pthread_cond_wait(&p->packed, &p->lock);
    s->done = 0;
    pthread_mutex_unlock(&p->lock);
    if (s->packed_n)
        p->write(p->context, s->packed, s->packed_n);
    else
        p->failed = 1;
    s->n = 0;
    p->written++;
}

/* Has the block at hand packed: by a thread, or at once. */
static void hand_over(struct gzip_packing *p, int last)
{
    struct slot *s = &p->slots[p->filled % p->slot_count];

    if (!p->thread_count && !last)
        start_threads(p);
    p->any = 1;
    if (!p->thread_count) {
        if (!p->own)
            p->own = compressor_new(p->level);
        pack_slot(p->own, s);
        s->done = 1;
        p->filled++;
        write_oldest(p);
        return;
    }
    pthread_mutex_lock(&p->lock);
    p->handed = ++p->filled;
    pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
    if (p->filled == p->written + p->slot_count)
        write_oldest(p);
}

int gzip_packing_open(struct gzip_packing **out, int level, void (*write)(void *context, const void *bytes, size_t n),
                      void *context, struct error *e)
{
    struct gzip_packing *p = calloc(1, sizeof *p);
    size_t threads = (size_t)get_nprocs();

    *out = NULL;
    if (!p)
        return error_memory(e, NULL, "for compression");
    p->write = write;
    p->context = context;
    p->level = level;
    p->slot_count = (threads < THREADS_MOST ? threads : THREADS_MOST) + MORE_SLOTS;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->packed, NULL);
    *out = p;
    return OK;
}

void gzip_packing_level(struct gzip_packing *p, int level)
{
    p->level = level;
}

void gzip_packing_add(struct gzip_packing *p, const void *bytes, size_t n)
{
    const char *from = bytes;

    while (n) {
        struct slot *s = &p->slots[p->filled % p->slot_count];
        size_t piece = BLOCK - s->n < n ? BLOCK - s->n : n;

        if (!s->bytes && !(s->bytes = malloc(BLOCK))) {
            p->failed = 1;
            return;
        }
        memcpy(s->bytes + s->n, from, piece);
        s->n += piece;
        from += piece;
        n -= piece;
        if (s->n == BLOCK)
            hand_over(p, 0);
    }
}

int gzip_packing_finish(struct gzip_packing *p, struct error *e)
{
    if (p->slots[p->filled % p->slot_count].n || !p->any)
        hand_over(p, 1);
    while (p->written < p->filled)
        write_oldest(p);
    return p->failed ? error_memory(e, NULL, "for compression") : OK;
}

void gzip_packing_close(struct gzip_packing *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stop = 1;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (size_t i = 0; i < p->thread_count; i++)
        pthread_join(p->threads[i], NULL);
    compressor_free(p->own);
    for (size_t i = 0; i < SLOTS_MOST; i++) {
        free(p->slots[i].bytes);
        free(p->slots[i].packed);
    }
    pthread_cond_destroy(&p->packed);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
