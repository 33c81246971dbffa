/* Text for people: its width, cut to fit, natural order; figures; tables that fit; the progress line. */

#include "base/clock.h"
#include "base/human.h"
#include "base/program/log.h"
#include "base/program/table.h"
#include "base/program/terminal.h"
#include "base/text.h"
#include "tests/check.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static void test_columns(void **state)
{
    static const struct {
        const char *text;
        size_t columns;
    } cases[] = {
        { "", 0 },
        { "abc", 3 },
        { "gr\xc3\xb6\xc3\x9f"
          "e",
          5 },
        { "\xe6\x97\xa5\xe6\x9c\xac", 4 }, /* two wide characters */
        { "e\xcc\x81", 1 },                /* e with a combining acute */
        { "\xf0\x9f\x94\xa5", 2 },         /* an emoji */
        { "\xff\xfe", 2 },                 /* no UTF-8: one each */
        { "\xed\x9e\xa3\xee\x80\x80", 3 }, /* the last Hangul syllable; a private character */
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(text_columns(cases[i].text, strlen(cases[i].text)), cases[i].columns);
}

static void test_cut(void **state)
{
    static const struct {
        const char *text;
        size_t columns;
        int ascii;
        const char *want;
    } cases[] = {
        { "loss", 4, 0, "loss" },
        { "validation/loss", 9, 0, "vali\xe2\x80\xa6loss" },
        { "validation/loss", 9, 1, "vali..oss" },
        { "validation/loss", 2, 0, "v\xe2\x80\xa6" },
        { "validation/loss", 2, 1, "va" },
        { "validation/loss", 1, 0, "v" },
        { "validation/loss", 0, 0, "" },
        { "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", 4, 0,
          "\xe6\x97\xa5\xe2\x80\xa6" }, /* no room for half of a wide one */
        { "a\nb\x1b[0m", 20, 0, "a\\x0ab\\x1b[0m" },
        { "\xffz", 9, 0, "\\xffz" },
        { "\xc2\x9b"
          "A",
          9, 0, "\\xc2\\x9bA" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buffer b = BUFFER_EMPTY;

        text_append_cut(&b, cases[i].text, strlen(cases[i].text), cases[i].columns, cases[i].ascii);
        assert_string_equal(buffer_text(&b), cases[i].want);
        buffer_release(&b);
    }
    for (size_t columns = 0; columns < 40; columns++) { /* never wider than asked for */
        static const char text[] = "runs/\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e/e\xcc\x81val\x01/x";
        struct buffer b = BUFFER_EMPTY;

        text_append_cut(&b, text, sizeof text - 1, columns, columns % 2 == 0);
        assert_true(text_columns(buffer_text(&b), b.length) <= columns);
        buffer_release(&b);
    }
}

static void test_wrapped(void **state)
{
    static const struct {
        const char *text;
        size_t at, indent, columns;
        const char *want;
    } cases[] = {
        { "one two  three", 0, 2, 0, "one two  three" },
        { "one  two", 0, 2, 5, "one\n  two" },
        { "one two three", 0, 2, 7, "one two\n  three" },
        { "one two three", 4, 2, 7, "one\n  two\n  three" },
        { "", 3, 2, 7, "" },
        { "one", 9, 2, 7, "\n  one" },
        { "one/two/three", 0, 2, 8, "one/two/\n  three" },
        { "x one/two/three", 0, 2, 8, "x\n  one/tw\n  o/thre\n  e" },
        { "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", 0, 1, 5, "\xe6\x97\xa5\xe6\x9c\xac\n \xe8\xaa\x9e" },
        { "ab", 0, 9, 5, "ab" },
        { "abcdef", 0, 9, 5, "abcde\n         f" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buffer b = BUFFER_EMPTY;

        text_append_wrapped(&b, cases[i].text, cases[i].at, cases[i].indent, cases[i].columns);
        assert_string_equal(buffer_text(&b), cases[i].want);
        buffer_release(&b);
    }
}

static void test_natural_order(void **state)
{
    static const char *const ascending[] = { "",
                                             "a",
                                             "r",
                                             "r0",
                                             "r1",
                                             "r01",
                                             "r2",
                                             "r9/x",
                                             "r10",
                                             "r10/b2",
                                             "r10/b10",
                                             "r10-1",
                                             "r99999999999999999999998",
                                             "r99999999999999999999999",
                                             "s",
                                             "\xff" };

    (void)state;
    for (size_t i = 0; i < sizeof ascending / sizeof *ascending; i++)
        for (size_t k = 0; k < sizeof ascending / sizeof *ascending; k++) {
            int order = text_natural_order(ascending[i], ascending[k]);

            if (!strcmp(ascending[i], "r1") && !strcmp(ascending[k], "r01"))
                order = -1; /* equal but for zeros: by bytes, which puts r01 first; told apart is all that is wanted */
            else if (!strcmp(ascending[i], "r01") && !strcmp(ascending[k], "r1"))
                order = 1;
            assert_int_equal(order < 0 ? -1 : order > 0, i < k ? -1 : i > k);
        }
    assert_int_not_equal(text_natural_order("r1", "r01"), 0);
    /* What is below a directory stands together, whatever it is called. */
    assert_true(text_natural_order("r01/x", "r1/a") < 0);
    assert_true(text_natural_order("r01/a", "r1/x") < 0);
}

static void test_figures(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *want;
    } sizes[] = {
        { 0, "0 B" },
        { 1023, "1023 B" },
        { 1024, "1.00 KiB" },
        { 10234, "9.99 KiB" },
        { 102400, "100 KiB" },
        { 1048000, "1.00 MiB" },
        { 1048576, "1.00 MiB" },
        { 18140365, "17.3 MiB" },
        { UINT64_MAX, "16.0 EiB" },
    };
    static const struct {
        const char *text;
        int right;
        uint64_t bytes;
    } parsed[] = {
        { "0", 1, 0 },
        { "4096", 1, 4096 },
        { "10k", 1, 10240 },
        { "1.5 GiB", 1, 1610612736 },
        { "100MB", 1, 104857600 },
        { "2g", 1, 2147483648 },
        { "1T", 1, 1099511627776 },
        { "7 B", 1, 7 },
        { "8388607T", 1, 8388607ull << 40 },
        { "8388608T", 0, 0 },
        { "", 0, 0 },
        { "k", 0, 0 },
        { "-1", 0, 0 },
        { "1 kk", 0, 0 },
        { "1  k", 0, 0 },
        { "1.2.3", 0, 0 },
        { "nan", 0, 0 },
        { "1e3", 0, 0 },
        { "99999999999999999999", 0, 0 },
    };
    static const struct {
        uint64_t n;
        const char *one, *want;
    } counts[] = {
        { 0, "file", "0 files" },
        { 1, "file", "1 file" },
        { 2, "other value", "2 other values" },
        { 1, "series", "1 series" },
        { UINT64_MAX, "series", "18446744073709551615 series" },
    };
    static const struct {
        double seconds;
        const char *want;
    } times[] = {
        { -1, "0 s" },         { 0, "0 s" },      { 0.2, "0.2 s" },    { 4.24, "4.2 s" },     { 9.96, "10 s" },
        { 119.4, "119 s" },    { 120, "2 min" },  { 7199, "119 min" }, { 7200, "2 h 0 min" }, { 90000, "25 h 0 min" },
        { 190000, "2 d 4 h" }, { INFINITY, "-" }, { NAN, "-" },
    };
    char out[HUMAN_TEXT_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        assert_string_equal(human_bytes(sizes[i].bytes, out), sizes[i].want);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        assert_string_equal(human_count(counts[i].n, counts[i].one, out), counts[i].want);
    for (size_t i = 0; i < sizeof parsed / sizeof *parsed; i++) {
        uint64_t bytes = 0;

        assert_int_equal(human_parse_bytes(parsed[i].text, &bytes), parsed[i].right);
        if (parsed[i].right)
            assert_int_equal(bytes, parsed[i].bytes);
    }
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        assert_string_equal(human_duration(times[i].seconds, out), times[i].want);
}

static void test_numbers_alone(void **state)
{
    static const struct {
        double value;
        const char *want;
    } cases[] = {
        { 0, "0" },         { 0.0123456, "0.01235" }, { 75.6123, "75.61" },   { 302.54, "302.5" },
        { 999.96, "1000" }, { 15000, "15000" },       { 152437.2, "152437" }, { 3e9, "3000000000" },
        { 2e15, "2e+15" },  { -1234.5, "-1234" },     { 0.00001, "1e-05" },   { INFINITY, "inf" },
    };
    char out[HUMAN_TEXT_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(human_number(cases[i].value, out), cases[i].want);
}

static void test_rounding(void **state)
{
    static const struct {
        double values[3];
        const char *want[3];
    } cases[] = {
        { { 2.303, 0.51274, 0.004 }, { "2.3030", "0.5127", "0.0040" } },
        { { 1, 20, 300 }, { "1", "20", "300" } },
        { { 123456.7, 3.2, 0 }, { "123456.7", "3.2", "0.0" } },
        { { 1e-5, 0.1, NAN }, { "0.000010", "0.100000", "nan" } },
        { { 3.4e38, 0.5, -INFINITY }, { "3.4e+38", "0.5", "-inf" } },
        { { -12.5, 0.75, INFINITY }, { "-12.500", "0.750", "inf" } },
        { { 1e15, 2, 0 }, { "1e+15", "2", "0" } },
    };
    char out[HUMAN_TEXT_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct human_rounding r = { 0, 0, 0 };

        for (int k = 0; k < 3; k++)
            human_rounding_add(&r, cases[i].values[k]);
        for (int k = 0; k < 3; k++)
            assert_string_equal(human_rounded(&r, cases[i].values[k], out), cases[i].want[k]);
    }
}

static const struct table_column columns[] = {
    { .title = "run", .cut = 1 },
    { .title = "points", .right = 1, .leave_out = 1 },
    { .title = "last", .right = 1 },
    { .title = "what", .leave_out = 2 },
};

static void fill(struct table *t)
{
    table_init(t, columns, sizeof columns / sizeof *columns);
    table_text(t, "mpi/eval/of-a-long-name", 23);
    table_cell(t, "%d", 7);
    table_number(t, 0.5);
    table_cell(t, "%s", "fine");
    table_text(t, "ps", 2);
    table_cell(t, "%d", 1234);
    table_number(t, 12);
    table_cell(t, "%s", "");
}

static void test_table(void **state)
{
    static const struct {
        size_t indent;
        int width;
        size_t left_out;
        const char *want;
    } cases[] = {
        { 0, 0, 0,
          "run                      points    last  what\n"
          "mpi/eval/of-a-long-name       7   0.500  fine\n"
          "ps                         1234  12.000\n" },
        { 2, 40, 0,
          "  run               points    last  what\n"
          "  mpi/eval\xe2\x80\xa6ng-name       7   0.500  fine\n"
          "  ps                  1234  12.000\n" },
        { 0, 30, 0,
          "run       points    last  what\n"
          "mpi/\xe2\x80\xa6"
          "ame       7   0.500  fine\n"
          "ps          1234  12.000\n" },
        { 0, 27, 1,
          "run          points    last\n"
          "mpi/e\xe2\x80\xa6-name" },
        { 0, 20, 2, "run             last\n" },
        { 0, 1, 2,
          "run         last\nmpi/\xe2\x80\xa6"
          "ame   0.500\nps        12.000\n" }, /* no narrower: it stays readable */
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buffer out = BUFFER_EMPTY;
        struct table t;

        fill(&t);
        assert_int_equal(table_print(&t, cases[i].indent, cases[i].width, 0, &out), cases[i].left_out);
        assert_true(buffer_ok(&out));
        if (strncmp(buffer_text(&out), cases[i].want, strlen(cases[i].want)) != 0)
            fail_msg("case %zu:\n%s", i, buffer_text(&out));
        buffer_release(&out);
        table_release(&t);
    }
    for (int width = 16; width < 100; width++) { /* no line is wider */
        struct buffer out = BUFFER_EMPTY;
        struct table t;

        fill(&t);
        table_print(&t, 0, width, width % 2, &out);
        for (const char *line = strtok(out.data, "\n"); line; line = strtok(NULL, "\n"))
            assert_true(text_columns(line, strlen(line)) <= (size_t)width);
        buffer_release(&out);
    }
}

/* Columns go before a name is cut to less than it should keep. */
static void test_least_width(void **state)
{
    static const struct table_column named[] = {
        { .title = "run", .cut = 20 },
        { .title = "points", .right = 1, .leave_out = 1 },
        { .title = "last", .right = 1, .leave_out = 2 },
    };
    static const struct {
        int width;
        size_t left_out;
        const char *want;
    } cases[] = {
        { 40, 0, "run                      points  last\nmpi/eval/of-a-long-name       7   0.5\n" },
        { 34, 0, "run                   points  last\nmpi/eval/o\xe2\x80\xa6long-name       7   0.5\n" },
        { 33, 1, "run                      points\nmpi/eval/of-a-long-name       7\n" },
        { 28, 1, "run                   points\nmpi/eval/o\xe2\x80\xa6long-name       7\n" },
        { 27, 2, "run\nmpi/eval/of-a-long-name\n" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buffer out = BUFFER_EMPTY;
        struct table t;

        table_init(&t, named, sizeof named / sizeof *named);
        table_text(&t, "mpi/eval/of-a-long-name", 23);
        table_cell(&t, "7");
        table_cell(&t, "0.5");
        assert_int_equal(table_print(&t, 0, cases[i].width, 0, &out), cases[i].left_out);
        assert_string_equal(buffer_text(&out), cases[i].want);
        buffer_release(&out);
    }
}

/* Nor is a short name cut while columns can go; where none can go, it is. */
static void test_short_names(void **state)
{
    static const struct table_column named[] = {
        { .title = "run", .cut = 8 },
        { .title = "tag", .cut = 8 },
        { .title = "points", .right = 1, .leave_out = 1 },
    };
    static const struct {
        int width;
        size_t left_out;
        const char *want;
    } cases[] = {
        { 50, 0, "run                   tag              points\nof-a-long-name/of-it  global_step/sec       7\n" },
        { 38, 0, "run            tag              points\nof-a-l\xe2\x80\xa6/of-it  global_step/sec       7\n" },
        { 30, 1, "run            tag\nof-a-l\xe2\x80\xa6/of-it  global_step/sec\n" },
        { 20, 1, "run       tag\nof-a\xe2\x80\xa6-it  globa\xe2\x80\xa6/sec\n" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buffer out = BUFFER_EMPTY;
        struct table t;

        table_init(&t, named, sizeof named / sizeof *named);
        table_cell(&t, "of-a-long-name/of-it");
        table_cell(&t, "global_step/sec");
        table_cell(&t, "7");
        assert_int_equal(table_print(&t, 0, cases[i].width, 0, &out), cases[i].left_out);
        assert_string_equal(buffer_text(&out), cases[i].want);
        buffer_release(&out);
    }
}

/* One endless name does not make every line as long: what is printed grows with the cells. */
static void test_long_cell(void **state)
{
    enum { ROWS = 100, LONG = 100000 };
    struct buffer out = BUFFER_EMPTY;
    char *name = malloc(LONG + 1);
    struct table t;

    (void)state;
    assert_non_null(name);
    memset(name, 'n', LONG);
    name[LONG] = '\0';
    table_init(&t, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < ROWS; i++) {
        table_text(&t, i == 50 ? name : "short", i == 50 ? LONG : 5);
        table_cell(&t, "%d", i);
        table_number(&t, 1);
        table_cell(&t, "fine");
    }
    table_print(&t, 0, 0, 0, &out);
    assert_true(buffer_ok(&out) && out.length < LONG + ROWS * 250);
    assert_null(strstr(out.data, name)); /* cut */
    name[TEXT_NAME_MOST / 2 - 1] = '\0';
    assert_non_null(strstr(out.data, name));
    assert_non_null(strstr(out.data, "n      50     1  fine\n"));
    buffer_release(&out);
    free(name);
}

/* As many columns as hyperparameters, say; and a table that is used again. */
static void test_many_columns(void **state)
{
    enum { COLUMNS = 300 };
    static struct table_column many[COLUMNS];
    struct buffer out = BUFFER_EMPTY;
    struct table t;

    (void)state;
    for (int i = 0; i < COLUMNS; i++)
        many[i] = (struct table_column){ .title = "x", .right = 1, .leave_out = i };
    table_init(&t, many, COLUMNS);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 2 * COLUMNS; i++)
            table_number(&t, round ? i % COLUMNS : 0.25);
        assert_int_equal(table_print(&t, 0, 20, 0, &out), round ? 293 : 298);
    }
    assert_string_equal(buffer_text(&out), "     x       x\n0.2500  0.2500\n0.2500  0.2500\n"
                                           "x  x  x  x  x  x  x\n0  1  2  3  4  5  6\n0  1  2  3  4  5  6\n");
    buffer_release(&out);
}

/* A terminal of that many columns; its other side in *other. */
static int terminal_of(unsigned short width, int *other)
{
    struct winsize size = { .ws_row = 24, .ws_col = width };
    struct termios raw;
    int fd;

    *other = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(*other >= 0 && grantpt(*other) == 0 && unlockpt(*other) == 0);
    fd = open(ptsname(*other), O_RDWR | O_NOCTTY);
    assert_true(fd >= 0 && ioctl(fd, TIOCSWINSZ, &size) == 0);
    assert_int_equal(tcgetattr(fd, &raw), 0);
    cfmakeraw(&raw);
    assert_int_equal(tcsetattr(fd, TCSANOW, &raw), 0);
    return fd;
}

static void test_progress_fits(void **state)
{
    char text[512];
    struct log log;
    int other, fd = terminal_of(30, &other);
    ssize_t n;

    (void)state;
    unsetenv("COLUMNS");
    setenv("LC_ALL", "C", 1);
    log_init(&log, "eventlog", fd);
    log_progress(&log, "%s: %d%% read", "runs/with/a/very/long/name/of/a/run", 7);
    n = read(other, text, sizeof text - 1);
    assert_true(n > 4);
    text[n] = '\0';
    assert_memory_equal(text, "\r\033[K", 4);
    assert_string_equal(text + 4, "eventlog: runs../run: 7% read");
    log_progress_end(&log);
    close(fd);
    close(other);
}

/* What the terminal shows of 35% of some work that has been going on for `spent` seconds. */
static const char *drawn_work(unsigned short width, double spent, const char *name)
{
    static char text[512];
    struct log log;
    int other, fd = terminal_of(width, &other);
    ssize_t n;

    log_init(&log, "eventlog stats", fd);
    log_progress_work(&log, clock_monotonic() - spent, 0.35, name, "%d GiB in %d runs", 12, 24);
    n = read(other, text, sizeof text - 1);
    assert_true(n > 4);
    text[n] = '\0';
    close(fd);
    close(other);
    return text + 4;
}

static void test_progress_of_work(void **state)
{
    static const char name[] = "a/long/name/of/a/run/seed-1";

    (void)state;
    unsetenv("COLUMNS");
    setenv("LC_ALL", "C", 1);
    assert_string_equal(drawn_work(80, 0, "run"), "eventlog stats: 35% of 12 GiB in 24 runs: run");
    assert_string_equal(drawn_work(80, 0, NULL), "eventlog stats: 35% of 12 GiB in 24 runs");
    /* 65% are left. Hours, so that a test that waits for its turn changes nothing. */
    assert_string_equal(drawn_work(80, 70 * 3600, name),
                        "eventlog stats: 35% of 12 GiB in 24 runs, 5 d 10 h to go: a/long/nam..un/seed-1");
    assert_string_equal(drawn_work(67, 70 * 3600, name),
                        "eventlog stats: 35% of 12 GiB in 24 runs, 5 d 10 h to go: a/l..d-1");
    assert_string_equal(drawn_work(66, 70 * 3600, name), "eventlog stats: 35% of 12 GiB in 24 runs, 5 d 10 h to go");
    assert_string_equal(drawn_work(40, 70 * 3600, name), "eventlog stats: 35%..ns, 5 d 10 h to go");
}

static void test_terminal(void **state)
{
    int other, fd = terminal_of(60, &other), pipes[2];

    (void)state;
    assert_int_equal(pipe(pipes), 0);
    unsetenv("COLUMNS");
    unsetenv("NO_COLOR");
    setenv("TERM", "xterm", 1);
    assert_int_equal(terminal_columns(fd), 60);
    assert_int_equal(terminal_columns(pipes[1]), 0);
    assert_int_equal(terminal_coloured(fd, "auto"), 1);
    assert_int_equal(terminal_coloured(pipes[1], "auto"), 0);
    assert_int_equal(terminal_coloured(pipes[1], "always"), 1);
    assert_int_equal(terminal_coloured(fd, "never"), 0);
    setenv("NO_COLOR", "1", 1);
    assert_int_equal(terminal_coloured(fd, "auto"), 0);
    setenv("NO_COLOR", "", 1);
    assert_int_equal(terminal_coloured(fd, "auto"), 1);
    setenv("TERM", "dumb", 1);
    assert_int_equal(terminal_coloured(fd, "auto"), 0);
    setenv("COLUMNS", "100", 1);
    assert_int_equal(terminal_columns(fd), 100);
    assert_int_equal(terminal_columns(pipes[1]), 100);
    setenv("COLUMNS", "3", 1);
    assert_int_equal(terminal_columns(pipes[1]), 20);
    setenv("COLUMNS", "wide", 1);
    assert_int_equal(terminal_columns(fd), 60);
    unsetenv("COLUMNS");
    setenv("LC_ALL", "C.UTF-8", 1);
    assert_int_equal(terminal_utf8(), 1);
    setenv("LC_ALL", "C", 1);
    assert_int_equal(terminal_utf8(), 0);
    close(pipes[0]);
    close(pipes[1]);
    close(fd);
    close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns),   cmocka_unit_test(test_cut),           cmocka_unit_test(test_natural_order),
        cmocka_unit_test(test_figures),   cmocka_unit_test(test_numbers_alone), cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_table),     cmocka_unit_test(test_least_width),   cmocka_unit_test(test_short_names),
        cmocka_unit_test(test_long_cell), cmocka_unit_test(test_many_columns),  cmocka_unit_test(test_wrapped),
        cmocka_unit_test(test_terminal),  cmocka_unit_test(test_progress_fits), cmocka_unit_test(test_progress_of_work),
    };

    return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
