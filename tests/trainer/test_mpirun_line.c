/* The line of mpirun: which rank runs where, what is forwarded, and its words as a shell reads them back. */
#include "trainer/launch/mpirun_line.h"

#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NAME=1 for each name in it */
static const char *set = "";
static enum mpirun_kind kind;

static const char *environment(const char *name)
{
    return strstr(set, name) ? "1" : NULL;
}

/* The line of that job as a shell would have it, in `line`. */
static void line_of(char *line, size_t size, const char *hosts, int servers, const char *const *options, size_t count)
{
    struct resource_info r;
    struct error e = { 0 };
    struct buffer text = BUFFER_EMPTY;
    struct mpirun_job job = { kind, &r, servers, "/opt/bin/trainer", "/home/me/a b", options, count, environment };
    const char **words;

    assert_int_equal(resource_info_parse(&r, hosts, strlen(hosts), "hosts", &e), OK);
    assert_int_equal(mpirun_line(&words, &job, &e), OK);
    mpirun_line_quoted(&text, words);
    snprintf(line, size, "%s", buffer_text(&text));
    buffer_release(&text);
    free(words);
    resource_info_release(&r);
}

#define REST "--bind-to none --wdir '/home/me/a b'"
#define KEEPALIVE " --mca oob_tcp_keepalive_time 5 --mca oob_tcp_keepalive_intvl 2 --mca oob_tcp_keepalive_probes 3"

static void is(const char *hosts, int servers, const char *wanted)
{
    char line[2048];

    line_of(line, sizeof line, hosts, servers, NULL, 0);
    assert_string_equal(line, wanted);
}

static void test_places(void **state)
{
    (void)state;
    is("a", 0, "mpirun --map-by seq --host a " REST " -n 1 /opt/bin/trainer");
    is("a:0,1", 1, "mpirun --map-by seq --host a,a,a " REST " -n 3 /opt/bin/trainer");
    is("a\nb\n", 0, "mpirun --map-by seq --host a,b " REST KEEPALIVE " -n 2 /opt/bin/trainer");
    /* workers in the order of the list, then a server on each host in turn */
    is("b:0,1\na\nc:0-2\n", 3, "mpirun --map-by seq --host b,b,a,c,c,c,b,a,c " REST KEEPALIVE " -n 9 /opt/bin/trainer");
    is("b:0,1\na\n", 1, "mpirun --map-by seq --host b,b,a,b " REST KEEPALIVE " -n 4 /opt/bin/trainer");
    is("b:0,1\na\n", 5, "mpirun --map-by seq --host b,b,a,b,a,b,a,b " REST KEEPALIVE " -n 8 /opt/bin/trainer");
}

static void test_environment(void **state)
{
    (void)state;
    set = "LD_LIBRARY_PATH";
    is("a", 0, "mpirun --map-by seq --host a " REST " -x LD_LIBRARY_PATH -n 1 /opt/bin/trainer");
    set = "OPENBLAS_NUM_THREADS OMP_NUM_THREADS";
    is("a", 0,
       "mpirun --map-by seq --host a " REST " -x OMP_NUM_THREADS -x OPENBLAS_NUM_THREADS -n 1 /opt/bin/trainer");
    set = "LD_LIBRARY_PATH OMPI_MCA_mca_base_env_list"; /* mpirun takes one way or the other */
    is("a", 0, "mpirun --map-by seq --host a " REST " -n 1 /opt/bin/trainer");
    set = "OMPI_MCA_oob_tcp_keepalive_time";
    is("a\nb", 0, "mpirun --map-by seq --host a,b " REST " -n 2 /opt/bin/trainer");
    set = "";
}

/* What the mpirun of each MPI prints for --version, and how it calls the same. */
static void test_kinds(void **state)
{
    (void)state;
    assert_int_equal(mpirun_kind("mpirun (Open MPI) 4.1.4\n\nReport bugs to ...\n"), MPIRUN_OPEN_MPI_4);
    assert_int_equal(mpirun_kind("mpirun.openmpi (Open MPI) 5.0.7\n\nReport bugs to ...\n"), MPIRUN_OPEN_MPI_5);
    assert_int_equal(mpirun_kind("mpirun (Open MPI) 6.0.0rc1\n"), MPIRUN_OPEN_MPI_6);
    assert_int_equal(mpirun_kind("mpirun (Open MPI) 10.0.0\n"), MPIRUN_OPEN_MPI_6);
    assert_int_equal(mpirun_kind("HYDRA build details:\n    Version:                                 4.2.1\n"),
                     MPIRUN_HYDRA);
    assert_int_equal(mpirun_kind(""), MPIRUN_OPEN_MPI_4);

    kind = MPIRUN_OPEN_MPI_5;
    set = "OMP_NUM_THREADS OMPI_MCA_oob_tcp_keepalive_time"; /* this one does not read the latter */
    is("a\nb", 0,
       "mpirun --map-by seq --host a,b " REST " --prtemca oob_tcp_keepalive_time 5 --prtemca oob_tcp_keepalive_intvl 2 "
       "--prtemca oob_tcp_keepalive_probes 3 -x OMP_NUM_THREADS -n 2 /opt/bin/trainer");
    set = "PRTE_MCA_oob_tcp_keepalive_time";
    is("a\nb", 0, "mpirun --map-by seq --host a,b " REST " -n 2 /opt/bin/trainer");
    kind = MPIRUN_OPEN_MPI_6; /* and this one not that */
    is("a\nb", 0,
       "mpirun --map-by seq --host a,b " REST " --prtemca prte_keepalive_time 5 --prtemca prte_keepalive_intvl 2 "
       "--prtemca prte_keepalive_probes 3 -n 2 /opt/bin/trainer");
    set = "PRTE_MCA_prte_keepalive_time";
    is("a\nb", 0, "mpirun --map-by seq --host a,b " REST " -n 2 /opt/bin/trainer");
    kind = MPIRUN_HYDRA;
    set = "OMP_NUM_THREADS";
    is("b:0,1\na", 1, "mpirun -hosts b,b,a,b -bind-to none -wdir '/home/me/a b' -n 4 /opt/bin/trainer");
    kind = MPIRUN_OPEN_MPI_4;
    set = "";
}

/* mpirun takes a word ":" for the end of a program's words. */
static void test_colon(void **state)
{
    static const char *const options[] = { "--log-dir", ":", "--quiet", "--seed", "1", "--data-dir", ":", ":x" };
    char line[2048];

    (void)state;
    line_of(line, sizeof line, "a", 0, options, sizeof options / sizeof *options);
    assert_non_null(strstr(line, "/opt/bin/trainer --log-dir=: --quiet --seed 1 --data-dir=: :x"));
}

/* sh splits the line into the words that it was made of. */
static void test_quoting(void **state)
{
    static const char *const options[] = { "--data-dir", "it's", "",  "$HOME", "a\"b", "`x`",
                                           "a\\b",       "*",    "~", "#",     "a;b",  "x\ny" };
    enum { COUNT = sizeof options / sizeof *options };
    char line[2048], command[4096], read_back[2048] = "", wanted[2048] = "";
    const char *at;
    FILE *shell;
    size_t n;

    (void)state;
    line_of(line, sizeof line, "a", 0, options, COUNT);
    at = strstr(line, "/opt/bin/trainer ");
    assert_non_null(at);
    snprintf(command, sizeof command, "printf '<%%s>' %s", at + strlen("/opt/bin/trainer "));
    for (size_t i = 0; i < COUNT; i++)
        snprintf(wanted + strlen(wanted), sizeof wanted - strlen(wanted), "<%s>", options[i]);
    shell = popen(command, "r");
    assert_non_null(shell);
    n = fread(read_back, 1, sizeof read_back - 1, shell);
    read_back[n] = '\0';
    assert_int_equal(pclose(shell), 0);
    assert_string_equal(read_back, wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places), cmocka_unit_test(test_colon),   cmocka_unit_test(test_environment),
        cmocka_unit_test(test_kinds),  cmocka_unit_test(test_quoting),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
