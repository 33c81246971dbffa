/* Programs of several commands: which one runs, what is printed, what is suggested; and how a table describes itself. */

#include "base/program/subcommand.h"
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a call prints on standard output and standard error, and what it returned. */
struct outcome {
    int status;
    char out[4096], err[4096];
};

static int run_alpha(int argc, char **argv)
{
    int64_t steps = 1;
    const char *axes = "x", *order = "up";
    struct option table[] = {
        { .kind = OPTION_HEADING, .help = "How much:" },
        { .kind = OPTION_INT, .letter = 'n', .name = "steps", .value = &steps, .argument = "N", .help = "so many" },
        { .kind = OPTION_CHOICE, .name = "order", .value = &order, .help = "a \"word\"", .choices = "up|down" },
        { .kind = OPTION_CHOICES, .name = "axes", .value = &axes, .help = "some", .choices = "x|yy" },
    };
    const struct options o = {
        .program = "tool alpha",
        .usage = "[OPTION...] PATH",
        .summary = "Does it.",
        .examples = "  tool alpha x\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 1,
        .most = 2,
        .wanted = "one or two paths;",
    };
    struct error e = { 0 };
    int count = 0, rc = options_parse(&o, argc, argv, &count, &e);

    if (rc == OPTIONS_DONE)
        return EXIT_DONE;
    if (rc != OK)
        fprintf(stderr, "%s\n", e.message);
    return rc != OK ? EXIT_USAGE : 40 + count;
}

static int run_rename(int argc, char **argv)
{
    const struct options o = { .program = "tool rename-tag", .usage = "", .summary = "Renames." };
    struct error e = { 0 };
    int count = 0;

    return options_parse(&o, argc, argv, &count, &e) == OPTIONS_DONE ? EXIT_DONE : 50;
}

static const struct subcommand commands[] = {
    { "alpha", "the first", run_alpha },
    { "rename-tag", "the second", run_rename },
};
static const struct options tool = {
    .program = "tool",
    .usage = "COMMAND",
    .summary = "Has commands.",
    .examples = "  tool alpha x\n",
    .commands = commands,
    .command_count = 2,
};

static void put_back(int fd, int kept, FILE *file, char *text, size_t room)
{
    size_t n;

    dup2(kept, fd);
    close(kept);
    rewind(file);
    n = fread(text, 1, room - 1, file);
    text[n] = '\0';
    fclose(file);
}

static struct outcome run(const char *line)
{
    struct outcome o = { .status = -1 };
    char words[256], *argv[16], *state = NULL;
    int argc = 0, out = dup(1), err = dup(2);
    FILE *out_file = tmpfile(), *err_file = tmpfile();

    assert_true(out_file && err_file && out >= 0 && err >= 0);
    snprintf(words, sizeof words, "%s", line);
    for (char *word = strtok_r(words, " ", &state); word; word = strtok_r(NULL, " ", &state))
        argv[argc++] = word;
    argv[argc] = NULL;
    fflush(stdout);
    dup2(fileno(out_file), 1);
    dup2(fileno(err_file), 2);
    o.status = subcommand_main(&tool, argc, argv);
    fflush(stdout);
    put_back(1, out, out_file, o.out, sizeof o.out);
    put_back(2, err, err_file, o.err, sizeof o.err);
    return o;
}

static void test_dispatch(void **state)
{
    static const struct {
        const char *line;
        int status;
        const char *out, *err;
    } cases[] = {
        { "tool alpha x", 41, "", "" },
        { "tool alpha -n 3 x y", 42, "", "" },
        { "tool alpha", EXIT_USAGE, "", "one or two paths; run 'tool alpha --help' for help" },
        { "tool alpha x y z", EXIT_USAGE, "", "one or two paths;" },
        { "tool alpha -- --help", 41, "", "" },
        { "tool alpha --axes x,yy p", 41, "", "" },
        { "tool alpha --axes x,y p", EXIT_USAGE, "", "--axes: 'y' is not one of x|yy (did you mean x?)" },
        { "tool alpha --order UP p", 41, "", "" },
        { "tool alpha --order=Down p", 41, "", "" },
        { "tool alpha --order UPP p", EXIT_USAGE, "", "--order: 'UPP' is not one of up|down" },
        { "tool alpha --axes X p", EXIT_USAGE, "", "--axes: 'X' is not one of x|yy" },
        { "tool rename x", EXIT_USAGE, "", "unknown command 'rename' (did you mean rename-tag?)" },
        { "tool diff x", EXIT_USAGE, "", "unknown command 'diff'" },
        { "tool alpha --axes x, p", EXIT_USAGE, "", "--axes: '' is not one of x|yy" },
        { "tool alpha --help", EXIT_DONE, "      --axes x|yy[,...]           some\n", "" },
        { "tool rename-tag x", 50, "", "" },
        { "tool", EXIT_USAGE, "", "tool: no command; 'tool --help' lists them" },
        { "tool rename-tga", EXIT_USAGE, "", "unknown command 'rename-tga' (did you mean rename-tag?)" },
        { "tool --setps", EXIT_USAGE, "", "unknown option --setps" },
        { "tool --help", EXIT_DONE, "usage: tool COMMAND\n", "" },
        { "tool -h", EXIT_DONE, "  alpha       the first\n  rename-tag  the second\n", "" },
        { "tool help", EXIT_DONE, "examples:\n  tool alpha x\n", "" },
        { "tool help alpha", EXIT_DONE, "usage: tool alpha [OPTION...] PATH\n", "" },
        { "tool help alhpa", EXIT_USAGE, "", "(did you mean alpha?)" },
        { "tool --version", EXIT_DONE, "tool (evalboard) ", "" },
        { "tool alpha --version", EXIT_DONE, "tool alpha (evalboard) ", "" },
        { "tool -V", EXIT_DONE, "tool (evalboard) ", "" },
        { "tool alpha -V", EXIT_DONE, "tool alpha (evalboard) ", "" },
        { "tool -- alpha", EXIT_USAGE, "", "unknown command 'alpha' (did you mean alpha?)" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct outcome o = run(cases[i].line);

        if (o.status != cases[i].status || !strstr(o.out, cases[i].out) || !strstr(o.err, cases[i].err))
            fail_msg("%s: status %d, not %d, out '%s', err '%s'", cases[i].line, o.status, cases[i].status, o.out,
                     o.err);
        assert_int_equal(!*o.err, !*cases[i].err);
    }
}

static void test_describe(void **state)
{
    static const char alpha[] =
        ",\"usage\":\"[OPTION...] PATH\",\"summary\":\"Does it.\",\"examples\":\"  tool alpha x\\n\",\"options\":["
        "{\"kind\":\"heading\",\"help\":\"How much:\"},"
        "{\"kind\":\"int\",\"help\":\"so many\",\"letter\":\"n\",\"name\":\"steps\",\"argument\":\"N\",\"choices\":[]},"
        "{\"kind\":\"choice\",\"help\":\"a \\\"word\\\"\",\"letter\":null,\"name\":\"order\",\"argument\":null,"
        "\"choices\":[\"up\",\"down\"]},"
        "{\"kind\":\"choices\",\"help\":\"some\",\"letter\":null,\"name\":\"axes\",\"argument\":null,"
        "\"choices\":[\"x\",\"yy\"]}],\"commands\":[]}\n";
    struct outcome o = run("tool alpha --describe");

    (void)state;
    assert_int_equal(o.status, EXIT_DONE);
    assert_non_null(strstr(o.out, "{\"program\":\"tool alpha\",\"version\":\""));
    assert_non_null(strstr(o.out, alpha));
    o = run("tool --describe");
    assert_int_equal(o.status, EXIT_DONE);
    assert_non_null(strstr(o.out,
                           ",\"options\":[],\"commands\":[{\"name\":\"alpha\",\"help\":\"the first\",\"command\":"
                           "{\"program\":\"tool alpha\""));
    assert_non_null(strstr(o.out, alpha));
    assert_non_null(strstr(o.out, "},{\"name\":\"rename-tag\",\"help\":\"the second\",\"command\":"));
    assert_null(strstr(run("tool alpha --describe x").out, "{")); /* only alone: it is no option */
}

/* Of programs that also work without a command, the rest of the line is parsed once it names none. */
static void test_command_or_not(void **state)
{
    char name[] = "tool", wrong[] = "rename", right[] = "rename-tag", option[] = "--help",
         *argv[] = { name, wrong, NULL };
    struct error e = { 0 };
    int status = -1, count = 0;

    (void)state;
    assert_int_equal(subcommand_run(&tool, 2, argv, &status), 0);
    assert_int_equal(subcommand_run(&tool, 1, argv, &status), 0);
    assert_int_equal(status, -1);
    assert_int_equal(options_parse(&tool, 2, argv, &count, &e), ERR_ARG);
    assert_string_equal(e.message, "unknown command 'rename' (did you mean rename-tag?); 'tool --help' lists them");
    assert_int_equal(
        options_unknown_command(&(struct options){ .program = "trainer", .usage = "[OPTION...]" }, "train", &e),
        ERR_ARG);
    assert_string_equal(e.message, "unknown command 'train'; trainer does this without a command, so leave it out");
    argv[1] = right;
    assert_int_equal(subcommand_run(&tool, 2, argv, &status), 1);
    assert_int_equal(status, 50);
    argv[1] = option;
    assert_int_equal(subcommand_run(&tool, 2, argv, &status), 0);
}

/* ---- --help fits the terminal ---------------------------------------------------------------------------------- */

static const char *help_at(const struct options *o, const char *columns, char *text, size_t room)
{
    FILE *file = tmpfile();
    size_t n;

    assert_non_null(file);
    columns ? setenv("COLUMNS", columns, 1) : unsetenv("COLUMNS");
    options_print_help(o, file);
    rewind(file);
    n = fread(text, 1, room - 1, file);
    text[n] = '\0';
    fclose(file);
    unsetenv("COLUMNS");
    return text;
}

static void test_help_fits(void **state)
{
    static struct option table[] = {
        { OPTION_HEADING, .help = "A heading of some length, as long as needed to be broken at sixty columns:" },
        { OPTION_TEXT, 'o', "output", .argument = "FILE",
          .help = "Write to FILE, which is put in place by rename once "
                  "it is whole; a name ending in .gz is compressed" },
        { OPTION_CHOICE, .name = "format",
          .choices = "csv|wide|json|jsonl|jsonl-series|tb-csv|tb-json|reduce|prom|sqlite|"
                     "histograms",
          .help = "Write in this format" },
        { OPTION_FLAG, .name = "json", .help = "Write JSON" },
    };
    const struct options o = {
        .program = "tool export",
        .usage = "[OPTION...] PATH... | --kinds | --something-longer WORD [OPTION...]",
        .summary = "Writes the points of event files, every number exact, in order of runs, tags and steps.",
        .examples = "  tool export logs\n"
                    "  tool export logs --format=jsonl --order=file | jq -c 'select(.step > 100)'   later points\n"
                    "  tool export logs --format=reduce --run='seed-*' --ops=mean,std -o mean.csv   what it does\n",
        .table = table,
        .count = sizeof table / sizeof *table,
    };
    char text[8192], line[32];

    (void)state;
    for (int width = 40; width <= 130; width++) {
        char copy[8192];

        snprintf(line, sizeof line, "%d", width);
        strcpy(copy, help_at(&o, line, text, sizeof text));
        for (char *one = strtok(copy, "\n"); one; one = strtok(NULL, "\n"))
            if (strlen(one) > (size_t)(width < 100 ? width : 100))
                fail_msg("wider than %d columns: %s", width, one);
    }
    help_at(&o, "60", text, sizeof text);
    assert_non_null(strstr(
        text,
        "  -o, --output FILE\n        Write to FILE, which is put in place by rename once\n        it is whole;"));
    assert_non_null(strstr(text, "      --format csv|wide|json|jsonl|jsonl-series|tb-csv|\n"
                                 "        tb-json|reduce|prom|sqlite|histograms\n"));
    /* A command goes on as a shell takes it, never inside quotes, and before an option where it can. */
    assert_non_null(strstr(text, "  tool export logs\n"
                                 "  # later points\n"
                                 "  tool export logs --format=jsonl --order=file | jq \\\n"
                                 "      -c 'select(.step > 100)'\n"
                                 "  # what it does\n"
                                 "  tool export logs --format=reduce --run='seed-*' \\\n"
                                 "      --ops=mean,std -o mean.csv\n"));
    help_at(&o, NULL, text, sizeof text); /* no terminal: 80 */
    assert_non_null(strstr(text, "  -o, --output FILE               Write to FILE, which is put in place by rename\n"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = { cmocka_unit_test(test_dispatch), cmocka_unit_test(test_describe),
                                               cmocka_unit_test(test_command_or_not),
                                               cmocka_unit_test(test_help_fits) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
