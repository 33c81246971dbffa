#include "trainer/timing/processor_use.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { STAT_MOST = 16 << 20 };

int processor_use_sum(const char *text, int (*may)(int processor, const void *context), const void *context,
                      double *ticks)
{
    int count = 0, processor;

    *ticks = 0;
    for (const char *line = text; line && *line; line = strchr(line, '\n'), line += line != NULL) {
        double user, nice, system, irq, softirq, steal;

        /* "cpu" alone is all of them */
        if (strncmp(line, "cpu", 3) != 0 || line[3] == ' ' ||
            sscanf(line, "cpu%d %lf %lf %lf %*f %*f %lf %lf %lf", &processor, &user, &nice, &system, &irq, &softirq,
                   &steal) != 7 ||
            (may && !may(processor, context)))
            continue;
        *ticks += user + nice + system + irq + softirq + steal;
        count++;
    }
    return count;
}

static int is_in(int processor, const void *set)
{
    return CPU_ISSET((size_t)processor, (const cpu_set_t *)set);
}

static double seconds_of(int who)
{
    struct rusage used;

    if (getrusage(who, &used) < 0)
        return 0;
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

void processor_use_now(struct processor_use *out)
{
    struct buffer text = BUFFER_EMPTY;
    cpu_set_t may;
    const int known = sched_getaffinity(0, sizeof may, &may) == 0; /* not with more than 1,024 processors */
    double ticks;

    memset(out, 0, sizeof *out);
    if (file_read("/proc/stat", STAT_MOST, &text, NULL) == OK &&
        (out->processors = processor_use_sum(buffer_text(&text), known ? is_in : NULL, &may, &ticks)) > 0) {
        out->all = ticks / (double)sysconf(_SC_CLK_TCK);
        out->own = seconds_of(RUSAGE_SELF) + seconds_of(RUSAGE_CHILDREN);
        out->since = clock_monotonic();
    }
    buffer_release(&text);
}

double processor_use_others(const struct processor_use *before, const struct processor_use *after)
{
    const double time = (after->since - before->since) * after->processors;
    const double share = (after->all - before->all - (after->own - before->own)) / time;

    if (before->processors != after->processors || !(time > 0))
        return -1;
    return share < 0 ? 0 : share > 1 ? 1 : share;
}
