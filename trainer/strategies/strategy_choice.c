#include "trainer/strategies/strategy_choice.h"

#include "trainer/collective/exchange.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* "Train on one rank (single, the default); on ranks that ... (mpi); or on workers, ... (ps)." */
static void write_help(struct strategy_choice *c)
{
    const size_t size = sizeof c->help;
    size_t used = (size_t)snprintf(c->help, size, "Train ");

    for (size_t i = 0; c->kinds[i] && used < size; i++)
        used += (size_t)snprintf(c->help + used, size - used, "%s%s%s (%s%s)", i ? "; " : "",
                                 i && !c->kinds[i + 1] ? "or " : "", c->kinds[i]->help, c->kinds[i]->name,
                                 i ? "" : ", the default");
    if (used < size)
        snprintf(c->help + used, size - used, ".");
}

void strategy_choice_init(struct strategy_choice *c, const struct strategy_kind *const *kinds)
{
    const char *names[STRATEGY_KINDS + 1] = { NULL };

    memset(c, 0, sizeof *c);
    c->kinds = kinds;
    c->name = kinds[0]->name;
    for (size_t i = 0; kinds[i]; i++) {
        names[i] = kinds[i]->name;
        c->counts[i] = kinds[i]->options ? kinds[i]->options(c->rows[i], c->own[i].bytes) : 0;
        assert(c->counts[i] <= STRATEGY_ROWS);
    }
    options_choices(names, c->names, sizeof c->names);
    write_help(c);
}

/* The kind's option of that name; NULL: it has none. */
static const struct option *row_of(const struct strategy_choice *c, size_t kind, const char *name)
{
    for (size_t i = 0; i < c->counts[kind]; i++)
        if (!strcmp(c->rows[kind][i].name, name))
            return &c->rows[kind][i];
    return NULL;
}

/* 1: a kind before this one has an option of that name. */
static int is_repeated(const struct strategy_choice *c, size_t kind, const char *name)
{
    while (kind-- > 0)
        if (row_of(c, kind, name))
            return 1;
    return 0;
}

size_t strategy_choice_rows(struct strategy_choice *c, struct option *table)
{
    size_t count = 0;

    table[count++] = (struct option){ OPTION_CHOICE,     .name = "run-option", .value = &c->name,
                                      .argument = "HOW", .choices = c->names,  .help = c->help };
    for (size_t k = 0; c->kinds[k]; k++)
        for (size_t i = 0; i < c->counts[k]; i++)
            if (!is_repeated(c, k, c->rows[k][i].name))
                table[count++] = c->rows[k][i];
    return count;
}

static size_t value_size(const struct option *o)
{
    switch (o->kind) {
    case OPTION_FLAG: return sizeof(int);
    case OPTION_INT:
    case OPTION_COUNT: return sizeof(int64_t);
    case OPTION_DOUBLE: return sizeof(double);
    case OPTION_TEXT:
    case OPTION_CHOICE:
    case OPTION_CHOICE_OR_PATH:
    case OPTION_CHOICES: return sizeof(const char *);
    case OPTION_LIST: return sizeof(struct option_list);
    case OPTION_HEADING: break;
    }
    return 0;
}

static uint64_t hash_of(const struct option *o, uint64_t h)
{
    const char *const *text = o->value;

    if (o->kind != OPTION_TEXT && o->kind != OPTION_CHOICE && o->kind != OPTION_CHOICES)
        return exchange_hash(o->value, value_size(o), h);
    return *text ? exchange_hash(*text, strlen(*text) + 1, h) : h;
}

/* The names of the strategies that have the option: "ps", "ps or hybrid". */
static const char *takers(const struct strategy_choice *c, const char *option, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t k = 0; c->kinds[k] && used < size; k++)
        if (row_of(c, k, option))
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? " or " : "", c->kinds[k]->name);
    return text;
}

/* Gives the chosen kind's option the value that was read into the row that stands for all of that name. */
static int take_value(const struct strategy_choice *c, size_t chosen, const struct option *parsed, struct error *e)
{
    const struct option *own = row_of(c, chosen, parsed->name);
    char names[sizeof c->names];

    if (!own)
        return error_set(e, ERR_ARG, "--%s needs --run-option %s, not %s", parsed->name,
                         takers(c, parsed->name, names, sizeof names), c->name);
    assert(own->kind == parsed->kind);
    if (own->value != parsed->value)
        memcpy(own->value, parsed->value, value_size(own));
    return OK;
}

static int is_of_a_kind(const struct strategy_choice *c, const char *name)
{
    for (size_t k = 0; c->kinds[k]; k++)
        if (row_of(c, k, name))
            return 1;
    return 0;
}

int strategy_choice_resolve(struct strategy_choice *c, const struct options *parsed, struct strategy_options *out,
                            struct error *e)
{
    struct strategy_servers *servers;
    size_t chosen = 0;

    while (strcmp(c->kinds[chosen]->name, c->name) != 0) /* one of the table's names */
        chosen++;
    for (size_t i = 0; i < parsed->count; i++) {
        const struct option *o = &parsed->table[i];

        if (o->given && o->name && is_of_a_kind(c, o->name) && take_value(c, chosen, o, e) < 0)
            return ERR_ARG;
    }
    *out = (struct strategy_options){
        .kind = c->kinds[chosen], .own = c->own[chosen], .synchronous = 1, .fingerprint = EXCHANGE_HASH_SEED
    };
    for (size_t i = 0; i < c->counts[chosen]; i++)
        out->fingerprint = hash_of(&c->rows[chosen][i], out->fingerprint);
    snprintf(out->label, sizeof out->label, "%s", out->kind->name);
    if (out->kind->resolve)
        out->kind->resolve(out);
    servers = out->kind->servers ? out->kind->servers(out) : NULL;
    if (servers)
        servers->given = options_given(parsed, "servers");
    if (servers && servers->given && servers->per_host)
        return error_set(e, ERR_ARG, "--servers and --servers-per-host are both given; use one");
    return OK;
}
