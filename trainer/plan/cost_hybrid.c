/* Parallax's hybrid (source: strategies.md, 6): dense variables by all-reduce, tables on servers (row_traffic.h). */
#include "trainer/plan/cost.h"
#include "trainer/plan/row_traffic.h"

#include <math.h>

static int hybrid_cost(const struct plan_work *w, const struct plan_machine *m, const struct plan_shape *s,
                       struct plan_cost *out, struct error *e)
{
    const struct row_traffic t = row_traffic_of(w, m, s, !w->apart && !row_traffic_one_host(s));
    struct plan_shape without_servers = *s;
    struct plan_work dense = *w;
    int rc;

    without_servers.servers = 0;
    if (w->rows.rows > 0) {
        const size_t tables = w->elements - row_traffic_dense(w);

        dense.elements = w->elements - tables;
        dense.rounded = w->rounded > tables ? w->rounded - tables : 0; /* rows of tables stay float32 */
        dense.finals = NULL;
        dense.final_count = 0;
    }
    if ((rc = plan_allreduce.cost(&dense, m, &without_servers, out, e)) < 0)
        return rc;
    out->seconds += t.seconds;
    out->steps = 1 / out->seconds;
    out->bytes += t.worker;
    out->on_server = t.server > out->bytes;
    out->bytes = fmax(out->bytes, t.server);
    return OK;
}

const struct plan_strategy plan_hybrid = {
    .name = "hybrid",
    .help = "tables on parameter servers, of which the rows in use travel; all else by all-reduce",
    .servers = 1,
    .rows = 1,
    .cost = hybrid_cost,
};
