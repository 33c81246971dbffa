#include "trainer/server/server_seats.h"

#include "trainer/collective/places.h"

#include <stdlib.h>

int server_seats(const struct process *places, int count, int per_host, int *order, struct error *e)
{
    char *serves = calloc((size_t)count, 1);
    int servers = 0, workers = 0, at = 0;

    if (!serves)
        return error_memory(e, NULL, "for the places of %d ranks", count);
    for (int r = 0; r < count; r++) {
        int after = 0, here = 0;

        for (int other = 0; other < count; other++)
            if (places_same_host(&places[other], &places[r])) {
                here++;
                after += other > r;
            }
        if (here <= per_host) {
            free(serves);
            return error_set(
                e, ERR_ARG,
                "--servers-per-host %d leaves no worker on host %s, which has %d rank%s; start at least %d "
                "on each host",
                per_host, places[r].host, here, here == 1 ? "" : "s", per_host + 1);
        }
        serves[r] = after < per_host;
        servers += serves[r];
    }
    for (int r = 0; r < count; r++)
        order[serves[r] ? count - servers + at++ : workers++] = r;
    free(serves);
    return servers;
}
