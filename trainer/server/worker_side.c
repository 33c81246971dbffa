#include "trainer/server/worker_side.h"

#include "trainer/collective/exchange.h"
#include "trainer/collective/places.h"
#include "trainer/server/packed_state.h"

#include <stdlib.h>
#include <string.h>

/* to one server */
struct connection {
    const struct packing *packing;
    struct packed_state layout;
    /* Packed. push: the factor, packet by packet, of one vector after the other; pull: reply_extra() more. */
    real *push, *pull;
    struct message *out, *in; /* (packets) */
    size_t sent;              /* packets of this step */
    struct message control;
    int64_t words[CONTROL_WORDS]; /* of control */
};

struct worker_side {
    struct worker_setup setup;
    int64_t global_step;
    struct connection *servers;
    real **vectors; /* (reduction_vectors) the last is the network's own */
    struct message tally_out, verdict_in;
    struct tally_part part;
    struct verdict verdict;
    struct server_statistics statistics;
    struct error error; /* error of ready(), kept for step_end */
    int64_t step, steps, bytes;
    int64_t unused;      /* pushes of ours that were dropped */
    real factor;         /* asynchronous, clips: of this step's gradient */
    double norm;         /* synchronous, clips: as last heard */
    int done_said, left; /* left: the last step was abandoned */
    int collecting;      /* 1: worker 0 waits for the state of the servers */
    int newer;           /* decided: 1: the network has collected values, newer than those of the last reply */
    uint32_t flags;      /* of servers' signals, sent to server 0 with the next tally; at the end, our own */
    int tallied;         /* the tally of this step is sent */
    real *sum;           /* the speaker of a host: its workers' vectors added, piece by piece */
    char *late;          /* (ranks) whom the sentence of a late one is about */
};

/* 1: another worker of this host exchanges our messages of steps. */
static int is_silent(const struct worker_side *w)
{
    return w->setup.shared && !shared_push_speaks(w->setup.shared);
}

static int vector_count(const struct worker_side *w)
{
    return reduction_vectors(w->setup.reduction, w->setup.worker);
}

/* How many vectors a push has. */
static size_t pushed_vectors(const struct worker_side *w)
{
    return w->setup.shared ? 1 : (size_t)vector_count(w);
}

static int rank_of(const struct worker_side *w, int server)
{
    return w->setup.workers + server;
}

/* Elements of all replies of a server after its values: flags, and the norm. */
static size_t reply_extra(const struct worker_setup *s)
{
    return 1 + (size_t)(s->clips && s->synchronous);
}

/* Elements of a push before packet 0: the factor. */
static size_t push_lead(const struct worker_side *w)
{
    return w->setup.clips && !w->setup.synchronous;
}

static size_t reply_bytes(const struct worker_side *w, const struct packing *p, size_t k)
{
    return (p->packets[k].length + (k + 1 == p->packet_count ? reply_extra(&w->setup) : 0)) * sizeof(real);
}

/* Gives the network what the servers last sent. */
static void give_values(struct worker_side *w)
{
    for (int j = 0; j < w->setup.servers; j++) {
        struct connection *c = &w->servers[j];

        for (size_t k = 0; k < c->packing->packet_count; k++)
            packed_state_give_values(&c->layout, w->setup.optimizer, k, c->pull + c->packing->packets[k].at);
    }
    w->newer = 0;
}

int worker_side_begin(struct worker_side *w, int64_t step, struct error *e)
{
    int rc = OK;

    if (w->newer)
        give_values(w);
    w->step = step;
    w->tallied = 0;
    memset(&w->error, 0, sizeof w->error);
    if (w->setup.shared)
        shared_push_begin(w->setup.shared);
    for (int j = 0; j < w->setup.servers && rc == OK && !is_silent(w); j++) {
        struct connection *c = &w->servers[j];

        c->sent = 0;
        for (size_t k = 0; k < c->packing->packet_count && rc == OK; k++)
            rc = world_receive(w->setup.world, rank_of(w, j), TAG_REPLY + (int)k, c->pull + c->packing->packets[k].at,
                               reply_bytes(w, c->packing, k), &c->in[k], e);
    }
    if (rc == OK && !is_silent(w))
        rc = world_receive(w->setup.world, rank_of(w, 0), TAG_VERDICT, &w->verdict, sizeof w->verdict, &w->verdict_in,
                           e);
    return rc;
}

/* Packs packet k for server j. Returns where it is. */
static const real *pack(struct worker_side *w, int j, size_t k)
{
    struct connection *c = &w->servers[j];
    const struct packing *p = c->packing;
    const struct packet *packet = &p->packets[k];
    const size_t vectors = pushed_vectors(w);
    real *at = c->push + push_lead(w) + packet->at * vectors;

    for (size_t i = 0; i < packet->pieces && w->setup.shared; i++) {
        const struct extent x = p->pieces[packet->first_piece + i];

        shared_push_sum(w->setup.shared, w->sum, x.from, x.to);
    }
    if (w->setup.shared) {
        packing_gather(p, k, w->sum, at);
        packing_narrow(p, k, w->setup.rounded, at);
        return at;
    }
    if (packet->pieces == 1 && vectors == 1 && !w->setup.rounded &&
        !(k == 0 && push_lead(w))) /* sent from its place, and final until then */
        return w->vectors[0] + packet->low;
    for (size_t v = 0; v < vectors; v++)
        packing_gather(p, k, w->vectors[v], at + v * packet->length);
    packing_narrow(p, k, w->setup.rounded, at);
    if (k > 0 || !push_lead(w))
        return at;
    c->push[0] = w->factor;
    return c->push;
}

static int is_final(const struct worker_side *w, size_t packet_low, size_t low)
{
    return w->setup.shared ? shared_push_is_final(w->setup.shared, packet_low) : packet_low >= low;
}

/* Pushes the next packet to this server, if it is final from `low` on. 1: it was. */
static int push_next(struct worker_side *w, int j, size_t low)
{
    struct connection *c = &w->servers[j];
    const struct packing *p = c->packing;
    const size_t k = c->sent;
    size_t n;

    if (k == p->packet_count || w->error.code < 0 || !is_final(w, p->packets[k].low, low))
        return 0;
    n = packing_bytes(p, k, w->setup.rounded) * pushed_vectors(w) + (k == 0 ? push_lead(w) : 0) * sizeof(real);
    world_send(w->setup.world, rank_of(w, j), TAG_PUSH + (int)k, pack(w, j, k), n, &c->out[k], &w->error);
    w->bytes += (int64_t)n;
    c->sent++;
    return 1;
}

/* Pushes all packets that are final from `low` on: one to each server in turn, and each worker begins with another one,
 * so that none waits while all push to the first. 1: there were some. */
static int push_all(struct worker_side *w, size_t low)
{
    int moved = 0;

    for (int pushed = 1; pushed; moved |= pushed) {
        pushed = 0;
        for (int i = 0; i < w->setup.servers; i++)
            pushed |= push_next(w, (w->setup.worker + i) % w->setup.servers, low);
    }
    return moved;
}

/* begins: 1: what is final from `low` on is pushed. */
static void advance(struct worker_side *w, size_t low, int begins)
{
    const enum phase before = phase_clock_enter(w->setup.clock, PHASE_REDUCING);

    if (w->setup.shared)
        shared_push_final(w->setup.shared, low);
    if (begins && !is_silent(w))
        push_all(w, low);
    message_done(w->setup.world, &w->verdict_in, &w->error); /* lets MPI advance its messages */
    phase_clock_enter(w->setup.clock, before);
}

void worker_side_ready(struct worker_side *w, size_t low)
{
    /* An asynchronous push cannot be taken back, and begins with its factor. */
    advance(w, low, w->setup.synchronous || (low == 0 && !push_lead(w)));
}

void worker_side_clip(struct worker_side *w, real factor)
{
    w->factor = factor;
}

/* Sends the tally, or those of this host's workers, in one message. */
static int send_tally(struct worker_side *w, struct error *e)
{
    const struct tally_part *parts = w->setup.shared ? shared_push_parts(w->setup.shared) : &w->part;
    const size_t count = w->setup.shared ? (size_t)shared_push_members(w->setup.shared) : 1;

    w->tallied = 1;
    w->bytes += (int64_t)(count * sizeof *parts);
    return world_send(w->setup.world, rank_of(w, 0), TAG_TALLY, parts, count * sizeof *parts, &w->tally_out, e);
}

/* The speaker of a host, after training: pushes what has become final in all of its workers. 1: all of it is sent, and
 * their tallies; 0: not yet. */
static int speak(struct worker_side *w, struct patience *patience, struct error *e)
{
    int rc;

    if (w->tallied)
        return 1;
    if (push_all(w, 0))
        patience_calm(patience);
    if (w->error.code < 0)
        return error_copy(e, &w->error);
    if (!shared_push_tallied(w->setup.shared))
        return 0;
    patience_calm(patience);
    push_all(w, 0);
    rc = w->error.code < 0 ? error_copy(e, &w->error) : send_tally(w, e);
    return rc < 0 ? rc : 1;
}

/* 1: the verdict has come, and says that no values will. */
static int verdict_is_empty(struct worker_side *w, struct error *e)
{
    return message_done(w->setup.world, &w->verdict_in, e) == 1 && !w->verdict.values;
}

/* 1: all messages of the step are done. *late: a server that has not answered, *packet: which one. */
static int step_done(struct worker_side *w, int *late, size_t *packet, struct error *e)
{
    struct world *world = w->setup.world;
    int rc;

    const int none = verdict_is_empty(w, e);

    for (int j = 0; j < w->setup.servers; j++) {
        struct connection *c = &w->servers[j];

        *late = j;
        for (*packet = 0; *packet < c->packing->packet_count; ++*packet)
            if ((rc = message_done(world, &c->out[*packet], e)) != 1 ||
                (!none && (rc = message_done(world, &c->in[*packet], e)) != 1))
                return rc;
    }
    *late = 0;
    *packet = 0;
    if ((rc = message_done(world, &w->tally_out, e)) != 1)
        return rc;
    return message_done(world, &w->verdict_in, e);
}

static int has_answered(struct worker_side *w, const struct connection *c, int none)
{
    struct error ignored;

    for (size_t k = 0; k < c->packing->packet_count; k++)
        if (message_done(w->setup.world, &c->out[k], &ignored) != 1 ||
            (!none && message_done(w->setup.world, &c->in[k], &ignored) != 1))
            return 0;
    return 1;
}

/* Marks the servers that the worker waits for: only `one`, or, if < 0, all that have not answered, of which some may
 * stand (world_narrow); else server 0, whose verdict is missing. Returns how many. */
static int mark_late_servers(struct worker_side *w, int one)
{
    struct error ignored;
    const int none = verdict_is_empty(w, &ignored);
    int count = 0;

    memset(w->late, 0, (size_t)world_size(w->setup.world));
    for (int j = 0; j < w->setup.servers; j++)
        w->late[rank_of(w, j)] = one < 0 ? !has_answered(w, &w->servers[j], none) : j == one;
    world_narrow(w->setup.world, w->late, world_size(w->setup.world));
    for (int j = 0; j < w->setup.servers; j++)
        count += w->late[rank_of(w, j)];
    return count ? count : mark_late_servers(w, 0);
}

/* late, packet: the first that is missing. one: as above. */
static int late_sentence(struct worker_side *w, const struct patience *patience, int late, size_t packet, int one,
                         struct error *e)
{
    const struct packing *p = &w->setup.packings[late];
    struct buffer servers = BUFFER_EMPTY, numbers = BUFFER_EMPTY;
    struct extent x = { 0, 1 };
    char names[200];
    const int count = mark_late_servers(w, one);
    int rc;

    /* Of several servers some may wait for another, which knows better: they have the word first. */
    if (count > 1 && !patience_exceeds(patience, 2))
        return 0;
    if (p->packet_count > 0) {
        x.from = p->packets[packet].low;
        x.to = p->pieces[p->packets[packet].first_piece].to;
    }
    extent_names(w->setup.network, x, names, sizeof names);
    for (int j = 0, at = 0; j < w->setup.servers; j++)
        if (w->late[rank_of(w, j)])
            buffer_format(&numbers, "%s%d", at++ ? ", " : "", j);
    places_text(&servers, world_places(w->setup.world), w->late, world_size(w->setup.world), 1);
    rc = patience_over(patience, e, "at step %lld for %s (server%s %s), for tensors %s", (long long)w->step,
                       buffer_text(&servers), count > 1 ? "s" : "", buffer_text(&numbers), names);
    buffer_release(&servers);
    buffer_release(&numbers);
    return rc;
}

/* The speaker of a host misses other workers there. */
static int members_late_sentence(struct worker_side *w, const struct patience *patience, struct error *e)
{
    struct buffer workers = BUFFER_EMPTY;
    int rc;

    shared_push_late(w->setup.shared, w->late);
    world_narrow(w->setup.world, w->late, w->setup.workers);
    places_text(&workers, world_places(w->setup.world), w->late, w->setup.workers, 1);
    rc = patience_over(patience, e, "at step %lld for %s, with which it pushes gradients", (long long)w->step,
                       buffer_text(&workers));
    buffer_release(&workers);
    return rc;
}

/* Longer than the servers wait: a server can name the missing worker, we only the server. Of the workers the first
 * reports. */
static double patience_of(const struct worker_side *w)
{
    const double deadline = world_deadline(w->setup.world);

    /* Servers that wait for each other's squares let those report that wait for a worker. */
    const int squares = w->setup.clips && w->setup.synchronous;
    /* Nor can a server send its state before the other workers have pushed; and where the last of these is silent it
     * leaves the word to other servers first. */
    const int servers = w->setup.servers > 1 && w->collecting ? 4 : w->setup.servers > 1 && squares ? 3 : 0;

    return deadline + places_precedence(deadline, 1 + servers + (w->setup.worker > 0) + (w->setup.shared != NULL));
}

/* Waits for one message to or from server j; m NULL: for all of the step. */
static int wait_for_message(struct worker_side *w, struct message *m, int j, struct error *e)
{
    const enum phase before = phase_clock_enter(w->setup.clock, PHASE_WAITING);
    struct patience p;
    size_t packet = 0;
    int rc;

    patience_init(&p, w->setup.world, patience_of(w));
    while ((rc = m ? message_done(w->setup.world, m, e) : step_done(w, &j, &packet, e)) == 0)
        if (!patience_pause(&p) && (rc = late_sentence(w, &p, j, packet, m ? j : -1, e)) < 0)
            return rc;
    phase_clock_enter(w->setup.clock, before);
    return rc < 0 ? rc : OK;
}

/* The speaker of a host: to the end of the step. */
static int wait_for_host(struct worker_side *w, struct error *e)
{
    const enum phase before = phase_clock_enter(w->setup.clock, PHASE_WAITING);
    struct patience p;
    size_t packet = 0;
    int late = 0, rc;

    patience_init(&p, w->setup.world, world_deadline(w->setup.world));
    for (;;) {
        shared_push_look(w->setup.shared);
        if ((rc = speak(w, &p, e)) < 0 || (rc == 1 && (rc = step_done(w, &late, &packet, e)) != 0))
            break;
        message_done(w->setup.world, &w->verdict_in, &w->error); /* lets MPI advance its messages */
        /* Who misses a worker of its own host knows which, so it is the first to report. */
        p.limit = w->tallied ? patience_of(w) : world_deadline(w->setup.world);
        if (!patience_pause(&p) &&
            (rc = w->tallied ? late_sentence(w, &p, late, packet, -1, e) : members_late_sentence(w, &p, e)) < 0)
            return rc;
    }
    phase_clock_enter(w->setup.clock, before);
    if (rc < 0)
        return rc;
    shared_push_answer(w->setup.shared, &w->verdict);
    return OK;
}

/* All others of a host. */
static int wait_for_speaker(struct worker_side *w, struct error *e)
{
    const enum phase before = phase_clock_enter(w->setup.clock, PHASE_WAITING);
    const int rc = shared_push_wait(w->setup.shared, w->step, &w->verdict, e);

    if (rc == OK)
        phase_clock_enter(w->setup.clock, before);
    return rc;
}

static int wait_for_step(struct worker_side *w, struct error *e)
{
    int rc;

    if (w->setup.shared) {
        rc = is_silent(w) ? wait_for_speaker(w, e) : wait_for_host(w, e);
        w->bytes += rc < 0 ? 0 : (int64_t)shared_push_count(w->setup.shared);
        return rc;
    }
    rc = send_tally(w, e);
    return rc < 0 ? rc : wait_for_message(w, NULL, 0, e);
}

static void take_replies(struct worker_side *w)
{
    w->flags = 0;
    give_values(w);
    for (int j = 0; j < w->setup.servers; j++) {
        const struct connection *c = &w->servers[j];

        if (c->packing->packet_count > 0)
            w->flags |= (uint32_t)c->pull[c->packing->length];
        if (c->packing->packet_count > 0 && reply_extra(&w->setup) > 1)
            w->norm = (double)c->pull[c->packing->length + 1];
    }
}

static void cancel_replies(struct worker_side *w)
{
    for (int j = 0; j < w->setup.servers; j++)
        for (size_t k = 0; k < w->servers[j].packing->packet_count; k++)
            message_cancel(w->setup.world, &w->servers[j].in[k]);
}

/* Asynchronous: nothing of the step was pushed, so nothing will be answered. */
static void take_back(struct worker_side *w, struct tally *tally)
{
    cancel_replies(w);
    message_cancel(w->setup.world, &w->verdict_in);
    w->flags = tally->flags & ~(uint32_t)TALLY_LEFT;
    tally->global_step = w->global_step;
    tally->more = 0;
}

int worker_side_end(struct worker_side *w, const struct tally_part *part, struct tally *tally, struct error *e)
{
    const struct verdict *v = &w->verdict;
    int rc;

    if (!w->setup.synchronous && (tally->flags & TALLY_LEFT)) {
        take_back(w, tally);
        return OK;
    }
    w->part = *part;
    w->part.flags |= w->flags;
    advance(w, 0, 1);
    if (w->setup.shared)
        shared_push_tally(w->setup.shared, &w->part);
    if (w->error.code < 0)
        return error_copy(e, &w->error);
    if ((rc = wait_for_step(w, e)) < 0)
        return rc;
    w->steps++;
    if (v->other >= 0)
        return error_set(e, ERR_CORRUPT,
                         "replicas differ before step %lld: the weights of worker %lld are not those of worker %d",
                         (long long)w->global_step, (long long)v->other, (int)v->first);
    w->unused += v->dropped;
    w->left = (v->flags & TALLY_LEFT) != 0;
    phase_clock_enter(w->setup.clock, PHASE_UPDATING);
    if (!v->values)
        cancel_replies(w);
    else if (!w->left || w->setup.decided)
        take_replies(w);
    *tally = (struct tally){ v->score, v->flags, v->global_step, v->more };
    w->global_step = v->global_step;
    return OK;
}

static int control(struct worker_side *w, enum control kind, int64_t argument, struct error *e)
{
    int rc;

    for (int j = 0; j < w->setup.servers; j++) {
        struct connection *c = &w->servers[j];

        if ((rc = wait_for_message(w, &c->control, j, e)) < 0)
            return rc;
        c->words[0] = kind;
        c->words[1] = argument;
        if ((rc = world_send(w->setup.world, rank_of(w, j), TAG_CONTROL, c->words, sizeof c->words, &c->control, e)) <
            0)
            return rc;
    }
    return OK;
}

/* Receives n bytes from server j, waiting. */
static int receive_now(struct worker_side *w, int j, int tag, void *bytes, size_t n, struct error *e)
{
    struct message m = { 0 };
    int rc = world_receive(w->setup.world, rank_of(w, j), tag, bytes, n, &m, e);

    return rc < 0 ? rc : wait_for_message(w, &m, j, e);
}

static int say_done(struct worker_side *w, struct error *e)
{
    if (w->done_said)
        return OK;
    w->done_said = 1;
    return control(w, CONTROL_DONE, w->flags, e);
}

/* The largest counts over all servers: the point at which all of them can stop, and its step. */
static int agree_on_cut(struct worker_side *w, int64_t *step, struct error *e)
{
    const int back = w->left && !w->setup.decided;
    int64_t cut[CUT_WORDS] = { 0 };
    int rc = OK;

    for (int j = 0; j < w->setup.servers && rc == OK; j++) {
        int64_t counts[CUT_WORDS] = { 0 };

        rc = receive_now(w, j, TAG_COUNTS, counts, sizeof counts, e);
        for (int i = 0; i < CUT_WORDS; i++)
            cut[i] = counts[i] > cut[i] ? counts[i] : cut[i];
    }
    *step = cut[1] - back;
    return rc < 0 ? rc : control(w, back ? CONTROL_CUT_BACK : CONTROL_CUT, cut[0], e);
}

static int take_snapshots(struct worker_side *w, real *packed, struct error *e)
{
    int rc = OK;

    for (int j = 0; j < w->setup.servers && rc == OK; j++) {
        const struct packed_state *layout = &w->servers[j].layout;

        /* Server 0 knows which weights this worker has, and may have decided about its push already: it goes on with
         * these once the collected ones are saved. */
        packed_state_take(layout, w->setup.optimizer, packed);
        memcpy(w->servers[j].pull, packed, layout->packing->length * sizeof *packed);
        if ((rc = receive_now(w, j, TAG_SNAPSHOT, packed, layout->length * sizeof *packed, e)) == OK)
            packed_state_give(layout, w->setup.optimizer, packed);
    }
    return rc;
}

int worker_side_collect(struct worker_side *w, int last, int64_t *step, struct error *e)
{
    size_t largest = 0;
    real *packed;
    int rc = OK;

    for (int j = 0; j < w->setup.servers; j++)
        if (w->servers[j].layout.length > largest)
            largest = w->servers[j].layout.length;
    packed = malloc((largest + 1) * sizeof *packed);
    if (!packed)
        rc = error_memory(e, NULL, "for the servers' state of %zu values", largest);
    w->collecting = 1;
    if (rc == OK && last)
        rc = say_done(w, e);
    if (rc == OK)
        rc = control(w, last ? CONTROL_FREEZE_LAST : CONTROL_FREEZE, 0, e);
    if (rc == OK && (rc = agree_on_cut(w, step, e)) == OK)
        rc = take_snapshots(w, packed, e);
    w->collecting = 0;
    w->newer = w->setup.decided;
    free(packed);
    return rc;
}

int worker_side_finish(struct worker_side *w, struct error *e)
{
    int rc = say_done(w, e);

    if (rc == OK && w->setup.worker == 0)
        rc = control(w, CONTROL_EXIT, 0, e);
    for (int j = 0; j < w->setup.servers && rc == OK; j++)
        rc = wait_for_message(w, &w->servers[j].control, j, e);
    if (rc == OK && w->setup.worker == 0)
        rc = receive_now(w, 0, TAG_STATISTICS, &w->statistics, sizeof w->statistics, e);
    return rc;
}

struct worker_report worker_side_report(const struct worker_side *w)
{
    return (struct worker_report){
        .bytes_step = w->steps ? (double)w->bytes / (double)w->steps : 0,
        .staleness_mean = w->verdict.staleness_mean,
        .staleness_max = w->verdict.staleness_max,
        .gradient_norm = w->norm,
        .statistics = w->statistics,
        .current = w->verdict.values,
        .pushes = w->steps,
        .unused = w->unused,
        .dropped = w->verdict.all_dropped,
    };
}

void worker_side_free(struct worker_side *w)
{
    if (!w)
        return;
    for (int j = 0; w->servers && j < w->setup.servers; j++) {
        free(w->servers[j].push);
        if (!w->setup.shared)
            free(w->servers[j].pull);
        free(w->servers[j].out);
        free(w->servers[j].in);
    }
    for (int k = 0; w->vectors && !w->setup.shared && k < vector_count(w) - 1; k++)
        free(w->vectors[k]);
    free(w->vectors);
    free(w->sum);
    free(w->late);
    free(w->servers);
    free(w);
}

real *const *worker_side_vectors(const struct worker_side *w)
{
    return w->vectors;
}

static int vectors_new(struct worker_side *w)
{
    const int count = vector_count(w);
    real **v = w->vectors = calloc((size_t)count, sizeof *v);

    for (int k = 0; v && k < count && w->setup.shared; k++)
        v[k] = shared_push_vector(w->setup.shared, k);
    for (int k = 0; v && k < count && !w->setup.shared; k++)
        if (!(v[k] = k < count - 1 ? reals_new(network_exchange_count(w->setup.network))
                                   : network_exchange(w->setup.network)))
            return 0;
    return v != NULL;
}

/* Room for what the servers get and send. A silent worker sends nothing, and finds in the host's memory what comes. */
static int connection_new(struct worker_side *w, struct connection *c, const struct packing *packing, real *pull)
{
    const size_t messages = packing->packet_count + 1, vectors = pushed_vectors(w);

    c->packing = packing;
    c->layout = packed_state_of(w->setup.optimizer, packing);
    c->push = calloc(is_silent(w) ? 1 : push_lead(w) + packing->length * vectors + 1, sizeof *c->push);
    c->pull = pull ? pull : calloc(packing->length + reply_extra(&w->setup), sizeof *c->pull);
    c->out = calloc(messages, sizeof *c->out);
    c->in = calloc(messages, sizeof *c->in);
    return c->push && c->pull && c->out && c->in;
}

int worker_side_new(struct worker_side **out, const struct worker_setup *setup, struct error *e)
{
    real *pull = setup->shared ? shared_push_values(setup->shared) : NULL;
    struct worker_side *w = calloc(1, sizeof *w);
    int bad;

    if (w) {
        w->setup = *setup;
        w->global_step = setup->first_step;
        w->servers = calloc((size_t)setup->servers, sizeof *w->servers);
        w->late = calloc((size_t)world_size(setup->world), 1);
        if (setup->shared && !is_silent(w))
            w->sum = reals_new(network_exchange_count(setup->network));
    }
    bad = !w || !w->servers || !w->late || (setup->shared && !is_silent(w) && !w->sum) || !vectors_new(w);
    for (int j = 0; j < setup->servers && !bad; j++) {
        bad = !connection_new(w, &w->servers[j], &setup->packings[j], pull);
        pull = pull ? pull + setup->packings[j].length + reply_extra(setup) : NULL;
    }
    if (bad) {
        worker_side_free(w);
        return error_memory(e, NULL, "for a worker's messages");
    }
    *out = w;
    return OK;
}
