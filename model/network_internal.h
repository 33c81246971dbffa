/*
 * network_internal.h - what network.c and network_builder.c share: the table of variables and the plan being built.
 */
#ifndef MODEL_NETWORK_INTERNAL_H
#define MODEL_NETWORK_INTERNAL_H

#include "model/network_builder.h"
#include "model/network_plan.h"

struct network_builder {
    const struct model *model;
    int table_only;             /* variables without layers' memory */
    struct variable *variables; /* in order of construction */
    size_t variable_count, variable_room;
    size_t parameters, statistics; /* reals so far */
    struct network_plan plan;
    struct error error;         /* the first mistake */
};

void network_builder_init(struct network_builder *b, const struct model *model);
void network_builder_release(struct network_builder *b);

#endif
