/* What a command prints: in one piece and in small ones it must give the same metrics or the same complaint. */
#include "evaluator/score/metric_output.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int parse(const char *text, size_t n, size_t piece, struct evaluation_metrics *metrics)
{
    struct metric_output o;
    int rc;

    metric_output_init(&o, "alone");
    for (size_t at = 0; at < n; at += piece)
        metric_output_add(&o, text + at, n - at < piece ? n - at : piece, metrics);
    rc = metric_output_finish(&o, metrics, NULL);
    metric_output_release(&o);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct evaluation_metrics whole = { NULL, 0, 0 }, pieces = { NULL, 0, 0 };
    int rc = parse((const char *)data, size, size + 1, &whole);

    if (parse((const char *)data, size, 3, &pieces) != rc || whole.count != pieces.count)
        abort();
    for (size_t i = 0; i < whole.count; i++)
        if (strcmp(whole.items[i].name, pieces.items[i].name) ||
            memcmp(&whole.items[i].value, &pieces.items[i].value, sizeof(double)))
            abort();
    evaluation_metrics_release(&whole);
    evaluation_metrics_release(&pieces);
    return 0;
}
