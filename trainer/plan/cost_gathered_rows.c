/* `mpi` with --sparse-exchange all-gather (source: strategies.md, 5.1, 5): dense variables by all-reduce, and the rows
 * of tables that each worker's batch uses sent to all other workers. */
#include "trainer/plan/cost.h"
#include "trainer/plan/row_traffic.h"

static int gathered_rows_cost(const struct plan_work *w, const struct plan_machine *m, const struct plan_shape *s,
                              struct plan_cost *out, struct error *e)
{
    const struct row_traffic t = row_traffic_gathered(w, m, s);
    struct plan_work dense = *w;
    int rc;

    if (w->rows.rows > 0) {
        dense.elements = row_traffic_dense(w);
        dense.finals = NULL;
        dense.final_count = 0;
    }
    if ((rc = plan_allreduce.cost(&dense, m, s, out, e)) < 0)
        return rc;
    out->seconds += t.seconds;
    out->steps = 1 / out->seconds;
    out->bytes += t.worker;
    return OK;
}

const struct plan_strategy plan_gathered_rows = {
    .name = "mpi:sparse-exchange=all-gather",
    .help = "an all-reduce, but for tables, of which each worker sends the rows in use to all others",
    .rows = 1,
    .cost = gathered_rows_cost,
};
