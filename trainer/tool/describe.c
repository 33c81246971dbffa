/* trainer describe: the layers of a model as a table, as JSON, or as a model file. */
#include "base/buffer.h"
#include "base/json.h"
#include "base/program/log.h"
#include "base/program/subcommand.h"
#include "base/program/table.h"
#include "base/program/terminal.h"
#include "model/file/model_file.h"
#include "model/file/model_print.h"
#include "model/file/recipe.h"
#include "model/layer_call.h"
#include "model/network.h"
#include "trainer/tool/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct table_column columns[] = {
    { .title = "layer" },
    { .title = "name", .cut = 12 },
    { .title = "gives", .right = 1 },
    { .title = "parameters", .right = 1 },
    { .title = "MACs", .right = 1 },
    { .title = "how", .cut = 16, .leave_out = 1 },
};

struct description {
    int json;
    const char *format, *input;
    int64_t classes;
    struct model_file *file;
    struct network *network;
    const struct recipe *recipe;
};

static void print_table(const struct description *d, struct buffer *out)
{
    const struct model *m = network_model(d->network);
    size_t count;
    const struct network_call *calls = network_calls(d->network, &count);
    double multiplications = 0;
    struct table t;

    table_init(&t, columns, sizeof columns / sizeof *columns);
    for (size_t k = 0; k < count; k++) {
        struct buffer how = BUFFER_EMPTY;

        model_print_parameters(&how, &calls[k]);
        table_cell(&t, "%s", calls[k].kind->name);
        table_cell(&t, "%s", calls[k].name);
        table_cell(&t, "%dx%dx%d", calls[k].height, calls[k].width, calls[k].channels);
        table_cell(&t, "%zu", calls[k].parameters);
        table_cell(&t, "%.0f", calls[k].multiplications);
        table_cell(&t, "%s", how.length ? buffer_text(&how) + 1 : "");
        multiplications += calls[k].multiplications;
        buffer_release(&how);
    }
    table_print(&t, 0, terminal_columns(STDOUT_FILENO), 0, out);
    table_release(&t);
    buffer_format(out, "\n%s: input %dx%dx%d, %d classes, %zu parameters", m->name, m->height, m->width, m->channels,
                  m->classes, network_parameter_count(d->network));
    if (network_statistic_count(d->network))
        buffer_format(out, " and %zu moving statistics", network_statistic_count(d->network));
    buffer_format(out, ", %.0f MACs forward\n", multiplications);
}

static void print_json(const struct description *d, struct buffer *out)
{
    const struct model *m = network_model(d->network);
    size_t count;
    const struct network_call *calls = network_calls(d->network, &count);
    double multiplications = 0;

    for (size_t k = 0; k < count; k++)
        multiplications += calls[k].multiplications;
    buffer_append_text(out, "{\"model\":");
    json_text(out, m->name);
    buffer_format(out, ",\"input\":[%d,%d,%d],\"classes\":%d,\"parameters\":%zu,\"statistics\":%zu,\"macs\":%.0f",
                  m->height, m->width, m->channels, m->classes, network_parameter_count(d->network),
                  network_statistic_count(d->network), multiplications);
    buffer_append_text(out, ",\"layers\":[");
    for (size_t k = 0; k < count; k++) {
        buffer_append_text(out, k ? ",\n{\"layer\":" : "\n{\"layer\":");
        json_text(out, calls[k].kind->name);
        buffer_append_text(out, ",\"name\":");
        json_text(out, calls[k].name);
        buffer_format(out, ",\"shape\":[%d,%d,%d],\"parameters\":%zu,\"statistics\":%zu,\"macs\":%.0f}",
                      calls[k].height, calls[k].width, calls[k].channels, calls[k].parameters, calls[k].statistics,
                      calls[k].multiplications);
    }
    buffer_append_text(out, "]}\n");
}

/* "28x28x1" */
static int complete(struct description *d, struct error *e)
{
    int shape[3] = { 0, 0, 0 }, end = 0;

    if (d->input && (sscanf(d->input, "%5dx%5dx%5d%n", &shape[0], &shape[1], &shape[2], &end) != 3 || d->input[end] ||
                     shape[0] < 1 || shape[1] < 1 || shape[2] < 1))
        return error_set(e, ERR_ARG, "--input: '%s' is not HEIGHTxWIDTHxCHANNELS", d->input);
    model_file_complete(d->file, shape[0], shape[1], shape[2], (int)d->classes);
    return model_file_check_complete(d->file, e);
}

static int open_model(struct description *d, const char *name, struct error *e)
{
    const struct model *m = model_file_is_path(name) ? NULL : model_find(name);
    int rc = OK;

    if (!m && !model_file_is_path(name)) {
        const char *const *names = model_names(), *near;
        size_t count = 0;
        char all[256];

        while (names[count])
            count++;
        near = options_nearest(name, names, count);
        return error_set(e, ERR_ARG, "'%s' is neither a model (%s) nor a path%s%s%s", name,
                         options_choices(names, all, sizeof all), near ? " (did you mean " : "", near ? near : "",
                         near ? "?)" : "");
    }
    d->recipe = m ? recipe_find(name) : NULL;
    if (!m && (rc = model_file_open(&d->file, name, e)) == OK && (rc = complete(d, e)) == OK) {
        m = &d->file->model;
        d->recipe = &d->file->recipe;
    }
    return rc == OK ? network_describe(&d->network, m, e) : rc;
}

int command_describe(int argc, char **argv)
{
    struct description d = { .format = "table" };
    struct option table[] = {
        { OPTION_CHOICE, .name = "format", .value = &d.format, .argument = "FORMAT", .choices = "table|model",
          .help = "Print a table of layers (default), or the model as a file for --model." },
        { OPTION_FLAG, .name = "json", .value = &d.json,
          .help = "Print one JSON object: parameters, macs (multiply-adds forward of one sample), layers." },
        { OPTION_TEXT, .name = "input", .value = &d.input, .argument = "SHAPE",
          .help = "Use this input, HEIGHTxWIDTHxCHANNELS, if a model file leaves it to the data." },
        { OPTION_INT, .name = "classes", .value = &d.classes, .argument = "N", .minimum = 1, .maximum = 65536,
          .help = "Use N classes if a model file leaves them to the data." },
    };
    const struct options options = {
        .program = "trainer describe",
        .usage = "[OPTION...] MODEL",
        .summary = "Show the layers of a built-in model or a model file: the shape that each gives, its parameters and "
                   "its multiply-adds.",
        .examples = "  trainer describe lenet\n  trainer describe resnet32 --format=model > net.model\n"
                    "  trainer describe net.model --input 28x28x1 --classes 10 --json\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 1,
        .most = 1,
        .wanted = "which model?",
    };
    struct buffer out = BUFFER_EMPTY;
    struct error e = { 0 };
    struct log log;
    int count = 0, rc;

    log_init(&log, "trainer describe", STDERR_FILENO);
    if ((rc = options_parse(&options, argc, argv, &count, &e)) == OPTIONS_DONE)
        return EXIT_DONE;
    if (rc == OPTIONS_RUN)
        rc = open_model(&d, argv[1], &e);
    if (rc == OK) {
        if (d.json)
            print_json(&d, &out);
        else if (!strcmp(d.format, "model"))
            model_print(&out, d.network, d.recipe);
        else
            print_table(&d, &out);
        if (!buffer_ok(&out))
            rc = error_memory(&e, NULL, "to describe it");
    }
    if (rc == OK && (fputs(buffer_text(&out), stdout) < 0 || fflush(stdout)))
        rc = error_system(&e, "standard output");
    buffer_release(&out);
    network_free(d.network);
    model_file_free(d.file);
    if (rc < 0)
        log_line(&log, "%s", e.message);
    return rc < 0 ? EXIT_USAGE : EXIT_DONE;
}
