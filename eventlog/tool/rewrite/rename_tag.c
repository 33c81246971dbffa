/* eventlog rename-tag: series under other names. */
#include "base/bytes.h"
#include "base/human.h"
#include "base/json.h"
#include "eventlog/tool/command.h"
#include "eventlog/tool/rewrite/rewrite_command.h"

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
    struct rewrite rewrite; /* its tags are those of the run at hand; values: their new names' numbers */
    struct rule rules[RULES_MOST];
    size_t count, matched;    /* matched: series that got another name */
    struct selection asked;   /* the old names, or regular expressions, by rule */
    struct option_list given; /* --rename */
    int regex, named;         /* named: something in the log names tags itself */
    struct tag_index taken;   /* of the run at hand: the new names; values: the old ones' numbers */
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

/* The new name of a tag: 1 and b, 0: unchanged, -1: no memory. The first rule that matches counts. */
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

/* The name that the tag has from now on, NULL if it keeps its own. */
static const struct tag_index_entry *renamed(const struct renaming *r, const struct tag_index_entry *tag)
{
    const struct tag_index_entry *new = &r->taken.entries[tag->value];

    return tag->length != new->length || memcmp(tag->text, new->text, new->length) != 0 ? new : NULL;
}

/* A tag that the run has not had before. */
static int add_tag(struct renaming *r, size_t number, struct error *e)
{
    struct tag_index_entry *tags = r->rewrite.tags.entries, *tag = &tags[number];
    struct buffer b = BUFFER_EMPTY;
    size_t taken = r->taken.count, name;
    int rc;

    r->named |= !strcmp(tag->text, "custom_scalars__config__") || !strcmp(tag->text, "_hparams_/experiment");
    if ((rc = new_name(r, tag->text, tag->length, &b)) == 0)
        buffer_append(&b, tag->text, tag->length);
    name = rc < 0 || !buffer_ok(&b) ? TAG_INDEX_NONE : tag_index_add(&r->taken, buffer_text(&b), b.length);
    buffer_release(&b);
    if (name == TAG_INDEX_NONE)
        return error_memory(e, NULL, "for %zu tags", number + 1);
    if (!r->taken.entries[name].length && tag->length)
        return error_set(e, ERR_ARG, "tag '%.80s' would be left without a name", tag->text);
    if (name < taken)
        return error_set(e, ERR_ARG, "tags '%.60s' and '%.60s' of one run would both be '%.60s'; nothing is written",
                         tags[r->taken.entries[name].value].text, tag->text, r->taken.entries[name].text);
    r->taken.entries[name].value = number;
    tag->value = name;
    r->matched += renamed(r, tag) != NULL;
    return OK;
}

static void rename_tag_end_run(void *context)
{
    struct renaming *r = context;

    tag_index_release(&r->rewrite.tags);
    tag_index_release(&r->taken);
}

static int rename_tag_choose(void *context, const struct rewrite_value *value, struct log_rewrite_choice *choice,
                             struct error *e)
{
    struct renaming *r = context;
    int rc = value->is_new ? add_tag(r, value->number, e) : OK;
    const struct tag_index_entry *new = rc == OK ? renamed(r, value->tag) : NULL;

    if (new) {
        choice->tag = new->text;
        choice->tag_length = new->length;
    }
    return rc;
}

/* The first argument is OLD=NEW, unless -e gives some, and so are those behind it that could be and are no files. */
static int rename_tag_arguments(void *context, int count, char **argv, int *first, struct error *e)
{
    struct renaming *r = context;
    int renaming = !r->given.count, rc = OK;

    for (; rc == OK && renaming && *first <= count; ++*first) {
        renaming = *first < count && strchr(argv[*first + 1], '=') && access(argv[*first + 1], F_OK) != 0;
        rc = parse_rule(r, argv[*first], e);
    }
    return rc;
}

static int rename_tag_check(void *context, struct error *e)
{
    struct renaming *r = context;
    int rc = OK;

    for (size_t i = 0; rc == OK && i < r->given.count; i++)
        rc = parse_rule(r, r->given.items[i], e);
    r->asked = (struct selection){ .matches = fits, .context = r };
    for (size_t i = 0; i < r->count; i++)
        option_list_add(&r->asked.patterns, r->rules[i].from);
    return rc;
}

static int rename_tag_tell(void *context)
{
    struct renaming *r = context;
    struct log *log = &r->rewrite.scan.log;
    char more[120], series[HUMAN_TEXT_MAX], values[HUMAN_TEXT_MAX];

    if (r->named && r->matched)
        log_line(log, "layouts of custom scalars and experiments of hyperparameters in it stay as they are, even if "
                      "they name renamed tags");
    if (r->rewrite.json)
        snprintf(more, sizeof more, ",\"series\":%zu,\"renamed\":%llu", r->matched,
                 (unsigned long long)r->rewrite.renamed);
    else
        snprintf(more, sizeof more, "; %s, %s renamed", human_count(r->matched, "series", series),
                 human_count(r->rewrite.renamed, "value", values));
    rewrite_print(&r->rewrite, "rename-tag", more);
    r->rewrite.scan.unmatched += selection_tell(&r->asked, r->regex ? "--regex" : "OLD", "tag", log);
    return r->matched > 0;
}

static void release(struct renaming *r)
{
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
    struct option table[] = {
        { OPTION_LIST, 'e', "rename", &r.given, "OLD=NEW",
          .help = "Rename tag OLD to NEW, and take all arguments as paths; may be repeated. Every OLD is a tag of the "
                  "old log, so two tags can swap names; the first OLD that matches counts" },
        { OPTION_FLAG, 0, "regex", &r.regex,
          .help = "Take OLD as a POSIX extended regular expression and replace its first match in a tag with NEW, in "
                  "which \\1 to \\9 stand for its groups" },
        REWRITE_OPTIONS(r.rewrite),
        REWRITE_IN_PLACE(r.rewrite),
    };
    const struct options options = {
        .program = "eventlog rename-tag",
        .usage = "[OPTION...] OLD=NEW... PATH... -o DIR | --in-place",
        .summary = "Copy a log with its tags renamed, or rename them in place. Values of all kinds, steps and wall "
                   "times are copied bit for bit. Graphs have no tag; a mesh keeps the name in its metadata, under "
                   "which TensorBoard lists it. Write \\= for a '=' in OLD. If two series of a run would get the same "
                   "name, that is an error and nothing is written. Damaged records are left out and reported. Exit "
                   "status: 0 done; 1 no tag matched, or damage; 2 usage or I/O.",
        .examples = "  eventlog rename-tag train_loss=loss/train logs -o renamed\n"
                    "  eventlog rename-tag --regex '^(.*)_[0-9]+$=\\1' --in-place logs/train\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 1,
        .wanted = "no OLD=NEW or no PATH given;",
    };
    const struct rewrite_command command = {
        &options,
        &r,
        .arguments = rename_tag_arguments,
        .check = rename_tag_check,
        .end_run = rename_tag_end_run,
        .choose = rename_tag_choose,
        .tell = rename_tag_tell,
    };
    int status = rewrite_command_run(&r.rewrite, &command, argc, argv);

    release(&r);
    return status;
}
