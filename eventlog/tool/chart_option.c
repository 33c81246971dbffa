#include "eventlog/tool/chart_option.h"

#include <stdlib.h>
#include <string.h>

struct words {
    const char *category, *title, *tags; /* tags: NULL once it is placed */
};

/* Splits an option in a copy, which the layout keeps. */
static int split(struct chart_layout *layout, const char *option, struct words *out, struct error *e)
{
    char *text = strdup(option), *tags, *title;

    if (!text)
        return error_memory(e, NULL, "for a chart");
    layout->words[layout->word_count++] = text;
    if (!(tags = strchr(text, '=')) || !tags[1])
        return error_set(e, ERR_ARG, "--chart: '%.80s' is not [CATEGORY/]TITLE=TAGS", option);
    *tags++ = '\0';
    if ((title = strchr(text, '/')))
        *title++ = '\0';
    *out = (struct words){ title ? text : "charts", title ? title : text, tags };
    if (!*out->category || !*out->title)
        return error_set(e, ERR_ARG, "--chart: '%.80s' has no title", option);
    return OK;
}

int chart_layout_parse(struct chart_layout *layout, const struct option_list *list, struct error *e)
{
    struct words words[CHART_OPTIONS_MOST];
    size_t charts = 0, tags = 0;

    *layout = (struct chart_layout){ .count = 0 };
    for (size_t i = 0; i < list->count; i++)
        if (split(layout, list->items[i], &words[i], e) != OK)
            return e->code;
    for (size_t i = 0; i < list->count; i++) {
        struct eventlog_category *category = &layout->categories[layout->count];

        if (!words[i].tags)
            continue;
        *category = (struct eventlog_category){ .title = words[i].category, .charts = layout->charts + charts };
        layout->count++;
        for (size_t k = i; k < list->count; k++) {
            struct eventlog_chart *chart = &layout->charts[charts];

            if (!words[k].tags || strcmp(words[k].category, words[i].category) != 0)
                continue;
            *chart = (struct eventlog_chart){ .title = words[k].title, .tags = layout->tags + tags };
            charts++;
            category->chart_count++;
            for (size_t n = k; n < list->count; n++)
                if (words[n].tags && !strcmp(words[n].category, words[k].category) &&
                    !strcmp(words[n].title, words[k].title)) {
                    layout->tags[tags++] = words[n].tags;
                    chart->tag_count++;
                    words[n].tags = NULL;
                }
        }
    }
    return OK;
}

void chart_layout_release(struct chart_layout *layout)
{
    for (size_t i = 0; i < layout->word_count; i++)
        free(layout->words[i]);
    layout->word_count = 0;
}
