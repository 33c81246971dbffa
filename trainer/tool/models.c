/* trainer models: the built-in models, and with --reference all that a model file may say. */
#include "base/buffer.h"
#include "base/human.h"
#include "base/program/log.h"
#include "base/program/subcommand.h"
#include "base/program/table.h"
#include "base/program/terminal.h"
#include "model/file/model_print.h"
#include "model/file/recipe.h"
#include "model/network.h"
#include "trainer/tool/command.h"

#include <stdio.h>
#include <unistd.h>

static const struct table_column columns[] = {
    { .title = "model" },
    { .title = "input", .right = 1 },
    { .title = "classes", .right = 1 },
    { .title = "parameters", .right = 1 },
    { .title = "optimizer", .leave_out = 2 },
    { .title = "batch", .right = 1, .leave_out = 1 },
};

static int list(struct buffer *out, struct error *e)
{
    struct table t;
    int rc = OK;

    table_init(&t, columns, sizeof columns / sizeof *columns);
    for (const char *const *name = model_names(); *name && rc == OK; name++) {
        const struct model *m = model_find(*name);
        const struct recipe *r = recipe_find(*name);
        struct network *n;

        if ((rc = network_describe(&n, m, e)) < 0)
            break;
        table_cell(&t, "%s", *name);
        table_cell(&t, "%dx%dx%d", m->height, m->width, m->channels);
        table_cell(&t, "%d", m->classes);
        table_cell(&t, "%zu", network_parameter_count(n));
        table_cell(&t, "%s", r->optimizer);
        table_cell(&t, "%d", r->batch_size);
        network_free(n);
    }
    table_print(&t, 0, terminal_columns(STDOUT_FILENO), 0, out);
    table_release(&t);
    return rc;
}

int command_models(int argc, char **argv)
{
    int reference = 0, count = 0, rc;
    struct option table[] = {
        { OPTION_FLAG, .name = "reference", .value = &reference,
          .help = "Explain every layer and setting of a model file instead, with its parameters and defaults." },
    };
    const struct options options = {
        .program = "trainer models",
        .usage = "[OPTION...]",
        .summary = "List the built-in models. 'trainer describe NAME' shows the layers of one.",
        .examples = "  trainer models\n  trainer models --reference\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .most = 1,
        .wanted = "no arguments are needed;",
    };
    struct buffer out = BUFFER_EMPTY;
    struct error e = { 0 };
    struct log log;

    log_init(&log, "trainer models", STDERR_FILENO);
    rc = options_parse(&options, argc, argv, &count, &e);
    if (rc == OPTIONS_DONE)
        return EXIT_DONE;
    if (rc == OPTIONS_RUN && count > 0)
        rc = error_set(&e, ERR_ARG, "'%s': no argument is expected; 'trainer describe' shows one model", argv[1]);
    else if (rc == OPTIONS_RUN && reference)
        model_print_reference(&out);
    else if (rc == OPTIONS_RUN)
        rc = list(&out, &e);
    if (rc == OK && !buffer_ok(&out))
        rc = error_memory(&e, NULL, "to list the models");
    if (rc == OK && (fputs(buffer_text(&out), stdout) < 0 || fflush(stdout)))
        rc = error_system(&e, "standard output");
    buffer_release(&out);
    if (rc < 0)
        log_line(&log, "%s", e.message);
    return rc < 0 ? EXIT_USAGE : EXIT_DONE;
}
