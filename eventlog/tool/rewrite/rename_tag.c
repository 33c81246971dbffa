/* eventlog rename-tag: series under other names. */
#include "base/bytes.h"
#include "base/human.h"
#include "base/json.h"
#include "eventlog/format/tag_index.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/rewrite/rewrite.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RULES_MOST = OPTION_LIST_MOST, GROUPS = 10 };

struct rule {
    char *from, *to; /* from's own memory */
    regex_t regex;
    int compiled;
};

struct renaming {
    struct rewrite rewrite;
    struct rule rules[RULES_MOST];
    size_t count, matched; /* matched: series that got another name */
    struct selection asked; /* the old names, or regular expressions, by rule */
    int regex, named; /* named: something in the log names tags itself */
    struct tag_index tags, taken; /* of this run: old names, value the new one's number; new names, value the old's */
};

/* OLD=NEW; "\=" stands for a '=' that is part of a name. */
static int parse_rule(struct renaming *r, const char *text, struct error *e)
{
    struct rule *rule = &r->rules[r->count];
    char *out;

    if (r->count == RULES_MOST)
        return error_set(e, ERR_ARG, "more than %d names to change", RULES_MOST);
    if (!(rule->from = out = malloc(strlen(text) + 2)))
        return error_memory(e, NULL, "for a name");
    r->count++;
    for (const char *p = text; *p; p++) {
        if (*p == '\\' && p[1] == '=') {
            *out++ = *++p;
        } else if (*p == '=' && !rule->to) {
            *out++ = '\0';
            rule->to = out;
        } else {
            *out++ = *p;
        }
    }
    *out = '\0';
    if (!rule->to || (!*rule->to && !r->regex) || !*rule->from)
        return error_set(e, ERR_ARG, "'%.80s' is not OLD=NEW with names on both sides", text);
    if (!utf8_valid(rule->to, strlen(rule->to), NULL))
        return error_set(e, ERR_ARG, "'%.80s' is not UTF-8; TensorBoard would stop reading the file", text);
    if (r->regex) {
        char why[120];
        int bad = regcomp(&rule->regex, rule->from, REG_EXTENDED);

        if (bad) {
            regerror(bad, &rule->regex, why, sizeof why);
            return error_set(e, ERR_ARG, "'%.80s' is not a regular expression: %s", rule->from, why);
        }
        rule->compiled = 1;
    }
    return OK;
}

/* The first match in the tag replaced; 1 done, 0 no match, -1 no memory. */
static int substitute(const struct rule *rule, const char *tag, struct buffer *out)
{
    regmatch_t m[GROUPS];

    if (regexec(&rule->regex, tag, GROUPS, m, 0) != 0)
        return 0;
    buffer_append(out, tag, (size_t)m[0].rm_so);
    for (const char *p = rule->to; *p; p++) {
        int group = *p == '\\' && p[1] >= '0' && p[1] <= '9' ? *++p - '0' : -1;

        if (group < 0 && *p == '\\' && p[1] == '\\')
            p++;
        if (group < 0)
            buffer_append_byte(out, (unsigned char)*p);
        else if (m[group].rm_so >= 0)
            buffer_append(out, tag + m[group].rm_so, (size_t)(m[group].rm_eo - m[group].rm_so));
    }
    buffer_append_text(out, tag + m[0].rm_eo);
    return buffer_ok(out) ? 1 : -1;
}

static int fits(const void *context, size_t i, const char *tag)
{
    const struct renaming *r = context;

    return r->regex ? !regexec(&r->rules[i].regex, tag, 0, NULL, 0) : !strcmp(r->rules[i].from, tag);
}

/* What a tag is called from now on: 1 and b, 0 as before, -1 no memory. The first rule that fits counts. */
static int new_name(struct renaming *r, const char *tag, size_t n, struct buffer *b)
{
    size_t i = 0;

    if (strlen(tag) != n || !selection_wants(&r->asked, tag)) /* no rule names a tag with a NUL in it */
        return 0;
    while (i + 1 < r->count && !fits(r, i, tag))
        i++;
    if (r->regex)
        return substitute(&r->rules[i], tag, b);
    buffer_append_text(b, r->rules[i].to);
    return buffer_ok(b) ? 1 : -1;
}

static int rename_tag_no_memory(const struct renaming *r, struct error *e)
{
    return error_memory(e, NULL, "for %zu tags", r->tags.count + 1);
}

static int is_renamed(const struct renaming *r, size_t number)
{
    const struct tag_index_entry *old = &r->tags.entries[number], *new = &r->taken.entries[old->value];

    return old->length != new->length || memcmp(old->text, new->text, new->length) != 0;
}

/* A tag that the run has not had before: its number. */
static int add_tag(struct renaming *r, const char *tag, size_t n, size_t *number, struct error *e)
{
    struct buffer b = BUFFER_EMPTY;
    size_t taken = r->taken.count, name;
    const char *old;
    int rc;

    if ((*number = tag_index_add(&r->tags, tag, n)) == TAG_INDEX_NONE)
        return rename_tag_no_memory(r, e);
    old = r->tags.entries[*number].text;
    r->named |= !strcmp(old, "custom_scalars__config__") || !strcmp(old, "_hparams_/experiment");
    if ((rc = new_name(r, old, n, &b)) == 0)
        buffer_append(&b, old, n);
    name = rc < 0 || !buffer_ok(&b) ? TAG_INDEX_NONE : tag_index_add(&r->taken, buffer_text(&b), b.length);
    buffer_release(&b);
    if (name == TAG_INDEX_NONE)
        return rename_tag_no_memory(r, e);
    if (!r->taken.entries[name].length && n)
        return error_set(e, ERR_ARG, "tag '%.80s' would be left without a name", old);
    if (name < taken)
        return error_set(e, ERR_ARG, "tags '%.60s' and '%.60s' of one run would both be '%.60s'; nothing is written",
                         r->tags.entries[r->taken.entries[name].value].text, old, r->taken.entries[name].text);
    r->taken.entries[name].value = *number;
    r->tags.entries[*number].value = name;
    r->matched += (size_t)is_renamed(r, *number);
    return OK;
}

static void rename_tag_forget(struct renaming *r)
{
    tag_index_release(&r->tags);
    tag_index_release(&r->taken);
}

static int rename_tag_begin_run(void *context, const struct log_run *run, struct error *e)
{
    (void)run;
    (void)e;
    rename_tag_forget(context);
    return OK;
}

static int rename_tag_choose(void *context, const struct event *event, const struct event_value *v, size_t place,
                             struct log_rewrite_choice *choice, struct error *e)
{
    struct renaming *r = context;
    size_t number;
    int rc = OK;

    (void)event;
    (void)place;
    if (!v)
        return OK;
    if ((number = tag_index_find(&r->tags, v->tag, v->tag_length)) == TAG_INDEX_NONE)
        rc = add_tag(r, v->tag, v->tag_length, &number, e);
    if (rc == OK && is_renamed(r, number)) {
        choice->tag = r->taken.entries[r->tags.entries[number].value].text;
        choice->tag_length = r->taken.entries[r->tags.entries[number].value].length;
    }
    return rc;
}

static void rename_tag_print(struct renaming *r)
{
    char more[120], series[HUMAN_TEXT_MAX], values[HUMAN_TEXT_MAX];

    if (r->named && r->matched)
        log_line(&r->rewrite.scan.log, "the layouts of custom scalars and experiments of hyperparameters in it stay as "
                 "they are, also where they name tags");
    if (r->rewrite.json)
        snprintf(more, sizeof more, ",\"series\":%zu,\"renamed\":%llu", r->matched,
                 (unsigned long long)r->rewrite.renamed);
    else
        snprintf(more, sizeof more, "; %s, %s under new names", human_count(r->matched, "series", series),
                 human_count(r->rewrite.renamed, "value", values));
    rewrite_print(&r->rewrite, "rename-tag", more);
}

static void release(struct renaming *r)
{
    rename_tag_forget(r);
    selection_release(&r->asked);
    for (size_t i = 0; i < r->count; i++) {
        if (r->rules[i].compiled)
            regfree(&r->rules[i].regex);
        free(r->rules[i].from);
    }
}

int command_rename_tag(int argc, char **argv)
{
    struct renaming r = { .regex = 0 };
    struct option_list rules = { .count = 0 };
    struct option table[] = {
        { OPTION_LIST, 'e', "rename", &rules, "OLD=NEW", .help = "Rename tag OLD to NEW, instead of what the first "
          "arguments name; may be repeated. Every OLD is a tag of the old log, so two tags can swap names; the first "
          "that matches counts" },
        { OPTION_FLAG, 0, "regex", &r.regex, .help = "Take OLD as a POSIX extended regular expression and replace its "
          "first match in a tag by NEW, in which \\1 to \\9 stand for its groups" },
        REWRITE_OPTIONS(r.rewrite), REWRITE_IN_PLACE(r.rewrite),
    };
    const struct options options = {
        .program = "eventlog rename-tag", .usage = "[OPTION...] OLD=NEW... PATH... -o DIR | --in-place",
        .summary = "Copy a log with other tags, or rename them in place. Values of all kinds, steps and wall times are "
                   "copied bit for bit. Graphs have no tag; a mesh keeps the name in its metadata, under which "
                   "TensorBoard lists it. Write \\= for a '=' that belongs to OLD. It is an error if two series of a "
                   "run would get the same name; then nothing is written. Damaged records are left out and reported. "
                   "Exit status: 0 done; 1 no tag matched, or damage; 2 usage or I/O.",
        .examples = "  eventlog rename-tag train_loss=loss/train logs -o renamed\n"
                    "  eventlog rename-tag --regex '^(.*)_[0-9]+$=\\1' --in-place logs/train\n",
        .table = table, .count = sizeof table / sizeof *table, .least = 1,
        .wanted = "no OLD=NEW or no PATH given;",
    };
    const struct rewrite_filter filter = { &r, rename_tag_begin_run, rename_tag_choose };
    struct scan *scan = &r.rewrite.scan;
    struct error e = { 0 };
    int count = 0, first, renaming = 0, status, rc = scan_begin(&r.rewrite.scan, &options, argc, argv, &count, &e);

    /* The first argument is OLD=NEW, unless -e gives some, and so are those behind it that could be and are no
     * files. */
    for (first = 1; rc == OK && first <= count && (first == 1 ? !rules.count : renaming); first++) {
        renaming = first < count && strchr(argv[first + 1], '=') && access(argv[first + 1], F_OK) != 0;
        rc = parse_rule(&r, argv[first], &e);
    }
    if (rc == OK && first > count)
        rc = error_set(&e, ERR_ARG, "no PATH given; run '%s --help' for help", options.program);
    for (size_t i = 0; rc == OK && i < rules.count; i++)
        rc = parse_rule(&r, rules.items[i], &e);
    r.asked = (struct selection){ .matches = fits, .context = &r };
    for (size_t i = 0; i < r.count; i++)
        option_list_add(&r.asked.patterns, r.rules[i].from);
    status = rc == OK ? rewrite_open(&r.rewrite, argv + first, (size_t)(count - first + 1))
                      : scan_leave(&r.rewrite.scan, rc, &e);
    if (rc == OK && status == EXIT_DONE) {
        if ((rc = rewrite_filter(&r.rewrite, &filter, &e)) == OK)
            rename_tag_print(&r);
        if (rc == OK)
            scan->unmatched += selection_tell(&r.asked, r.regex ? "--regex" : "OLD", "tag", &scan->log);
        status = rewrite_close(&r.rewrite, rc, r.matched > 0, &e);
    }
    release(&r);
    return status;
}
