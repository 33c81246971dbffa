#include "eventlog/read/log_filter.h"

#include "eventlog/public.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static char **copies(const char *const *from, size_t count)
{
    char **to = calloc(count + 1, sizeof *to);

    for (size_t i = 0; to && i < count; i++)
        if (!(to[i] = strdup(from[i]))) {
            while (i)
                free(to[--i]);
            free(to);
            return NULL;
        }
    return to;
}

int log_filter_init(struct log_filter *f, const struct eventlog_reader_options *o, struct error *e)
{
    static const struct eventlog_reader_options everything;

    memset(f, 0, sizeof *f);
    o = o ? o : &everything;
    f->first_step = o->has_first_step ? o->first_step : INT64_MIN;
    f->last_step = o->has_last_step ? o->last_step : INT64_MAX;
    f->numbers_only = o->numbers_only;
    f->records_only = o->records_only;
    f->runs = copies(o->runs, o->run_count);
    f->tags = copies(o->tags, o->tag_count);
    f->run_count = f->runs ? o->run_count : 0;
    f->tag_count = f->tags ? o->tag_count : 0;
    return f->runs && f->tags ? OK : error_memory(e, NULL, "for the names that are wanted");
}

void log_filter_release(struct log_filter *f)
{
    for (size_t i = 0; i < f->run_count; i++)
        free(f->runs[i]);
    for (size_t i = 0; i < f->tag_count; i++)
        free(f->tags[i]);
    free(f->runs);
    free(f->tags);
    memset(f, 0, sizeof *f);
}

static int matches(char *const *patterns, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!fnmatch(patterns[i], name, 0))
            return 1;
    return !count;
}

int log_filter_run(const struct log_filter *f, const char *run)
{
    return matches(f->runs, f->run_count, run);
}

int log_filter_tag(const struct log_filter *f, const char *tag)
{
    return matches(f->tags, f->tag_count, tag);
}

int log_filter_all_values(const struct log_filter *f)
{
    return !f->tag_count && !f->numbers_only && f->first_step == INT64_MIN && f->last_step == INT64_MAX;
}
