#include "trainer/collective/places.h"

#include <string.h>

/* The first rank from r on that has the mark; count: none. */
static int next(const char *marks, int r, int count, char mark)
{
    while (r < count && marks[r] != mark)
        r++;
    return r;
}

int places_text(struct buffer *out, const struct process *places, const char *marks, int count, char mark)
{
    int marked = 0, first = next(marks, 0, count, mark);

    for (int r = first; r < count; r = next(marks, r + 1, count, mark))
        marked++;
    for (int r = first, after; r < count; r = after) {
        after = next(marks, r + 1, count, mark);
        buffer_format(out, "%s%d", r > first ? ", " : marked > 1 ? "ranks " : "rank ", r);
        if (places && (after == count || strcmp(places[r].host, places[after].host) != 0))
            buffer_format(out, " on host %s", places[r].host);
    }
    return marked;
}

int places_scattered(const struct process *places, const char *marks, int count)
{
    int first = 0, several = 0, apart = 0;

    while (first < count && !marks[first])
        first++;
    for (int r = 0; r < count; r++) {
        several |= r > first && marks[r];
        apart |= !marks[r] != (strcmp(places[r].host, places[first < count ? first : 0].host) != 0);
    }
    return several && apart;
}

double places_precedence(double deadline, int before)
{
    return before > 0 ? 3 * before + deadline / 10 : 0;
}

static int together(const struct process *a, const struct process *b)
{
    return !strcmp(a->host, b->host) && !strcmp(a->boot, b->boot);
}

int places_hosts(const struct process *places, int count, int *hosts)
{
    int found = 0;

    for (int r = 0; r < count; r++) {
        int first = 0;

        while (first < r && !together(&places[first], &places[r]))
            first++;
        hosts[r] = first < r ? hosts[first] : found++;
    }
    return found;
}

int places_one_host(const struct process *places, int count)
{
    for (int r = 1; r < count; r++)
        if (!together(&places[r], &places[0]))
            return 0;
    return 1;
}
