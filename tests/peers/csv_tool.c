/*
 * csv_tool.c - what --data csv makes of files, for the peer tests: csv_tool DIRECTORY PART [FORMAT] prints the class
 * names in quotes of JSON, then a line for each sample: its label and its numbers.
 */
#include "base/json.h"
#include "dataset/dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int print_samples(const struct dataset *d, struct error *e)
{
    void *room = malloc(dataset_bytes(d));
    const void *sample;
    size_t used;
    int rc = room ? OK : error_memory(e, NULL, "for a sample");

    for (size_t i = 0; i < d->count && rc == OK; i++) {
        if ((rc = dataset_read(d, i, room, &sample, &used, e)) < 0)
            break;
        printf("%lld", (long long)field_integer(&d->labels, used));
        for (size_t k = 0; k < dataset_width(d); k++)
            printf(" %.9g", d->element == ELEMENT_UINT8 ? (double)((const uint8_t *)sample)[k]
                                                        : (double)((const float *)sample)[k]);
        printf("\n");
    }
    free(room);
    return rc;
}

int main(int argc, char **argv)
{
    struct buffer names = BUFFER_EMPTY;
    struct dataset *d = NULL;
    struct error e = { 0 };
    int rc;

    if (argc < 3)
        return 2;
    rc = dataset_open_as(&d, "csv", argv[1], strcmp(argv[2], "test") ? DATASET_TRAIN : DATASET_TEST, NULL,
                         &(struct dataset_reading){ .csv = argv[3] }, &e);
    if (rc == OK) {
        for (int k = 0; d->class_names && k < d->classes; k++) {
            buffer_append_text(&names, k ? "," : "");
            json_text(&names, d->class_names[k]);
        }
        printf("[%s]\n", buffer_text(&names));
        rc = print_samples(d, &e);
    }
    if (rc < 0)
        fprintf(stderr, "csv_tool: %s\n", e.message);
    buffer_release(&names);
    dataset_free(d);
    return rc < 0;
}
