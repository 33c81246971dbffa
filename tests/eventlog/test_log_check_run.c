/*
 * What log_check says of a whole run: names, counts, damage at the end; and that a look at the usual record, by
 * comparison, finds what looking closely finds.
 */
#include "tests/eventlog/checked_run.h"

#include <math.h>

static void test_names(void **state)
{
    static const struct {
        const char *run;
        enum log_finding_kind want;
    } runs[] = {
        { "a\xff", LOG_RUN_NAME },
        { ".hidden/a", LOG_HIDDEN_DIRECTORY },
        { "a/.b", LOG_HIDDEN_DIRECTORY },
        { ".", LOG_KINDS },
        { "a/b", LOG_KINDS },
        { "..a", LOG_HIDDEN_DIRECTORY },
    };
    size_t count;
    (void)state;

    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        const struct log_finding *found;

        assert_int_equal(log_check_new(&check, runs[i].run, NULL), OK);
        two(scalar("t", 1), scalar("t", 2));
        found = log_check_findings(check, &count);
        assert_int_equal(count, runs[i].want != LOG_KINDS);
        assert_true(!count || found[0].kind == runs[i].want);
        log_check_free(check);
    }
    for (int kind = 0; kind < LOG_KINDS; kind++) { /* the table has no gap */
        assert_non_null(log_finding_text((enum log_finding_kind)kind)->word);
        assert_non_null(log_finding_text((enum log_finding_kind)kind)->python_loader);
    }
}

/* Points are counted per file and series; lost bytes end where reading goes on; a flood of damage stays bounded. */
static void test_counts(void **state)
{
    const struct log_finding *found;
    size_t count;
    (void)state;

    assert_int_equal(log_check_new(&check, "run", NULL), OK);
    begin();
    for (int i = 0; i < 500; i++)
        add(event(5, i, with(tensor(2, "", real(6, 1)), "scalars", 0)));
    damage(RECORD_BAD_LENGTH_CRC);
    place += 100;
    add(event(5, 500, scalar("u", 1)));
    for (int i = 0; i < 3000; i++)
        damage(RECORD_BAD_DATA_CRC);
    end();
    found = log_check_findings(check, &count);
    assert_int_equal(count, 2 + LOG_CHECK_EACH);
    assert_int_equal(found[0].kind, LOG_SCALAR_FORM);
    assert_int_equal(found[0].count, 500);
    assert_string_equal(found[0].tag, "t");
    assert_int_equal(found[1].lost, 130);
    assert_int_equal(found[2].lost, 30);
    assert_int_equal(found[count - 1].count, 3000 - LOG_CHECK_EACH + 1);
    assert_int_equal(log_check_totals(check).by_level[LOG_DAMAGE], 3001);
    assert_int_equal(log_check_totals(check).lost, 130 + 3000 * 30);
    assert_int_equal(log_check_totals(check).records, 502);
    log_check_free(check);
}

/* A record with a wrong data CRC and a tail that is not whole are two findings; after a wrong length it is one. */
static void test_damage_before_the_end(void **state)
{
    (void)state;
    for (int length = 0; length < 2; length++) {
        const struct log_finding *found;
        uint64_t from;
        size_t count;

        assert_int_equal(log_check_new(&check, "run", NULL), OK);
        begin();
        from = place;
        damage(length ? RECORD_BAD_LENGTH_CRC : RECORD_BAD_DATA_CRC);
        assert_int_equal(log_check_end(check, length ? from : place, place + 20, NULL), OK);
        found = log_check_findings(check, &count);
        assert_int_equal(count, length ? 1 : 2);
        assert_int_equal(found[0].kind, length ? LOG_LENGTH_CRC : LOG_DATA_CRC);
        assert_int_equal(found[0].lost, length ? 50 : 30);
        assert_true(length || (found[1].kind == LOG_PARTIAL && found[1].offset == place && found[1].lost == 20));
        log_check_free(check);
    }
}

/* The findings after a sound event and then this one. An unknown field makes the check look closely at both. */
static struct log_check *after_sound(struct bytes sound, struct bytes then, int closely)
{
    static const struct bytes unknown = { { 0xa0, 0x06, 0x01 }, 3 };

    assert_int_equal(log_check_new(&check, "run", NULL), OK);
    begin();
    add(event(5, 1, scalar("u", 1))); /* a second series, so that a guess can be wrong */
    add(closely ? both(unknown, sound) : sound);
    add(closely ? both(unknown, then) : then);
    end();
    assert_int_equal(log_check_finish(check, NULL), OK);
    return check;
}

static void compare(struct bytes sound, struct bytes then, const char *what, size_t at)
{
    struct log_check *quick = after_sound(sound, then, 0), *closely = after_sound(sound, then, 1);
    size_t count, wanted_count;
    const struct log_finding *found = log_check_findings(quick, &count);
    const struct log_finding *wanted = log_check_findings(closely, &wanted_count);

    if (count != wanted_count || log_check_totals(quick).records != log_check_totals(closely).records)
        fail_msg("%s %zu: %zu findings, not %zu", what, at, count, wanted_count);
    for (size_t k = 0; k < count; k++)
        if (found[k].kind != wanted[k].kind || found[k].count != wanted[k].count ||
            found[k].tag_length != wanted[k].tag_length)
            fail_msg("%s %zu: %s, not %s", what, at, log_finding_text(found[k].kind)->word,
                     log_finding_text(wanted[k].kind)->word);
    log_check_free(quick);
    log_check_free(closely);
}

/* Usual records are compared with one in which nothing was wrong. Any byte of such a record changed to anything gives
 * the findings that looking closely gives. */
static void test_usual(void **state)
{
    static const double walls[] = { NAN, INFINITY, -INFINITY, 0, -1, 1.7e12, 6 };
    struct bytes forms[3];
    (void)state;

    forms[0] = event(5, 300, scalar("t\xc3\xa9", 1));
    forms[1] = event(5, 3, with(tensor(1, "", single(5, 1)), "scalars", 0));
    forms[2] = event(5, 3, with(part(8, both(integer(1, 1), words(4, "abcd"))), "scalars", 0));
    for (size_t i = 0; i < 3; i++)
        for (size_t at = 0; at < forms[i].n; at++)
            for (unsigned byte = 0; byte < 256; byte += i ? 1 : 3) {
                struct bytes then = forms[i];

                then.at[at] = (uint8_t)byte;
                compare(forms[i], then, "byte", at);
            }
    for (size_t i = 0; i < sizeof walls / sizeof *walls; i++)
        compare(event(5, 300, scalar("t", 1)), event(walls[i], 300, scalar("t", 1)), "wall time", i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_damage_before_the_end),
        cmocka_unit_test(test_usual),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
