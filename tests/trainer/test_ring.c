/*
 * The ring over threads: each chunk added in its own order, to the bit, the same on all ranks; bytes exactly.
 */
#include "model/network.h"
#include "tests/trainer/sums.h"

#include <stdatomic.h>
#include <time.h>

static int make(struct transport **out, const struct transport_plan *plan, const struct sums *s, struct error *e)
{
    (void)s;
    return ring_new(out, plan, e);
}

/* Chunk c of every bucket: rank c first, then each next one. */
static void add_round(const struct sums *s, const struct reduction *r, const real *const *vectors, real *sum)
{
    const int ranks = r->workers;

    for (size_t q = 0; q < bucket_count(s->total, s->bucket); q++)
        for (int c = 0; c < ranks; c++) {
            const struct extent x = slice_extent(bucket_extent(s->total, s->bucket, q), ranks, c);

            for (size_t i = x.from; i < x.to; i++) {
                sum[i] = vectors[c][i];
                for (int k = 1; k < ranks; k++)
                    sum[i] += vectors[(c + k) % ranks][i];
            }
        }
}

static size_t chunks(const struct sums *s, int ranks, int c)
{
    return slices_count(s->total, s->bucket, ranks, (c + ranks) % ranks);
}

/* All but the chunk that a rank completes, then all but the one that it gets last. */
static void check_bytes(const struct sums *s, const struct traffic *t)
{
    const int n = t->ranks;
    const int64_t tallies = SUMS_STEPS * (n - 1) * (int64_t)sizeof(struct tally_part);
    int64_t all = 0;

    for (int r = 0; r < n; r++) {
        const struct traffic_link link = traffic_of_rank(t, r);
        const size_t out = 2 * s->total - chunks(s, n, r + 1) - chunks(s, n, r + 2);
        const size_t in = 2 * s->total - chunks(s, n, r) - chunks(s, n, r + 1);

        assert_int_equal(link.sent, SUMS_STEPS * (int64_t)(out * sizeof(real)) + tallies);
        assert_int_equal(link.received, SUMS_STEPS * (int64_t)(in * sizeof(real)) + tallies);
        if (s->total % (16 * (size_t)n) == 0 && s->bucket % (16 * (size_t)n) == 0)
            assert_int_equal(link.sent + link.received - 2 * tallies,
                             SUMS_STEPS * 4 * (n - 1) * (int64_t)(s->total * sizeof(real)) / n);
        all += link.sent;
    }
    assert_int_equal(all, n * tallies + SUMS_STEPS * 2 * (n - 1) * (int64_t)(s->total * sizeof(real)));
}

static void test_round(void **state)
{
    static const size_t sizes[][2] = { { 960, 960 }, { 1500, 256 }, { 1001, 96 }, { 960, 240 }, { 7, 16 }, { 17, 16 } };

    (void)state;
    for (int ranks = 1; ranks <= 5; ranks++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            const struct sums s = { .total = sizes[i][0], .bucket = sizes[i][1], .make = make, .add = add_round };
            struct player players[PLAYERS_MAX];

            players_play(players, ranks, sums_play, &s);
            if (ranks > 1)
                check_bytes(&s, &players[ranks - 1].traffic);
            players_leave(players, ranks);
        }
}

/* ---- who is late ------------------------------------------------------------------------------------------------- */

enum { RANKS = 3, TURNS = 2 * (RANKS - 1), STEPS = 2, CHUNK = 16 };

struct one {
    pthread_t thread;
    struct thread_post *post;
    int rank, rc;
    struct error error;
    struct world *world;
};

static atomic_int reported; /* 1: some rank is reported */

/* Rank 0, which adds nothing, so that it can send everything at once: but for its last message of the first step, before
 * which it hangs until one is reported. Meanwhile what it gets is taken, as MPI takes short messages. */
static void hang(struct world *w)
{
    const struct timespec pause = { 0, 1000000 };
    char out[CHUNK * sizeof(real) + sizeof(struct tally_part)] = "", in[TURNS][sizeof out];
    struct message sent[TURNS], got[TURNS];

    for (int step = 0; step < STEPS; step++) {
        for (int turn = 0; turn < TURNS; turn++) {
            const size_t n = turn < RANKS - 1 ? sizeof out : CHUNK * sizeof(real);

            must(world_receive(w, RANKS - 1, 0, in[turn], sizeof out, &got[turn], NULL) == OK);
            for (int k = 0; k <= turn && turn == TURNS - 1; k++)
                while (message_done(w, &got[k], NULL) == 0)
                    nanosleep(&pause, NULL);
            while (step == 0 && turn == TURNS - 1 && !atomic_load(&reported))
                nanosleep(&pause, NULL);
            must(world_send(w, 1, 0, out, n, &sent[turn], NULL) == OK);
        }
        for (int turn = 0; turn < TURNS; turn++)
            while (message_done(w, &sent[turn], NULL) == 0)
                nanosleep(&pause, NULL);
    }
}

static void pass_round(struct one *o, struct transport *t)
{
    const struct tally_part mine = { .hash = 1 };
    struct tally_part parts[RANKS];

    for (int64_t step = 0; step < STEPS && o->rc == OK; step++) {
        t->operations->begin(t, step);
        memset(t->vectors[0], 0, t->plan.total * sizeof(real));
        o->rc = t->operations->complete(t, &mine, parts, &o->error);
        if (o->rc == ERR_PEER) { /* who has reported goes on all the same */
            atomic_store(&reported, 1);
            o->rc = t->operations->complete(t, &mine, parts, NULL);
        }
    }
}

static void *take_part(void *context)
{
    static const double deadlines[RANKS] = { 60, 4, 3 };
    struct transport_plan plan = { .total = RANKS * CHUNK, .bucket = RANKS * CHUNK, .buckets = 1, .ranks = RANKS };
    struct one *o = context;
    struct network *network; /* for the names of its variables */
    struct reduction reduction;
    struct transport *t;

    must(world_over(&o->world, thread_participant(o->post, o->rank), deadlines[o->rank], NULL) == OK);
    must(reduction_init(&reduction, RANKS, 0, NULL) == OK);
    must(network_new(&network, model_find("lenet"), 1, NULL) == OK);
    plan.world = o->world;
    plan.rank = o->rank;
    plan.network = network;
    plan.reduction = &reduction;
    must(ring_new(&t, &plan, NULL) == OK);
    if (o->rank == 0)
        hang(o->world);
    else
        pass_round(o, t);
    t->operations->free(t);
    network_free(network);
    reduction_release(&reduction);
    return NULL;
}

/* Rank 2 needs nothing more in the step that rank 1 cannot end, and waits for it in the next: it leaves it the word. */
static void test_late_in_the_step_before(void **state)
{
    struct thread_post *post = thread_post_new(RANKS);
    struct one ones[RANKS];

    (void)state;
    for (int r = 0; r < RANKS; r++) {
        ones[r] = (struct one){ .post = post, .rank = r };
        assert_int_equal(pthread_create(&ones[r].thread, NULL, take_part, &ones[r]), 0);
    }
    for (int r = 0; r < RANKS; r++)
        pthread_join(ones[r].thread, NULL);
    assert_non_null(strstr(ones[1].error.message, "waited 4 s at step 0 for rank 0 on host "));
    assert_string_equal(ones[2].error.message, "");
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(ones[r].rc, OK);
        world_close(ones[r].world);
    }
    thread_post_free(post);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_round), cmocka_unit_test(test_late_in_the_step_before) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
