/* players.h - ranks that are threads, each of which plays a function in a world of its own. */
#ifndef TESTS_TRAINER_PLAYERS_H
#define TESTS_TRAINER_PLAYERS_H

#include "tests/check.h"
#include "tests/trainer/threads.h"
#include "trainer/collective/traffic.h"
#include "trainer/collective/world.h"

#include <pthread.h>
#include <stdlib.h>

enum { PLAYERS_MAX = 8 };

struct player {
    void (*play)(struct player *p);
    const void *scene;
    struct world *world;
    int rank, ranks;
    struct traffic traffic; /* for play to fill */
    pthread_t thread;
    struct thread_post *post;
};

static void *player_live(void *context)
{
    struct player *p = context;

    if (world_over(&p->world, thread_participant(p->post, p->rank), 60, NULL) < 0)
        abort();
    p->play(p);
    return NULL;
}

/* Returns when all have played. */
static inline void players_play(struct player *players, int ranks, void (*play)(struct player *p), const void *scene)
{
    struct thread_post *post = thread_post_new(ranks);

    for (int r = 0; r < ranks; r++) {
        players[r] = (struct player){ .play = play, .scene = scene, .rank = r, .ranks = ranks, .post = post };
        assert_int_equal(pthread_create(&players[r].thread, NULL, player_live, &players[r]), 0);
    }
    for (int r = 0; r < ranks; r++)
        pthread_join(players[r].thread, NULL);
}

static inline void players_leave(struct player *players, int ranks)
{
    struct thread_post *post = players[0].post;

    for (int r = 0; r < ranks; r++) {
        traffic_release(&players[r].traffic);
        world_close(players[r].world);
    }
    thread_post_free(post);
}

#endif
