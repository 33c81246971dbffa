#include "trainer/collective/places.h"

#include "base/json.h"

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

static int one_name(const struct process *places, int a, int b)
{
    return !strcmp(places[a].host, places[b].host);
}

int places_before(const struct process *places, const char *late, int count, int rank)
{
    enum { KNOWS, SEES_LESS, MISSES_HOST, MISSES_MORE = 4 };
    int first = 0, marked = 0, apart = 0, near = 0, lower = 0, lower_here = 0;

    while (first < count && !late[first])
        first++;
    for (int r = 0; r < count; r++) {
        const int there = first < count && one_name(places, r, first);

        marked += late[r] != 0;
        apart |= late[r] && !there;
        near |= !late[r] && there;
        lower |= r < rank && !late[r];
        lower_here |= r < rank && !late[r] && one_name(places, r, rank);
    }
    if (marked > 1)
        return lower + (apart || near ? MISSES_MORE : MISSES_HOST);
    if (marked == 1 && one_name(places, first, rank))
        return lower_here + KNOWS;
    return lower + (near ? SEES_LESS : KNOWS);
}

double places_precedence(double deadline, int before)
{
    return before > 0 ? 3 * before + deadline / 10 : 0;
}

int places_same_host(const struct process *a, const struct process *b)
{
    return !strcmp(a->host, b->host) && !strcmp(a->boot, b->boot);
}

int places_hosts(const struct process *places, int count, int *hosts)
{
    int found = 0;

    for (int r = 0; r < count; r++) {
        int first = 0;

        while (first < r && !places_same_host(&places[first], &places[r]))
            first++;
        hosts[r] = first < r ? hosts[first] : found++;
    }
    return found;
}

/* Appends the ranks from `first` to before `end` on the host of rank `of`, as "workers 0-1, 3". Returns how many. */
static int append_role(struct buffer *out, const struct process *places, int of, int first, int end, const char *role)
{
    int found = 0, ranges = 0;

    for (int r = first; r < end; r++)
        found += places_same_host(&places[r], &places[of]);
    for (int r = first; r < end; r++) {
        const int begin = r;

        while (r < end && places_same_host(&places[r], &places[of]))
            r++;
        if (r == begin)
            continue;
        if (ranges++ == 0)
            buffer_format(out, "%s%s %d", role, found > 1 ? "s" : "", begin);
        else
            buffer_format(out, ", %d", begin);
        if (r - begin > 1)
            buffer_format(out, "-%d", r - 1);
    }
    return found;
}

/* The first rank on the host of rank r. */
static int first_there(const struct process *places, int r)
{
    int first = 0;

    while (!places_same_host(&places[first], &places[r]))
        first++;
    return first;
}

void places_roles(struct buffer *out, const struct process *places, int count, int workers)
{
    int hosts = 0;

    for (int r = 0; r < count; r++)
        hosts += first_there(places, r) == r;
    buffer_format(out, "%d host%s", hosts, hosts == 1 ? "" : "s");
    for (int r = 0, at = 0; r < count; r++) {
        if (first_there(places, r) != r)
            continue;
        buffer_format(out, "%s %s: ", at++ ? ";" : ":", places[r].host);
        append_role(out, places, r, workers, count,
                    append_role(out, places, r, 0, workers, "worker") > 0 ? ", server" : "server");
    }
}

/* Appends the numbers of the ranks from `first` to before `end` on the host of rank `of`. */
static void append_ranks(struct buffer *out, const struct process *places, int of, int first, int end)
{
    const char *comma = "";

    buffer_append_text(out, "[");
    for (int r = first; r < end; r++)
        if (places_same_host(&places[r], &places[of])) {
            buffer_format(out, "%s%d", comma, r);
            comma = ", ";
        }
    buffer_append_text(out, "]");
}

void places_json(struct buffer *out, const struct process *places, int count, int workers)
{
    buffer_append_text(out, "[");
    for (int r = 0; r < count; r++) {
        if (first_there(places, r) != r)
            continue;
        buffer_append_text(out, r ? ", {\"host\": " : "{\"host\": ");
        json_text(out, places[r].host);
        buffer_append_text(out, ", \"workers\": ");
        append_ranks(out, places, r, 0, workers);
        buffer_append_text(out, ", \"servers\": ");
        append_ranks(out, places, r, workers, count);
        buffer_append_text(out, "}");
    }
    buffer_append_text(out, "]");
}

int places_one_host(const struct process *places, int count)
{
    for (int r = 1; r < count; r++)
        if (!places_same_host(&places[r], &places[0]))
            return 0;
    return 1;
}
