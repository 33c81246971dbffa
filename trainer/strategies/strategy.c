#include "trainer/strategies/strategy.h"

#include "trainer/collective/exchange.h"
#include "trainer/collective/places.h"
#include "trainer/server/server_seats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STRATEGY_ADDRESS(name) &strategy_##name,
const struct strategy_kind *const strategy_kinds[STRATEGY_KINDS + 1] = { STRATEGIES(STRATEGY_ADDRESS) NULL };

static int same(struct world *w, uint64_t value, const char *what, struct error *e)
{
    struct error found = { 0 };

    if (world_same(w, "compare its options", value, what, &found) < 0)
        return error_set(e, found.code, "%s%s", found.message,
                         found.code == ERR_ARG ? "; start all ranks with the same program and options" : "");
    return OK;
}

int strategy_count_servers(struct strategy_options *o, int hosts)
{
    struct strategy_servers *servers = o->kind->servers ? o->kind->servers(o) : NULL;

    if (!servers)
        return 0;
    if (!servers->given)
        servers->total = (servers->per_host ? servers->per_host : 1) * hosts;
    return (int)servers->total;
}

int strategy_chooses(const struct strategy_options *o, int workers)
{
    return o->chosen || (o->synchronous && o->aggregate && o->aggregate < workers);
}

int strategy_seat(struct strategy_options *o, struct world *w, struct error *e)
{
    struct strategy_servers *servers = o->kind->servers ? o->kind->servers(o) : NULL;
    const int64_t per_host = servers ? servers->per_host : 0;
    const int count = world_size(w);
    int *order, total, rc;

    if ((rc = same(w, (uint64_t)per_host, "--servers-per-host", e)) < 0 || per_host == 0 || count == 1)
        return rc;
    if (!(order = calloc((size_t)count, sizeof *order)))
        return error_memory(e, NULL, "to number %d ranks", count);
    total = server_seats(world_places(w), count, (int)per_host, order, e);
    rc = total < 0 ? total : world_renumber(w, order, e);
    free(order);
    if (rc == OK)
        servers->total = total;
    return rc;
}

static uint64_t options_hash(const struct strategy_options *o)
{
    const uint64_t numbers[] = { o->fingerprint, o->bucket_bytes, (uint64_t)o->first_step };
    const uint64_t h = exchange_hash(o->kind->name, strlen(o->kind->name), EXCHANGE_HASH_SEED);

    return exchange_hash(numbers, sizeof numbers, h);
}

int strategy_start(struct strategy **out, struct world *w, const struct strategy_options *options, struct optimizer *o,
                   uint64_t fingerprint, struct error *e)
{
    struct strategy common = {
        .world = w,
        .optimizer = o,
        .network = optimizer_network(o),
        .options = *options,
        .workers = options->kind->workers(options, world_size(w), e),
        .global_step = options->first_step,
        .more = options->first_step < options->max_steps,
    };
    int rc;

    if (common.workers < 0)
        return common.workers;
    common.worker = world_rank(w) < common.workers ? world_rank(w) : -1;
    common.options.chosen = strategy_chooses(options, common.workers);
    if ((rc = same(w, exchange_table_hash(common.network), "the model's table of variables", e)) < 0 ||
        (rc = same(w, options_hash(options), "the strategy's options", e)) < 0 ||
        (rc = same(w, fingerprint, "the training options", e)) < 0)
        return rc;
    rc = reduction_init(&common.reduction, common.workers, options->synchronous ? options->micro_shards : 0, e);
    if ((rc = world_agree(w, "plan its sums", rc, e)) == OK)
        rc = options->kind->start(out, &common, e);
    if (rc < 0)
        reduction_release(&common.reduction);
    return rc;
}

int strategy_attach(struct strategy *s, struct micro_shards *m, struct error *e)
{
    s->shards = m;
    micro_shards_set_vectors(m, s->vectors);
    return s->options.kind->rows || s->dense || s->takes_rows ? micro_shards_use_rows(m, e) : OK;
}

static uint64_t replica_hash(const struct strategy *s)
{
    return s->dense ? dense_part_hash(s->dense, s->network) : exchange_replica_hash(s->network);
}

void strategy_changes(const struct strategy *s)
{
    if (s->options.changes)
        s->options.changes(s->options.changes_context);
}

struct tally_part strategy_part(const struct strategy *s, const struct tally *t)
{
    const struct strategy_options *o = &s->options;
    struct tally_part part = { .score = t->score, .flags = t->flags };

    if (o->synchronous && s->workers > 1 && o->check_every > 0 && s->global_step % o->check_every == 0) {
        part.hashed = 1;
        part.hash = replica_hash(s);
    }
    return part;
}

int strategy_compare_parts(const struct strategy *s, const struct tally_part *parts, struct error *e)
{
    char ranks[120] = "";
    size_t used = 0;

    for (int r = tally_differs(parts, s->workers, 1); r > 0 && used + 12 < sizeof ranks;
         r = tally_differs(parts, s->workers, r + 1))
        used += (size_t)snprintf(ranks + used, sizeof ranks - used, "%s%d", used ? ", " : "", r);
    if (!used)
        return OK;
    return error_set(e, ERR_CORRUPT, "replicas differ before step %lld: the weights of rank %s are not those of rank 0",
                     (long long)s->global_step, ranks);
}

struct last_replica {
    uint64_t hash;
    int64_t step, whole;
};

/* Marks in `other` (count) the replicas that are not that of the first rank with the newest one; returns that rank. */
static int find_others(const struct last_replica *all, int count, char *other)
{
    int first = -1;

    for (int r = 0; r < count; r++)
        if (all[r].whole && (first < 0 || all[r].step > all[first].step))
            first = r;
    for (int r = 0; r < count; r++)
        other[r] = first >= 0 && all[r].whole && all[r].step == all[first].step && all[r].hash != all[first].hash;
    return first;
}

int strategy_compare_replicas(struct strategy *s, int whole, struct error *e)
{
    static const char doing[] = "end its last step";
    const struct last_replica mine = { whole ? replica_hash(s) : 0, s->global_step, whole };
    const enum phase before = phase_clock_enter(s->options.clock, PHASE_WAITING);
    const int count = world_size(s->world);
    struct last_replica *all = calloc((size_t)count, sizeof *all);
    char *other = calloc((size_t)count, 1);
    struct buffer ranks = BUFFER_EMPTY;
    int rc = all && other ? OK : error_memory(e, NULL, "to compare %d ranks", count), first;

    if ((rc = world_agree(s->world, doing, rc, e)) == OK &&
        (rc = world_gather(s->world, &mine, sizeof mine, all, doing, e)) == OK) {
        first = find_others(all, count, other);
        if (places_text(&ranks, world_places(s->world), other, count, 1) > 0)
            rc = error_set(e, ERR_CORRUPT, "replicas differ after the last step: not the same on %s as on rank %d",
                           buffer_text(&ranks), first);
    }
    phase_clock_enter(s->options.clock, before);
    buffer_release(&ranks);
    free(all);
    free(other);
    return rc;
}

int strategy_worker_ranks(const struct strategy *s)
{
    return s->workers < world_size(s->world) ? s->workers : world_size(s->world);
}

int strategy_waits_for_all(const struct strategy *s)
{
    return s->options.synchronous && (!s->options.aggregate || s->options.aggregate >= s->workers);
}

void strategy_free(struct strategy *s)
{
    struct reduction reduction;

    if (!s)
        return;
    reduction = s->reduction;
    s->operations->free(s);
    reduction_release(&reduction);
}
