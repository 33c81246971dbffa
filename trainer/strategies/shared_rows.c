#include "trainer/strategies/shared_rows.h"

#include "trainer/collective/transport_choice.h"

#include <stdio.h>
#include <string.h>

size_t shared_rows_servers(struct option *rows, struct strategy_servers *servers)
{
    const struct option table[] = {
        { OPTION_INT, .name = "servers", .value = &servers->total, .argument = "K", .minimum = 1, .maximum = 1000,
          .help = "Use the last K ranks as servers, with --run-option ps and hybrid. Default: 1." },
        { OPTION_INT, .name = "servers-per-host", .value = &servers->per_host, .argument = "N", .minimum = 1,
          .maximum = 1000,
          .help = "Use the last N ranks on each host as servers instead, with --run-option ps and hybrid, however the "
                  "launcher places the ranks." },
    };

    *servers = (struct strategy_servers){ .total = 1 };
    memcpy(rows, table, sizeof table);
    return sizeof table / sizeof *table;
}

size_t shared_rows_transport(struct option *rows, const char **transport)
{
    *transport = "auto";
    rows[0] = (struct option){
        OPTION_CHOICE,
        .name = "transport",
        .value = transport,
        .argument = "HOW",
        .choices = TRANSPORT_CHOICES,
        .help = "Send gradients, with --run-option mpi and hybrid, through shared memory (shared), in MPI messages "
                "(mpi), or through shared memory on each host and in messages between hosts (two-level). Default: "
                "auto, which is shared if all ranks are on one host, and two-level if some share one."
    };
    return 1;
}

size_t shared_rows_exchange(struct option *rows, const char **exchange)
{
    *exchange = "float32";
    rows[0] = (struct option){
        OPTION_CHOICE,
        .name = "exchange",
        .value = exchange,
        .argument = "NAME",
        .choices = "float32|bfloat16",
        .help = "Send gradients in messages as float32 (the default), or rounded to bfloat16, half the bytes: each "
                "rank's part, or each host's, and the sum, which is made in float32; with --run-option ps what is "
                "pushed, and not the weights that come back. Gradients in shared memory, those of rows of tables, "
                "and statistics stay float32."
    };
    return 1;
}

size_t shared_rows_rounded(const char *exchange, const struct network *n)
{
    return exchange && !strcmp(exchange, "bfloat16") ? network_parameter_count(n) : 0;
}

int shared_rows_check_exchange(const char *exchange, const struct strategy *s, struct error *e)
{
    if (!shared_rows_rounded(exchange, s->network) || !s->reduction.micro_shards)
        return OK;
    return error_set(e, ERR_ARG,
                     "--exchange bfloat16: each rank's part of the sum is rounded, so that the weights depend on the "
                     "number of ranks; train without --reproducible and --micro-shards");
}

size_t shared_rows_aggregation(struct option *rows, const char **how)
{
    *how = "auto";
    rows[0] = (struct option){
        OPTION_CHOICE,
        .name = "local-aggregation",
        .value = how,
        .argument = "HOW",
        .choices = "auto|on|off",
        .help = "Add the gradients of each host's workers there, with --run-option ps and hybrid, and exchange only "
                "their sum with the servers. Default: auto, which is on if there are several hosts and workers share "
                "one."
    };
    return 1;
}

static const char **value_of(const struct option *rows, const char *name)
{
    while (strcmp(rows->name, name) != 0)
        rows++;
    return rows->value;
}

void shared_rows_messages(const struct strategy_kind *kind, struct strategy_own *own, const char *transport,
                          const char *exchange)
{
    struct option rows[STRATEGY_ROWS];

    memset(own, 0, sizeof *own);
    kind->options(rows, own->bytes);
    *value_of(rows, "transport") = transport;
    *value_of(rows, "exchange") = exchange;
}

int shared_rows_workers(const struct strategy_servers *servers, int ranks, struct error *e)
{
    const int count = (int)servers->total;

    if (ranks <= count)
        return error_set(
            e, ERR_ARG,
            "%d rank%s with --servers %d leaves zero ranks as workers; start at least %d ranks (mpirun -n %d)", ranks,
            ranks == 1 ? "" : "s", count, count + 1, count + 1);
    return ranks - count;
}

void shared_rows_describe(const struct strategy_servers *servers, int ranks, char *text, size_t size)
{
    const int count = (int)servers->total, workers = ranks - count;

    snprintf(text, size, "%d worker%s and %d server%s", workers, workers == 1 ? "" : "s", count, count == 1 ? "" : "s");
}
