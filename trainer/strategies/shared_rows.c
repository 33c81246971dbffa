#include "trainer/strategies/shared_rows.h"

#include "trainer/collective/transports/transport_choice.h"

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
        .help = "Send gradients in messages, with --run-option mpi and ring, as float32 (the default), or rounded to "
                "bfloat16, half the bytes: each rank's part, or each host's, and the sum, which is made in float32. "
                "Gradients in shared memory, and statistics, stay float32."
    };
    return 1;
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

const char **shared_rows_transport_of(const struct strategy_kind *kind, struct strategy_own *own)
{
    struct option rows[STRATEGY_ROWS];
    size_t row = 0;

    memset(own, 0, sizeof *own);
    kind->options(rows, own->bytes);
    while (strcmp(rows[row].name, "transport") != 0)
        row++;
    return rows[row].value;
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
