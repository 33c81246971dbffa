#include "trainer/collective/clock_offset.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum { TAG_CLOCK = 32100, ROUNDS = 16 }; /* above the tags of steps */

struct clock_offset clock_offset_of(int64_t asked, int64_t answer, int64_t answered, int same)
{
    const int64_t half = (answered - asked) / 2, offset = answer - (asked + half);
    const int64_t error = answered - asked - half;

    return (struct clock_offset){ asked + half, same && llabs(offset) <= error ? 0 : offset, error };
}

/* Waits for a message to, or from, rank r. */
static int wait_for_clock(struct world *w, struct message *m, int r, const char *doing, struct error *e)
{
    struct patience p;
    char name[WORLD_NAME_MAX];
    int rc;

    patience_init(&p, w, world_deadline(w));
    while ((rc = message_done(w, m, e)) == 0)
        if (!patience_pause(&p)) {
            world_name(w, r, name, sizeof name);
            if ((rc = patience_over(&p, e, "for %s to %s", name, doing)) < 0)
                return rc;
        }
    return rc < 0 ? rc : OK;
}

static int ask(struct world *w, int r, struct clock_offset *out, const char *doing, struct error *e)
{
    const struct process *places = world_places(w);
    const int same = places[0].boot[0] && !strcmp(places[0].boot, places[r].boot);
    int rc = OK;

    for (int i = 0; i < ROUNDS && rc == OK; i++) {
        struct message to = { 0 }, from = { 0 };
        struct clock_offset one;
        int64_t asked, answer = 0;

        if ((rc = world_receive(w, r, TAG_CLOCK, &answer, sizeof answer, &from, e)) < 0)
            break;
        asked = clock_nanoseconds();
        if ((rc = world_send(w, r, TAG_CLOCK, &i, sizeof i, &to, e)) < 0 ||
            (rc = wait_for_clock(w, &from, r, doing, e)) < 0)
            break;
        one = clock_offset_of(asked, answer, clock_nanoseconds(), same);
        if (i == 0 || one.error < out->error)
            *out = one;
        rc = wait_for_clock(w, &to, r, doing, e);
    }
    return rc;
}

static int answer_all(struct world *w, const char *doing, struct error *e)
{
    int rc = OK;

    for (int i = 0; i < ROUNDS && rc == OK; i++) {
        struct message to = { 0 }, from = { 0 };
        int64_t now;
        int round;

        if ((rc = world_receive(w, 0, TAG_CLOCK, &round, sizeof round, &from, e)) < 0 ||
            (rc = wait_for_clock(w, &from, 0, doing, e)) < 0)
            break;
        now = clock_nanoseconds();
        if ((rc = world_send(w, 0, TAG_CLOCK, &now, sizeof now, &to, e)) == OK)
            rc = wait_for_clock(w, &to, 0, doing, e);
    }
    return rc;
}

int clock_offsets_measure(struct world *w, struct clock_offset *out, const char *doing, struct error *e)
{
    int rc = OK;

    if (world_rank(w) > 0)
        return answer_all(w, doing, e);
    out[0] = (struct clock_offset){ .at = clock_nanoseconds() };
    for (int r = 1; r < world_size(w) && rc == OK; r++)
        rc = ask(w, r, &out[r], doing, e);
    return rc;
}
