/* Points out of CSV and JSON lines: each case is the text and the points that come out, or the sentence. */
#include "eventlog/read/point_input.h"

#include "base/buffer.h"
#include "base/number.h"
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Wanted: "run|tag|step|wall time|value" with ';' behind each, "-" for what is not given; bad lines as "!sentence;". */
static const struct {
    const char *name, *text, *want;
} cases[] = {
    { "long", "run,tag,step,value,wall_time\n.,loss,0,0.5,1700000000.25\na/b,\"x,\"\"y\"\"\",-3,nan,1.0\n",
      ".|loss|0|1700000000.25|0.5;a/b|x,\"y\"|-3|1.0|nan;" },
    { "other order, no run", "value,step,tag\n1e-5,7,t\n-inf,8,t", "-|t|7|-|1e-05;-|t|8|-|-inf;" },
    { "a tag over two lines", "tag,step,value\n\"a\nb\",1,2\nc,3,4", "-|a\nb|1|-|2.0;-|c|3|-|4.0;" },
    { "CR LF, empty lines, a mark", "\xef\xbb\xbftag,step,value\r\n\r\nt,1,2\r\n", "-|t|1|-|2.0;" },
    { "further columns", "tag,step,value,note\nt,1,2,hello\n", "-|t|1|-|2.0;" },
    { "wide", "step,a,\"b,c\"\n1,2,3\n2,,4\n3,,\n", "-|a|1|-|2.0;-|b,c|1|-|3.0;-|b,c|2|-|4.0;" },
    { "wide with run and time", "run,step,wall_time,a,tag:step,tag:other\nr,5,1.5,1,2,3\n",
      "r|a|5|1.5|1.0;r|step|5|1.5|2.0;r|tag:other|5|1.5|3.0;" },
    { "wide with a series called value", "step,value\n1,2\n", "-|value|1|-|2.0;" },
    { "steps as pandas writes them", "step,a\n10.0,1\n1.5,1\n1e300,1\n",
      "-|a|10|-|1.0;!'1.5' is not a step;"
      "!'1e300' is not a step;" },
    { "large steps", "step,a\n9223372036854775807,1\n-9223372036854775808,1\n9223372036854775808,1\n",
      "-|a|9223372036854775807|-|1.0;-|a|-9223372036854775808|-|1.0;!'9223372036854775808' is not a step;" },
    { "bad lines", "tag,step,value\nt,1\nt,x,1\nt,1,x\nt,1,\n\"t\"x,1,2\nt,1,2",
      "!2 columns, but the header has 3;"
      "!'x' is not a step;!'x' is not a number;!'' is not a number;!text after the quotes of column 1;-|t|1|-|2.0;" },
    { "tabs", "run\ttag\tstep\tvalue\n.\ta,\"b\\t\\\\\\n\t1\t2\nr\tc\t3\t4\r\n", ".|a,\"b\t\\\n|1|-|2.0;r|c|3|-|4.0;" },
    { "tabs and backslashes", "step\ta\\\n1\t2\\\n1\t\\x\n1\t2\n",
      "!'2\\' is not a number;!'\\x' is not a number;-|a\\|1|-|2.0;" },
    { "wide with tabs", "step\ta,b\tc\n1\t\t2\n", "-|c|1|-|2.0;" },
    { "no step", "a,b\n1,2\n", "!the header has no column 'step';!no header before it;" },
    { "no series", "step\n1\n",
      "!the header has no column 'step' with columns of tags beside it, nor 'tag' and 'value';!no header before it;" },
    { "two columns", "step,step\n1,2", "!two columns are called 'step';!no header before it;" },
    { "an open quote", "tag,step,value\n\"t,1,2\nu,1,2\n", "!a quoted field is not closed;" },
    { "blanks around numbers", "step,a,b\n 1, 2 ,  \n", "-|a|1|-|2.0;" },
    { "hexadecimal is none", "step,a\n1,0x10\n", "!'0x10' is not a number;" },
    { "json",
      "{\"run\":\".\",\"tag\":\"a\\u00e9\\ud83d\\ude00\\n\",\"step\":1,\"wall_time\":2.5,\"value\":\"NaN\"}\n"
      "  {\"value\" : -1e3 , \"tag\":\"b\", \"step\": 2 ,\"more\":[1,{\"x\":\"}\"}], \"ok\":true}\r\n",
      ".|a\xc3\xa9\xf0\x9f\x98\x80\n|1|2.5|nan;-|b|2|-|-1000.0;" },
    { "wide json", "{\"step\":3,\"loss\":0.5,\"acc\":1,\"phase\":\"train\",\"ok\":false,\"odd\":Infinity,\"s\":\"1\"}",
      "-|loss|3|-|0.5;-|acc|3|-|1.0;-|odd|3|-|inf;" },
    { "names in Unicode", "{\"step\":1,\"\\u0041\\u00DF\\u4E16\\uE000\\ud83D\\uDE00\":1}",
      "-|A\xc3\x9f\xe4\xb8\x96\xee\x80\x80\xf0\x9f\x98\x80|1|-|1.0;" },
    { "what JSON does not say",
      "{\"step\":1,\"a\":-Infinity,\"wall_time\":null}\n{\"step\":\"x\",\"a\":1}\n{\"wall_time\":\"x\"}\n[]\n "
      "\n{\"step\":1,\"type\":\"x\",\"value\":2},\n",
      "-|a|1|-|-inf;!'x' is not a step;!'x' is not a wall time;-|value|1|-|2.0;" },
    { "times and steps that are not there", "step,wall_time,a\n1,,2\n,1,3\n4,x,5\n",
      "-|a|1|-|2.0;!'' is not a step;!'x' is not a wall time;" },
    { "no points", "{\"type\":\"image\",\"step\":1,\"tag\":\"x\"}\n{\"step\":1,\"phase\":\"x\"}\n", "" },
    { "array", "[\n{\"tag\":\"a\",\"step\":1,\"value\":1},\n{\"tag\":\"a\",\"step\":2,\"value\":2}\n]\n",
      "-|a|1|-|1.0;-|a|2|-|2.0;" },
    { "bad json",
      "{\"tag\":\"a\"}\n{\"tag\":\"a\",\"step\":1}\n{\"tag\":1,\"step\":1,\"value\":2}\n{\"step\":1,\"a\":1}x\n{,}\n"
      "{\"tag\":\"a\",\"step\":1,\"value\":null}\n{\"step\":1,\"a\":1-1}\nx\n{\"step\":1,\"a\":2}",
      "!no \"step\" in the object;!no \"value\" in the object;!\"tag\" is not a string;!not a JSON object at column 17;"
      "!not a JSON object at column 2;!'' is not a number;!'1-1' is not a number;!not a JSON object at column 1;"
      "-|a|1|-|2.0;" },
};

static int visit(void *context, const struct point_input_point *p, struct error *e)
{
    struct buffer *b = context;
    char number[NUMBER_TEXT_MAX];

    (void)e;
    buffer_format(b, "%s|%s|%lld|", p->run ? p->run : "-", p->tag, (long long)p->step);
    number_text(p->wall_time, number);
    buffer_format(b, "%s|", p->has_wall_time ? number : "-");
    number_text(p->value, number);
    buffer_format(b, "%s;", number);
    return OK;
}

static void read_all(const char *text, size_t n, const char *tag, struct buffer *b)
{
    struct point_input *p;
    struct error e = { 0 };

    assert_int_equal(point_input_new(&p, POINT_INPUT_AUTO, tag, NULL), OK);
    for (const char *at = text, *end = text + n; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));

        if (point_input_line(p, at, (size_t)((stop ? stop : end) - at), visit, b, &e) != OK)
            buffer_format(b, "!%s;", e.message);
        at = stop ? stop + 1 : end;
    }
    if (point_input_end(p, &e) != OK)
        buffer_format(b, "!%s;", e.message);
    point_input_free(p);
}

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buffer b = BUFFER_EMPTY;

        print_message("%s\n", cases[i].name);
        read_all(cases[i].text, strlen(cases[i].text), NULL, &b);
        assert_string_equal(buffer_text(&b), cases[i].want);
        buffer_release(&b);
    }
}

static void test_a_tag_from_outside(void **state)
{
    static const char download[] = "Wall time,Step,Value\r\n1700000000.5,3,0.25\r\n";
    struct buffer b = BUFFER_EMPTY;

    (void)state;
    read_all(download, strlen(download), "loss", &b);
    assert_string_equal(buffer_text(&b), "-|loss|3|1700000000.5|0.25;");
    buffer_clear(&b);
    read_all("{\"step\":1,\"value\":2}\n", 21, "loss", &b);
    assert_string_equal(buffer_text(&b), "-|loss|1|-|2.0;");
    buffer_release(&b);
}

static void test_nul_bytes(void **state)
{
    struct buffer b = BUFFER_EMPTY;

    (void)state;
    read_all("step,a\n1,\0"
             "2\n1,3\n",
             16, NULL, &b);
    assert_string_equal(buffer_text(&b), "!a NUL byte;-|a|1|-|3.0;");
    buffer_clear(&b);
    read_all("{\"step\":1,\"a\\u0000\":1}", 22, NULL, &b);
    assert_string_equal(buffer_text(&b), "!not a JSON object at column 19;");
    buffer_release(&b);
}

/* Rows without an end, and with more columns than can be. */
static void test_too_long(void **state)
{
    struct buffer b = BUFFER_EMPTY, text = BUFFER_EMPTY;

    (void)state;
    point_input_free(NULL);
    buffer_append_text(&text, "tag,step,value\n\"");
    for (int i = 0; i < 17; i++) {
        memset(buffer_reserve(&text, 1 << 20), 'x', 1 << 20);
        text.length += 1 << 20;
        buffer_append_byte(&text, '\n');
    }
    buffer_append_text(&text, "t,1,2\n");
    read_all(buffer_text(&text), text.length, NULL, &b);
    assert_non_null(strstr(buffer_text(&b), "!a row of more than 16777216 bytes: is a quote not closed?;"));
    buffer_clear(&text);
    buffer_clear(&b);
    for (int i = 0; i < 300000; i++)
        buffer_append_byte(&text, ',');
    read_all(buffer_text(&text), text.length, NULL, &b);
    assert_string_equal(buffer_text(&b), "!more than 100000 columns;");
    buffer_release(&text);
    buffer_release(&b);
}

/* Whatever is wrong in a line of JSON, it is told, and the next line is read. */
static void test_bad_json(void **state)
{
    static const char *const bad[] = { "\"\\u00z0\":1",
                                       "\"\\u00",
                                       "\"\\ud83d\":1",
                                       "\"\\ud83d\\n\":1",
                                       "\"\\ud83dx\":1",
                                       "\"\\ud83d\\u0041\":1",
                                       "\"\\ud83d\\ue000\":1",
                                       "\"\\ud83d\\uzzzz\":1",
                                       "\"\\udc00\":1",
                                       "\"\\u0000\":1",
                                       "\"\\q\":1",
                                       "\"a\\",
                                       "\"a\tb\":1",
                                       "\"a",
                                       "\"a\" 1",
                                       "\"a\":",
                                       "\"a\":[}",
                                       "\"a\":{]",
                                       "\"a\":[1",
                                       "\"a\":[\"\\q\"]",
                                       "\"a\":tru",
                                       "\"a\":1 2",
                                       "\"a\":1,,",
                                       "\"a\":1}}" };
    struct buffer text = BUFFER_EMPTY, got = BUFFER_EMPTY;

    (void)state;
    for (size_t i = 0; i <= sizeof bad / sizeof *bad; i++) {
        buffer_clear(&text);
        buffer_clear(&got);
        buffer_append_text(&text, "{\"step\":1,");
        if (i < sizeof bad / sizeof *bad)
            buffer_append_text(&text, bad[i]);
        else
            buffer_append_text(&text, "\"a\":");
        for (int k = 0; i == sizeof bad / sizeof *bad && k < 65; k++) /* too deep */
            buffer_append_byte(&text, '[');
        buffer_append_text(&text, "}\n{\"step\":1,\"b\":2}\n");
        read_all(buffer_text(&text), text.length, NULL, &got);
        if (strncmp(buffer_text(&got), "!not a JSON object at column ", 29) != 0 ||
            !strstr(buffer_text(&got), ";-|b|1|-|2.0;"))
            fail_msg("%s: %s", buffer_text(&text), buffer_text(&got));
    }
    buffer_release(&text);
    buffer_release(&got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),     cmocka_unit_test(test_bad_json),
        cmocka_unit_test(test_too_long),  cmocka_unit_test(test_a_tag_from_outside),
        cmocka_unit_test(test_nul_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
