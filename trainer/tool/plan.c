/* trainer plan: predicts how fast each strategy trains on machines that one need not have. */
#include "base/file.h"
#include "base/human.h"
#include "base/json.h"
#include "base/number.h"
#include "base/program/log.h"
#include "base/program/subcommand.h"
#include "base/program/terminal.h"
#include "model/file/recipe.h"
#include "model/network.h"
#include "trainer/launch/launch.h"
#include "trainer/plan/planning.h"
#include "trainer/plan/probe.h"
#include "trainer/tool/command.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS_MOST = 64, RANKS_LARGEST = 65536, FILE_MOST = 1 << 24, OPTION_ROWS = 32 };

#define PROBE_SECONDS 2.0
#define PLAN_DEADLINE 60.0   /* to wait for another rank */
#define MEMORY_LATENCY 20e-6 /* the first pause of a rank that waits */
#define MESSAGE_SECONDS 5e-6 /* of processor, where nobody measured it */

struct plan {
    struct log log;
    /* as given */
    const char *model, *strategies, *ranks, *format, *measured, *fit, *hosts_path, *aggregation, *exchange;
    int64_t parameters, batch_size, global_batch, per_host, servers, cores, threads, bucket_bytes, fit_points,
        rows_used;
    double compute, latency, bandwidth, memory_bandwidth;
    int overlap, devices;
    char models[256], choices[256];
    /* what follows */
    struct world *world;
    int workers[RANKS_MOST], worker_counts;
    int *slots; /* of --resource-info: the devices of each host */
    struct network *network;
    struct extent *variables;
    struct probe_compute *probe; /* NULL: not measured */
    struct planning planning;
    struct measured results;
    struct buffer about; /* lines above the table */
};

static const char examples[] =
    "  trainer plan --model resnet32 --latency 50e-6 --bandwidth 1.25e9 --ranks-per-host 8\n"
    "  trainer plan --model lenet --batch-size 8 --compute 0.005 --latency 1e-4 --bandwidth 1.25e6 --strategies "
    "mpi,ps\n"
    "  trainer plan --parameters 25557032 --batch-size 128 --no-overlap --ranks-per-host 8 --fit measured.csv\n";

/* ---- what is given ----------------------------------------------------------------------------------------------- */

static int parse_ranks(struct plan *p, struct error *e)
{
    for (const char *at = p->ranks; *at;) {
        const size_t n = strcspn(at, ",");
        char word[24];
        int64_t value;

        snprintf(word, sizeof word, "%.*s", n < sizeof word ? (int)n : (int)sizeof word - 1, at);
        if (!number_parse_int(word, &value) || value < 1 || value > RANKS_LARGEST)
            return error_set(e, ERR_ARG, "--ranks: '%s' is not a number of workers from 1 to %d", word, RANKS_LARGEST);
        if (p->worker_counts == RANKS_MOST)
            return error_set(e, ERR_ARG, "--ranks: more than %d numbers", RANKS_MOST);
        p->workers[p->worker_counts++] = (int)value;
        at += n + (at[n] == ',');
    }
    return OK;
}

/* The hosts of --resource-info, and without --ranks how many workers they are for. */
static int read_hosts(struct plan *p, int ranks_given, struct error *e)
{
    struct resource_info hosts = { 0 };
    int rc = launch_hosts(&hosts, p->hosts_path, e);

    if (rc == OK && !(p->slots = calloc(hosts.count, sizeof *p->slots)))
        rc = error_memory(e, p->hosts_path, "for %zu hosts", hosts.count);
    for (size_t i = 0; i < hosts.count && rc == OK; i++)
        p->slots[i] = hosts.hosts[i].devices;
    if (rc == OK && !ranks_given)
        p->worker_counts = resource_info_counts(&hosts, p->workers);
    p->planning.slots = p->slots;
    p->planning.slot_count = hosts.count;
    resource_info_release(&hosts);
    return rc;
}

static int no_room(const struct plan *p, int workers, struct error *e)
{
    return error_set(e, ERR_ARG, "%s has devices for %d workers; %d are too many", p->hosts_path,
                     planning_room(&p->planning), workers);
}

/* Every number of workers has a place. */
static int check_room(const struct plan *p, struct error *e)
{
    const int room = planning_room(&p->planning);

    for (int i = 0; i < p->worker_counts; i++)
        if (p->workers[i] > room)
            return no_room(p, p->workers[i], e);
    for (size_t i = 0; i < p->results.count; i++)
        if (p->results.items[i].workers > room && !p->results.items[i].strategy->devices)
            return no_room(p, p->results.items[i].workers, e);
    return OK;
}

static int needs_network(const struct plan *p)
{
    for (int i = 0; i < p->worker_counts; i++)
        if (p->workers[i] > (p->slots ? p->slots[0] : p->per_host))
            return 1;
    return p->devices || p->servers > 0 || p->measured;
}

/* What is given with --resource-info and may not be. */
static int check_hosts(const struct plan *p, struct error *e)
{
    if (p->hosts_path && p->per_host)
        return error_set(e, ERR_ARG, "--resource-info and --ranks-per-host are both given; the file has the hosts");
    if (p->hosts_path && p->servers)
        return error_set(e, ERR_ARG,
                         "--resource-info and --servers are both given; plans with it have a server on each host");
    return OK;
}

static int check(struct plan *p, int ranks_given, struct error *e)
{
    int rc = check_hosts(p, e);

    if (rc == OK && p->hosts_path)
        rc = read_hosts(p, ranks_given, e);
    if (rc == OK && (!p->hosts_path || ranks_given))
        rc = parse_ranks(p, e);
    if (rc < 0)
        return rc;
    p->per_host += !p->per_host;
    if (!p->model == !p->parameters)
        return error_set(e, ERR_ARG, "give either --model or --parameters: what is to be trained");
    if (p->fit && p->measured)
        return error_set(e, ERR_ARG, "--measured and --fit are both given; --fit also compares");
    if (p->parameters && !(p->compute > 0) && !p->fit)
        return error_set(e, ERR_ARG, "--parameters needs --compute or --fit: there is no model to be measured");
    if (!(p->bandwidth > 0) && !p->fit && needs_network(p) && world_size(p->world) < 2)
        return error_set(e, ERR_ARG,
                         "how are hosts connected? give --bandwidth and --latency, or measure between two of them with "
                         "mpirun -n 2 --host A,B trainer plan ...; or give --ranks-per-host, if all ranks are on one");
    return OK;
}

static int read_results(struct plan *p, struct error *e)
{
    const char *path = p->fit ? p->fit : p->measured;
    struct buffer text = BUFFER_EMPTY;
    int rc;

    if (!path)
        return OK;
    if ((rc = file_read(path, FILE_MOST, &text, e)) == OK)
        rc = measured_parse(&p->results, buffer_text(&text), text.length, path, e);
    buffer_release(&text);
    return rc;
}

/* ---- the setting ------------------------------------------------------------------------------------------------- */

/* Tables, taken together: their rows, and those that a batch uses at most. */
static void find_tables(struct plan *p, const struct variable *v, size_t count)
{
    const struct model *m = model_find(p->model);
    const double tokens = (double)m->height * m->width * m->channels; /* of a sample */
    struct plan_rows *r = &p->planning.work.rows;

    for (size_t i = 0; i < count; i++) {
        if (!v[i].row_width)
            continue;
        r->rows += (double)(v[i].count / v[i].row_width);
        r->row_bytes = (double)v[i].row_width * sizeof(float);
        r->used += p->rows_used > 0 ? (double)p->rows_used : (double)p->batch_size * tokens;
    }
    if (r->used > r->rows)
        r->used = r->rows;
}

static int find_elements(struct plan *p, struct error *e)
{
    struct plan_work *w = &p->planning.work;
    const struct variable *v;
    size_t count;
    int rc;

    const int rounds = !strcmp(p->exchange, "bfloat16");

    w->elements = (size_t)p->parameters + 1;
    w->rounded = rounds ? (size_t)p->parameters : 0;
    if (!p->model)
        return OK;
    if ((rc = network_describe(&p->network, model_find(p->model), e)) < 0)
        return rc;
    v = network_variables(p->network, &count);
    if (!(p->variables = calloc(count + 1, sizeof *p->variables)))
        return error_memory(e, NULL, "for %zu variables", count);
    for (size_t i = 0; i < count; i++)
        if (!v[i].row_width) {
            const size_t from = network_exchange_place(p->network, &v[i]);

            p->variables[w->variable_count++] = (struct extent){ from, from + v[i].count };
        }
    find_tables(p, v, count);
    w->variables = p->variables;
    w->elements = network_exchange_count(p->network);
    w->rounded = rounds ? network_parameter_count(p->network) : 0;
    return OK;
}

/* Measured, given, or unknown: then any, since it is fitted. */
static int find_compute(struct plan *p, struct error *e)
{
    const double given = p->compute > 0 ? p->compute : 1;
    struct plan_work *w = &p->planning.work;
    char step[HUMAN_TEXT_MAX], least[HUMAN_TEXT_MAX], most[HUMAN_TEXT_MAX], threads[32] = "";
    int rc;

    if (p->batch_size % p->threads)
        return error_set(e, ERR_ARG, "--threads %d: a batch of %d cannot be cut into %d equal parts", (int)p->threads,
                         (int)p->batch_size, (int)p->threads);
    if (p->compute > 0 || p->fit) { /* backward multiplies about twice as much as forward */
        w->forward = given / 3;
        w->backward = given * 2 / 3;
        if (!p->fit || p->compute > 0)
            buffer_format(&p->about, "a step alone: %s ms, given\n", human_number(1e3 * given, step));
        return OK;
    }
    if (!(p->probe = calloc(1, sizeof *p->probe)))
        return error_memory(e, NULL, "to measure a step");
    if ((rc = probe_compute(p->probe, model_find(p->model), (int)p->batch_size, (int)p->threads, PROBE_SECONDS, e)) < 0)
        return rc;
    w->forward = p->probe->forward;
    w->backward = p->probe->backward;
    w->update = p->probe->update;
    w->finals = p->probe->finals;
    w->final_count = p->probe->final_count;
    if (p->threads > 1)
        snprintf(threads, sizeof threads, " in %d threads", (int)p->threads);
    buffer_format(&p->about, "a step alone%s: %s ms, the median of %d on this machine (%s to %s)\n", threads,
                  human_number(1e3 * (w->forward + w->backward + w->update), step), p->probe->steps,
                  human_number(1e3 * p->probe->least, least), human_number(1e3 * p->probe->most, most));
    return OK;
}

static int find_memory(struct plan *p, struct error *e)
{
    struct plan_machine *m = &p->planning.machine;
    char core[HUMAN_TEXT_MAX], all[HUMAN_TEXT_MAX];
    struct probe_memory memory;
    int rc;

    m->add = p->memory_bandwidth > 0 ? 1 / p->memory_bandwidth : 0;
    m->bus = p->memory_bandwidth > 0 ? p->memory_bandwidth : INFINITY;
    if (!(p->memory_bandwidth > 0) && !p->fit) { /* what is fitted was measured elsewhere */
        if ((rc = probe_memory(&memory, e)) < 0)
            return rc;
        m->add = memory.add;
        m->bus = memory.bus;
        buffer_format(&p->about, "adding: %s GB/s by one core, %s by the %d that it may use\n",
                      human_number(1e-9 / m->add, core), human_number(1e-9 * m->bus, all), memory.cores);
    }
    m->memory = (struct plan_link){ MEMORY_LATENCY, m->add > 0 ? 0.5 / m->add : INFINITY }; /* copied in and out */
    return OK;
}

/* Between the first and the last rank, if there are several and nothing is given. */
static int measure_network(struct plan *p, struct error *e)
{
    struct plan_machine *m = &p->planning.machine;
    char first[HUMAN_TEXT_MAX], second[HUMAN_TEXT_MAX], other[WORLD_NAME_MAX];
    const size_t largest = p->bucket_bytes ? (size_t)p->bucket_bytes : EXCHANGE_MOST_BYTES;
    struct probe_link l;
    int rc;

    if (p->bandwidth > 0 || p->fit || world_size(p->world) < 2)
        return OK;
    if ((rc = probe_link(&l, p->world, largest, e)) < 0 || world_rank(p->world) > 0)
        return rc;
    m->network = l.link;
    m->network.bandwidth = plan_wire_rate(l.link.bandwidth);
    m->message = l.message;
    world_name(p->world, world_size(p->world) - 1, other, sizeof other);
    buffer_format(&p->about, "network of a host: %s MB/s each way, latency %s us, ",
                  human_number(1e-6 * m->network.bandwidth, first), human_number(1e6 * l.link.latency, second));
    buffer_format(&p->about,
                  "%s us of\n  processor a message; measured to %s, one way:", human_number(1e6 * l.message, first),
                  other);
    for (int i = 0; i < PROBE_SIZES; i += PROBE_SIZES / 2)
        buffer_format(&p->about, "%s %s us for %s", i ? "," : "", human_number(1e6 * l.seconds[i], first),
                      human_bytes((uint64_t)l.bytes[i], second));
    buffer_append_byte(&p->about, '\n');
    return OK;
}

static int find_network(struct plan *p, struct error *e)
{
    struct plan_machine *m = &p->planning.machine;
    char latency[HUMAN_TEXT_MAX], bandwidth[HUMAN_TEXT_MAX];

    m->network = (struct plan_link){ p->latency, p->bandwidth };
    m->message = MESSAGE_SECONDS;
    m->cores = (int)p->cores;
    m->devices = p->devices;
    if (p->bandwidth > 0)
        buffer_format(&p->about, "network of a host: %s MB/s each way, latency %s us, given\n",
                      human_number(1e-6 * p->bandwidth, bandwidth), human_number(1e6 * p->latency, latency));
    return measure_network(p, e);
}

static int plan_set_up(struct plan *p, struct error *e)
{
    struct plan_work *w = &p->planning.work;
    int rc;

    w->apart = !strcmp(p->aggregation, "off");
    if (!p->batch_size)
        p->batch_size = recipe_find(p->model ? p->model : "")->batch_size;
    w->batch = (double)p->batch_size;
    w->bucket_bytes = (size_t)p->bucket_bytes;
    w->overlap = p->overlap;
    p->planning.per_host = (int)p->per_host;
    p->planning.servers = (int)p->servers;
    p->planning.global_batch = (double)p->global_batch;
    if ((rc = find_elements(p, e)) < 0)
        return rc;
    buffer_format(&p->about, "%s: %zu weights; ", p->model ? p->model : "a model", w->elements - 1);
    if (p->global_batch)
        buffer_format(&p->about, "a step has %" PRId64 " samples, shared by all workers\n", p->global_batch);
    else
        buffer_format(&p->about, "a step of a worker has %" PRId64 " samples\n", p->batch_size);
    if ((rc = find_network(p, e)) < 0 || world_rank(p->world) > 0)
        return rc; /* what is only rank 0's is measured while the others sleep */
    return (rc = find_compute(p, e)) < 0 ? rc : find_memory(p, e);
}

/* ---- the rows ---------------------------------------------------------------------------------------------------- */

/* 1: so many threads have a host. */
static int has_place(const struct plan *p, const struct plan_strategy *strategy, int workers)
{
    int most = 0;

    for (size_t i = 0; i < p->planning.slot_count; i++)
        most = p->slots[i] > most ? p->slots[i] : most;
    return !p->slots || !strategy->devices || workers <= most;
}

static int is_wanted(const struct plan *p, const struct plan_strategy *strategy)
{
    const size_t n = strlen(strategy->name);

    for (const char *at = p->strategies; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (!strncmp(at, strategy->name, n) && (at[n] == ',' || at[n] == '\0'))
            return 1;
    return !p->strategies && (!strategy->rows || p->planning.work.rows.rows > 0);
}

static double measured_steps(const struct measured *m, const struct plan_strategy *strategy, int workers)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->items[i].strategy == strategy && m->items[i].workers == workers)
            return m->items[i].steps;
    return 0;
}

/* The wanted rows, with what was measured of them. With --measured but without --ranks: what was measured. */
static int add_rows(struct plan *p, int ranks_given, struct error *e)
{
    int rc = OK;

    for (size_t i = 0; plan_strategies[i] && rc == OK; i++)
        for (int k = 0; k < p->worker_counts && rc == OK && (ranks_given || !p->measured); k++)
            if (is_wanted(p, plan_strategies[i]) && has_place(p, plan_strategies[i], p->workers[k]))
                rc = planning_add(&p->planning, plan_strategies[i], p->workers[k],
                                  measured_steps(&p->results, plan_strategies[i], p->workers[k]), e);
    for (size_t i = 0; i < p->results.count && rc == OK && !ranks_given; i++)
        if (is_wanted(p, p->results.items[i].strategy))
            rc = planning_add(&p->planning, p->results.items[i].strategy, p->results.items[i].workers,
                              p->results.items[i].steps, e);
    return rc;
}

static int make_rows(struct plan *p, int ranks_given, struct error *e)
{
    const struct planning_free what = { .compute = !(p->compute > 0),
                                        .bandwidth = !(p->bandwidth > 0),
                                        .points = (int)p->fit_points };

    if (p->fit)
        return planning_fit(&p->planning, &what, &p->results, p->workers, ranks_given ? p->worker_counts : 0, &p->about,
                            e);
    return add_rows(p, ranks_given, e);
}

static int plan_print(const struct plan *p, struct error *e)
{
    const struct planning *all = &p->planning;
    struct buffer out = BUFFER_EMPTY;
    int rc = OK;

    if (!strcmp(p->format, "csv")) {
        plan_table_csv(&out, all->rows, all->count);
    } else if (!strcmp(p->format, "json")) {
        buffer_append_text(&out, "{\"type\":\"trainer-plan\",\"version\":1,\"about\":");
        json_text(&out, buffer_text(&p->about));
        buffer_append_text(&out, ",\"rows\":");
        plan_table_json(&out, all->rows, all->count);
        buffer_append_text(&out, "}\n");
    } else {
        buffer_append(&out, p->about.data, p->about.length);
        buffer_append_byte(&out, '\n');
        plan_table_text(&out, all->rows, all->count, terminal_columns(STDOUT_FILENO), !terminal_utf8());
    }
    if (!buffer_ok(&out) || p->about.failed)
        rc = error_memory(e, NULL, "for %zu rows", all->count);
    else if (fwrite(buffer_text(&out), 1, out.length, stdout) != out.length || fflush(stdout) != 0)
        rc = error_system(e, "standard output");
    buffer_release(&out);
    return rc;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static const char *strategy_choices(char *out, size_t size)
{
    size_t used = 0;

    for (size_t i = 0; plan_strategies[i] && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", i ? "|" : "", plan_strategies[i]->name);
    return out;
}

static void plan_release(struct plan *p)
{
    planning_release(&p->planning);
    measured_release(&p->results);
    network_free(p->network);
    free(p->variables);
    free(p->slots);
    free(p->probe);
    buffer_release(&p->about);
}

/* On all ranks that mpirun started; rank 0 prints. */
static int plan_run(struct plan *p, int ranks_given, struct error *e)
{
    int rc = world_open(&p->world, PLAN_DEADLINE, e);

    if (rc == OK && (rc = check(p, ranks_given, e)) == OK && (rc = read_results(p, e)) == OK &&
        (rc = check_room(p, e)) == OK && (rc = plan_set_up(p, e)) == OK && world_rank(p->world) == 0 &&
        (rc = make_rows(p, ranks_given, e)) == OK)
        rc = plan_print(p, e);
    if (p->world && !world_lost(p->world))
        rc = world_agree(p->world, "end its plan", rc, e);
    if (!p->world || world_lost(p->world)) {
        log_line(&p->log, "%s", e->message);
        world_abort(p->world, EXIT_USAGE);
    }
    world_close(p->world);
    return rc;
}

/* Adds what is trained. */
static size_t add_what_rows(struct option *t, size_t at, struct plan *p)
{
    const struct option rows[] = {
        { OPTION_HEADING, .help = "What is trained:" },
        { OPTION_CHOICE, .name = "model", .value = &p->model, .argument = "NAME",
          .choices = options_choices(model_names(), p->models, sizeof p->models),
          .help = "Plan for this model, of which a step is measured alone on this machine unless --compute is given." },
        { OPTION_INT, .name = "parameters", .value = &p->parameters, .argument = "N", .minimum = 1, .maximum = 1e10,
          .help = "Plan for a model of N weights instead, with --compute or --fit." },
        { OPTION_INT, .name = "batch-size", .value = &p->batch_size, .argument = "N", .minimum = 1, .maximum = 1 << 20,
          .help = "Give each worker N samples a step. Default: the model's." },
        { OPTION_INT, .name = "threads", .value = &p->threads, .argument = "N", .minimum = 1, .maximum = 1024,
          .help =
              "Measure a step of a worker that computes in N threads, as the trainer's --threads does. Default: 1." },
        { OPTION_INT, .name = "rows-used", .value = &p->rows_used, .argument = "N", .minimum = 1, .maximum = 1e9,
          .help = "Let the batch of a worker use N different rows of a table, with hybrid and other ways that send "
                  "rows. Default: as many as it has tokens, which is the most." },
        { OPTION_INT, .name = "global-batch", .value = &p->global_batch, .argument = "N", .minimum = 1,
          .maximum = 1 << 26,
          .help = "Give all workers together N samples a step: the time of --batch-size samples, measured or given, is "
                  "divided." },
        { OPTION_DOUBLE, .name = "compute", .value = &p->compute, .argument = "SECONDS", .minimum = 1e-9,
          .maximum = 1e6,
          .help =
              "Take SECONDS for forward and backward of --batch-size samples on one worker, instead of measuring." },
    };

    memcpy(t + at, rows, sizeof rows);
    return at + sizeof rows / sizeof *rows;
}

/* Adds how, and on what machines. */
static size_t add_where_rows(struct option *t, size_t at, struct plan *p)
{
    const struct option rows[] = {
        { OPTION_HEADING, .help = "How, and on what:" },
        { OPTION_CHOICES, .name = "strategies", .value = &p->strategies, .argument = "NAME[,NAME...]",
          .choices = strategy_choices(p->choices, sizeof p->choices), .help = "Plan these strategies. Default: all." },
        { OPTION_TEXT, .name = "ranks", .value = &p->ranks, .argument = "N[,N...]",
          .help = "Plan for these numbers of workers. Default: 1,2,4,...,1024; with --measured or --fit those "
                  "measured." },
        { OPTION_INT, .name = "ranks-per-host", .value = &p->per_host, .argument = "G", .minimum = 1, .maximum = 65536,
          .help = "Put G workers on each host. Default: 1." },
        { OPTION_TEXT, .name = "resource-info", .value = &p->hosts_path, .argument = "FILE",
          .help = "Plan for the hosts listed in FILE, filled one after the other, as the trainer's option of that name "
                  "does; with a server on each, where there are servers. --ranks is then by default 1 and the workers "
                  "of the first 1, 2, 4, ... and of all hosts." },
        { OPTION_INT, .name = "servers", .value = &p->servers, .argument = "K", .minimum = 1, .maximum = 1000,
          .help = "Use K parameter servers, each on a host of its own unless all ranks fit on one. Default: one on "
                  "each host of workers." },
        { OPTION_CHOICE, .name = "local-aggregation", .value = &p->aggregation, .argument = "NAME",
          .choices = "auto|off",
          .help = "Let the workers of a host exchange with servers together if there are several hosts (auto, the "
                  "default), or each for itself (off), as the trainer's option of that name." },
        { OPTION_DOUBLE, .name = "bandwidth", .value = &p->bandwidth, .argument = "BYTES/S", .minimum = 1,
          .maximum = 1e15,
          .help = "Let a host send BYTES/S, and get as much at the same time, headers of Ethernet, IP and TCP "
                  "included: 1.25e9 for 10 Gbit/s." },
        { OPTION_DOUBLE, .name = "latency", .value = &p->latency, .argument = "SECONDS", .minimum = 0, .maximum = 100,
          .help = "Let a message take SECONDS more than its bytes do. Default: 0." },
        { OPTION_DOUBLE, .name = "memory-bandwidth", .value = &p->memory_bandwidth, .argument = "BYTES/S", .minimum = 1,
          .maximum = 1e15,
          .help = "Let a host add BYTES/S in memory, by one core or all. Default: measured on this machine; with "
                  "--fit adding is part of what is computed." },
        { OPTION_INT, .name = "cores", .value = &p->cores, .argument = "N", .minimum = 1, .maximum = 65536,
          .help = "Let the workers of a host share N cores. Default: each has one." },
        { OPTION_FLAG, .name = "devices", .value = &p->devices,
          .help = "Take the threads of mirrored for devices with memory of their own, such as GPUs, joined by links of "
                  "--bandwidth." },
        { OPTION_FLAG, .name = "overlap", .value = &p->overlap,
          .help = "Send gradients while backward goes on (default), or with --no-overlap after it." },
        { OPTION_CHOICE, .name = "exchange", .value = &p->exchange, .argument = "NAME", .choices = "float32|bfloat16",
          .help = "Send gradients in messages as float32 (the default), or rounded to bfloat16." },
        { OPTION_INT, .name = "bucket-bytes", .value = &p->bucket_bytes, .argument = "N", .minimum = 64,
          .maximum = 1 << 30,
          .help = "Exchange gradients in pieces of N bytes. Default: as the trainer, by the size of the "
                  "model." },
    };

    memcpy(t + at, rows, sizeof rows);
    return at + sizeof rows / sizeof *rows;
}

/* Adds measurements, and how to print. */
static size_t add_measurement_rows(struct option *t, size_t at, struct plan *p)
{
    const struct option rows[] = {
        { OPTION_HEADING, .help = "Measurements:" },
        { OPTION_TEXT, .name = "measured", .value = &p->measured, .argument = "FILE",
          .help = "Print what was measured beside what is predicted: the CSV or JSON of trainer compare, or CSV with "
                  "the columns strategy, ranks and steps_per_second." },
        { OPTION_TEXT, .name = "fit", .value = &p->fit, .argument = "FILE",
          .help = "Find --compute and --bandwidth, unless given, from the first measurements of each strategy in FILE, "
                  "and predict the others." },
        { OPTION_INT, .name = "fit-points", .value = &p->fit_points, .argument = "N", .minimum = 1, .maximum = 64,
          .help = "Fit to the first N measurements of each strategy. Default: 2." },
        { OPTION_CHOICE, .name = "format", .value = &p->format, .argument = "NAME", .choices = "text|csv|json",
          .help = "Print a table (text, the default), CSV or JSON." },
    };

    memcpy(t + at, rows, sizeof rows);
    return at + sizeof rows / sizeof *rows;
}

int command_plan(int argc, char **argv)
{
    struct plan p = { .ranks = "1,2,4,8,16,32,64,128,256,512,1024",
                      .format = "text",
                      .aggregation = "auto",
                      .exchange = "float32",
                      .fit_points = 2,
                      .threads = 1,
                      .overlap = 1 };
    struct option table[OPTION_ROWS];
    const struct options options = {
        .program = "trainer plan",
        .usage = "--model NAME --latency SECONDS --bandwidth BYTES/S [OPTION...]",
        .summary =
            "Predict how fast each strategy trains on 1 to 1024 workers: milliseconds a step, samples a second, "
            "efficiency beside one worker alone, bytes a step on the busiest link, and what limits: compute, "
            "wire, latency, adding, or a server. The model follows what the trainer sends, and when; docs/plan.md "
            "explains it, and names what it leaves out. Exit status: 0 done, 2 wrong usage or input.",
        .examples = examples,
        .table = table,
        .count = add_measurement_rows(table, add_where_rows(table, add_what_rows(table, 0, &p), &p), &p),
    };
    struct error e = { 0 };
    int count = 0, rc;

    log_init(&p.log, "trainer plan", STDERR_FILENO);
    if ((rc = options_parse(&options, argc, argv, &count, &e)) == OPTIONS_RUN && count > 0)
        rc = error_set(&e, ERR_ARG, "'%s' is no option; 'trainer plan --help' lists them", argv[1]);
    if (rc == OPTIONS_RUN)
        rc = plan_run(&p, options_given(&options, "ranks"), &e);
    if (rc < 0)
        log_line(&p.log, "%s", e.message);
    plan_release(&p);
    return rc < 0 ? EXIT_USAGE : EXIT_DONE;
}
