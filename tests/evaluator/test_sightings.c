/* The deciding half of the watcher: listings and times in, what to open, what has failed and what is gone out. */
#include "evaluator/watch/sightings.h"

#include "tests/check.h"
#include "tests/failing_allocation.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { QUIET = 30 };

static void see(struct sightings *s, double now, const char *names, uint64_t stamp, const char *want_gone)
{
    struct sighting_seen seen[16];
    char text[256], gone_names[256] = "";
    struct sighting_list gone;
    size_t n = 0;

    snprintf(text, sizeof text, "%s", names);
    for (char *rest = text, *name; (name = strtok_r(rest, " ", &rest));) /* names are "c-1" to "c-9" */
        seen[n++] = (struct sighting_seen){ .name = name, .step = name[2] - '0', .stamp = stamp };
    assert_int_equal(sightings_update(s, seen, n, now, &gone, NULL), OK);
    for (size_t i = 0; i < gone.count; i++) {
        strcat(gone_names, i ? " " : "");
        strcat(gone_names, gone.items[i].name);
    }
    sighting_list_release(&gone);
    assert_string_equal(gone_names, want_gone);
}

static const char *due(const struct sightings *s)
{
    static char out[256];

    *out = '\0';
    for (size_t i = 0; i < s->count; i++)
        if (sighting_due(&s->items[i])) {
            strcat(out, *out ? " " : "");
            strcat(out, s->items[i].name);
        }
    return out;
}

static void test_life(void **state)
{
    struct sightings s;

    (void)state;
    sightings_init(&s, QUIET);
    see(&s, 0, "c-1 c-3", 7, "");
    assert_string_equal(due(&s), "c-1 c-3");
    sighting_opened(&s.items[0]);
    assert_int_equal(sighting_not_whole(&s, &s.items[1], 1), 0);
    see(&s, 2, "c-1 c-2 c-3", 7, "");
    assert_string_equal(due(&s), "c-2 c-3"); /* in order, though c-2 came later */
    see(&s, 3, "c-2", 7, "c-3");             /* c-1 was opened, so it is not gone; c-3 never was */
    sighting_opened(&s.items[0]);
    assert_string_equal(due(&s), "");
    see(&s, 4, "c-2", 8, ""); /* written anew */
    assert_string_equal(due(&s), "c-2");
    see(&s, 5, "", 8, "c-2");
    assert_int_equal(s.count, 0);
    see(&s, 6, "c-2", 8, ""); /* the directory was made again */
    assert_string_equal(due(&s), "c-2");
    sightings_release(&s);
}

static void test_quiet_time(void **state)
{
    struct sightings s;
    struct sighting *item;

    (void)state;
    sightings_init(&s, QUIET);
    see(&s, 100, "c-1", 7, "");
    item = &s.items[0];
    sighting_data(item, 1, 1e9, 100); /* no data file yet */
    assert_int_equal(sighting_not_whole(&s, item, 100 + QUIET - 1), 0);
    sighting_data(item, 2, 0, 125); /* it grows: the quiet time begins again */
    assert_int_equal(sighting_not_whole(&s, item, 125 + QUIET - 1), 0);
    assert_true(sightings_deadline(&s) == 125 + QUIET);
    assert_int_equal(sighting_not_whole(&s, item, 125 + QUIET), 1);
    assert_string_equal(due(&s), "");
    assert_int_equal(sightings_undecided(&s), 0);
    assert_true(isinf(sightings_deadline(&s)));
    see(&s, 200, "c-1", 7, ""); /* nothing new */
    item = &s.items[0];
    sighting_data(item, 2, 0, 200);
    assert_string_equal(due(&s), "");
    sighting_data(item, 3, 0, 210); /* the missing data came after all */
    assert_string_equal(due(&s), "c-1");
    assert_int_equal(sighting_not_whole(&s, item, 211), 0);
    sighting_opened(item);
    assert_string_equal(due(&s), "");
    see(&s, 220, "", 0, "");
    sightings_release(&s);
}

/* What has stood broken for a day need not be waited for; a time in the future (another machine's clock) counts as now. */
static void test_old_files(void **state)
{
    const struct sighting_seen old[] = { { .name = "c-1", .step = 1, .stamp = 7, .age = 86400 },
                                         { .name = "c-2", .step = 2, .stamp = 7, .age = -3600 },
                                         { .name = "c-3", .step = 3, .stamp = 7, .age = 10 } };
    struct sighting_list gone;
    struct sightings s;

    (void)state;
    sightings_init(&s, QUIET);
    assert_int_equal(sightings_update(&s, old, 3, 5, &gone, NULL), OK);
    sighting_list_release(&gone);
    assert_int_equal(sighting_not_whole(&s, &s.items[0], 5), 1);
    assert_int_equal(sighting_not_whole(&s, &s.items[1], 5), 0);
    assert_int_equal(sighting_not_whole(&s, &s.items[1], 5 + QUIET), 1);
    assert_int_equal(sighting_not_whole(&s, &s.items[2], 5 + QUIET - 11), 0);
    assert_int_equal(sighting_not_whole(&s, &s.items[2], 5 + QUIET - 10), 1);
    /* an old one in the place of another */
    assert_int_equal(sightings_update(&s, &(struct sighting_seen){ "c-2", .step = 2, .stamp = 8, .age = 86400 }, 1, 900,
                                      &gone, NULL),
                     OK);
    sighting_list_release(&gone);
    assert_string_equal(s.items[0].name, "c-2");
    assert_int_equal(sighting_not_whole(&s, &s.items[0], 900), 1);
    sightings_release(&s);
}

/* A marker counts once it has not changed for a moment; it waits for that, whatever the quiet time is. */
static void test_markers(void **state)
{
    struct sighting *item;
    struct sightings s;

    (void)state;
    sightings_init(&s, QUIET);
    see(&s, 100, "c-1", 7, "");
    item = &s.items[0];
    assert_int_equal(sighting_settled(item, 1, 0, 2, 103), 0);
    assert_true(sightings_deadline(&s) == 105);
    assert_int_equal(sighting_settled(item, 2, 0, 2, 104), 0); /* filled now */
    assert_int_equal(sighting_settled(item, 2, 0, 2, 105.5), 0);
    assert_true(sightings_deadline(&s) == 106);
    assert_int_equal(sighting_settled(item, 2, 0, 2, 106), 1);
    assert_int_equal(sighting_settled(item, 3, 60, 2, 107), 1);    /* an old one in its place */
    assert_int_equal(sighting_settled(item, 4, -3600, 2, 108), 0); /* a clock that is ahead */
    assert_int_equal(sighting_settled(item, 4, -3600, 2, 110), 1);
    assert_int_equal(sighting_quiet(item, 20, 119), 0); /* of the item itself */
    assert_true(sightings_deadline(&s) == 120);
    assert_int_equal(sighting_quiet(item, 20, 120), 1);
    see(&s, 200, "", 0, "c-1");
    sightings_release(&s);
}

static void see_one(struct sightings *s, double now, uint64_t stamp, uint64_t inode)
{
    const struct sighting_seen seen = { .name = "c-1", .step = 1, .stamp = stamp, .inode = inode };
    struct sighting_list gone;

    assert_int_equal(sightings_update(s, &seen, 1, now, &gone, NULL), OK);
    sighting_list_release(&gone);
}

/* Changed after it was opened, and still the same file: it is written in place, until another file takes its name. */
static void test_in_place(void **state)
{
    struct sightings s;

    (void)state;
    sightings_init(&s, QUIET);
    see_one(&s, 0, 1, 11);
    see_one(&s, 1, 2, 11); /* not opened yet */
    assert_int_equal(s.items[0].in_place, 0);
    sighting_opened(&s.items[0]);
    see_one(&s, 2, 2, 11);
    assert_int_equal(s.items[0].in_place, 0);
    see_one(&s, 3, 3, 11);
    assert_true(s.items[0].in_place && sighting_due(&s.items[0]));
    sighting_opened(&s.items[0]);
    see_one(&s, 4, 4, 12);
    assert_int_equal(s.items[0].in_place, 0);
    sighting_opened(&s.items[0]);
    sighting_changed(&s.items[0], 5); /* as its evaluation says */
    assert_true(s.items[0].in_place && sighting_due(&s.items[0]) && s.items[0].changed == 5);
    see_one(&s, 6, 4, 12);
    assert_true(s.items[0].in_place && s.items[0].changed == 5);
    sightings_release(&s);
}

/* The same name and time, and another kind of checkpoint: it is looked at again. */
static void test_other_kind(void **state)
{
    struct sighting_seen seen = { .name = "c-1", .step = 1, .stamp = 7 };
    struct sighting_list gone;
    struct sightings s;

    (void)state;
    sightings_init(&s, QUIET);
    for (int kind = 0; kind < 2; kind++) {
        seen.kind = kind;
        assert_int_equal(sightings_update(&s, &seen, 1, kind, &gone, NULL), OK);
        sighting_list_release(&gone);
        assert_string_equal(due(&s), "c-1");
        assert_int_equal(s.items[0].kind, kind);
        sighting_opened(&s.items[0]);
    }
    sightings_release(&s);
}

/* By name and step, among few and many, and what is not there before, between and behind them. */
static void test_find(void **state)
{
    static const struct {
        const char *name;
        int64_t step;
    } missing[] = {
        { "c-1", 1 }, { "c-3", 4 }, { "c-5", 5 }, { "c-9", 9 }, { "c-4", 3 }, { "a", 6 }, { "z", 6 },
    };
    struct sightings s;

    (void)state;
    sightings_init(&s, QUIET);
    assert_null(sightings_find(&s, "c-2", 2));
    see(&s, 0, "c-2 c-3 c-4 c-6 c-7", 7, "");
    for (size_t i = 0; i < s.count; i++)
        assert_ptr_equal(sightings_find(&s, s.items[i].name, s.items[i].step), &s.items[i]);
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        assert_null(sightings_find(&s, missing[i].name, missing[i].step));
    sightings_release(&s);
}

/* Who is looked at for its data files, and who may still become one: by the four states. */
static void test_states(void **state)
{
    static const struct {
        enum sighting_state state;
        int incomplete, due;
    } cases[] = {
        { SIGHTING_NEW, 0, 1 },
        { SIGHTING_WAITING, 1, 1 },
        { SIGHTING_OPENED, 0, 0 },
        { SIGHTING_FAILED, 1, 0 },
    };
    struct sightings s;

    (void)state;
    sightings_init(&s, QUIET);
    see(&s, 0, "c-1 c-2 c-3 c-4", 7, "");
    for (int i = 0; i < 4; i++) {
        s.items[i].state = cases[i].state;
        assert_int_equal(sighting_incomplete(&s.items[i]), cases[i].incomplete);
        assert_int_equal(sighting_due(&s.items[i]), cases[i].due);
    }
    assert_int_equal(sightings_incomplete(&s), 2);
    assert_int_equal(sightings_undecided(&s), 2);
    sightings_release(&s);
}

/* What is found out while it is opened and evaluated. */
static void test_found_out(void **state)
{
    struct sightings s;
    struct sighting *item;

    (void)state;
    sightings_init(&s, QUIET);
    see(&s, 0, "c-1 c-2", 7, "");
    item = &s.items[0];
    sighting_lack(item, 10);
    assert_int_equal(item->state, SIGHTING_WAITING);
    assert_true(item->changed == 10);
    sighting_opened(item);
    assert_int_equal(sighting_disturbed(item, 1), 1);
    assert_int_equal(sighting_disturbed(item, 2), 3);
    sighting_undisturbed(item);
    assert_int_equal(sighting_disturbed(item, 0), 0);
    sighting_is_written(item);
    assert_true(item->in_place && sighting_due(item));
    assert_int_equal(sightings_undecided(&s), 2);
    sighting_hopeless(item);
    assert_true(!sighting_due(item) && sighting_incomplete(item));
    assert_int_equal(sightings_undecided(&s), 1);
    sightings_release(&s);
}

/* Of those that wait the earliest counts, wherever it stands in the list. */
static void test_deadline(void **state)
{
    struct sightings s;

    (void)state;
    sightings_init(&s, QUIET);
    see(&s, 0, "c-1 c-2 c-3", 7, "");
    for (int i = 0; i < 3; i++) {
        s.items[i].state = SIGHTING_WAITING;
        s.items[i].changed = 10 * (i ? 3 - i : 3);
    }
    assert_true(sightings_deadline(&s) == 10 + QUIET); /* 30, 20, 10 */
    s.items[0].patience = 1;
    assert_true(sightings_deadline(&s) == 31);
    sightings_release(&s);
}

/* What is not whole has waited for its data; what has failed and gets new data is tried again. */
static void test_first_data(void **state)
{
    struct sighting *item;
    struct sightings s;

    (void)state;
    sightings_init(&s, QUIET);
    see(&s, 100, "c-1", 7, "");
    item = &s.items[0];
    assert_int_equal(sighting_not_whole(&s, item, 100 + QUIET), 1);
    sighting_data(item, 1, 1e9, 140); /* the first look at its data tells nothing new */
    assert_true(item->state == SIGHTING_FAILED && item->changed == 100);
    sighting_data(item, 2, 1e9, 150); /* another file, and an old one */
    assert_true(item->state == SIGHTING_WAITING && item->changed == 100);
    sightings_release(&s);
}

/* Want of memory at each allocation: nothing has changed, and the same listing is taken in afterwards. */
static void test_no_memory(void **state)
{
    const struct sighting_seen seen[] = { { .name = "c-1", .step = 1, .stamp = 9 },
                                          { .name = "c-2", .step = 2, .stamp = 7 },
                                          { .name = "c-3", .step = 3, .stamp = 7 } };
    struct sighting_list gone;
    struct sightings s;
    long at = 1;

    (void)state;
    sightings_init(&s, QUIET);
    see(&s, 0, "c-1 c-4", 7, "");
    for (;; at++) {
        struct error e = { 0 };
        int rc;

        atomic_store(&calls, 0);
        atomic_store(&fail_at, at);
        rc = sightings_update(&s, seen, 3, 1, &gone, &e);
        atomic_store(&fail_at, 0);
        if (rc == OK)
            break;
        assert_int_equal(rc, ERR_NOMEM);
        assert_non_null(strstr(e.message, "3 checkpoints"));
        assert_true(!gone.items && !gone.count && s.count == 2 && s.items[0].stamp == 7);
        assert_string_equal(due(&s), "c-1 c-4");
    }
    assert_int_equal(at, 5); /* two lists and two new names */
    assert_true(gone.count == 1 && !strcmp(gone.items[0].name, "c-4"));
    sighting_list_release(&gone);
    assert_string_equal(due(&s), "c-1 c-2 c-3");
    sightings_release(&s);
}

static void test_closed(void **state)
{
    struct sightings s;

    (void)state;
    sightings_init(&s, QUIET);
    see(&s, 0, "c-2 c-4", 7, "");
    sightings_close(&s, 1);
    see(&s, 1, "c-1 c-2 c-3 c-4 c-5", 7, "");
    assert_string_equal(due(&s), "c-2 c-4");
    sightings_close(&s, 0);
    see(&s, 2, "c-1 c-2 c-3 c-4 c-5", 7, "");
    assert_string_equal(due(&s), "c-1 c-2 c-3 c-4 c-5");
    sightings_release(&s);
}

/* Every pair of listings over four names: what is kept, new and gone is what sets say. */
static void test_all_pairs(void **state)
{
    (void)state;
    for (int a = 0; a < 16; a++)
        for (int b = 0; b < 16; b++) {
            char first[32] = "", second[32] = "", gone[32] = "";
            struct sightings s;

            for (int i = 0; i < 4; i++) {
                char name[8];

                snprintf(name, sizeof name, "c-%d ", i + 1);
                strcat(first, a >> i & 1 ? name : "");
                strcat(second, b >> i & 1 ? name : "");
                strcat(gone, (a & ~b) >> i & 1 ? name : "");
            }
            if (*gone)
                gone[strlen(gone) - 1] = '\0';
            sightings_init(&s, QUIET);
            see(&s, 0, first, 7, "");
            see(&s, 1, second, 7, gone);
            if (*second)
                second[strlen(second) - 1] = '\0';
            assert_string_equal(due(&s), second);
            sightings_release(&s);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life),      cmocka_unit_test(test_quiet_time), cmocka_unit_test(test_old_files),
        cmocka_unit_test(test_closed),    cmocka_unit_test(test_all_pairs),  cmocka_unit_test(test_markers),
        cmocka_unit_test(test_in_place),  cmocka_unit_test(test_other_kind), cmocka_unit_test(test_find),
        cmocka_unit_test(test_states),    cmocka_unit_test(test_deadline),   cmocka_unit_test(test_first_data),
        cmocka_unit_test(test_no_memory), cmocka_unit_test(test_found_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
