#include "trainer/job.h"

#include "trainer/launch/mpirun_line.h"

#include <stdio.h>
#include <stdlib.h>

int job_wanted(const struct train_options *o, struct error *e)
{
    if (!o->launch.resource_info)
        return 0;
    return launch_may("resource-info", e) < 0 ? ERR_ARG : 1;
}

/* Makes the words that start the ranks. */
static int compose(const struct train_options *o, struct launch *l, struct error *e)
{
    struct strategy_options strategy = o->strategy;
    const struct strategy_servers *said = strategy.kind->servers ? strategy.kind->servers(&strategy) : NULL;
    const int by_default = said && !said->given && !said->per_host;
    const char *added[] = { by_default ? "--servers-per-host" : NULL, "1", NULL };
    const int servers = strategy_count_servers(&strategy, (int)l->hosts.count);
    const int rc = strategy.kind->workers(&strategy, mpirun_workers(&l->hosts) + servers, e);

    return rc < 0 ? rc : launch_compose(l, servers, added, e);
}

int job_start(const struct train_options *o, struct log *log)
{
    struct error e = { 0 };
    struct launch l;
    int rc = launch_open(&l, &o->launch, o->own_count, o->own, &e);

    if (rc == OK)
        rc = compose(o, &l, &e);
    if (rc == OK && o->launch.dry_run)
        rc = launch_print(&l, &e);
    else if (rc == OK && (rc = launch_check(&l, &e)) == OK)
        rc = launch_become(&l, &e);
    if (rc < 0)
        log_line(log, "trainer: %s", e.message);
    launch_release(&l);
    return rc < 0 ? EXIT_USAGE : EXIT_DONE;
}
