/*
 * records.c - files without a header, whose records have a label and an image of fixed sizes (--record-fields,
 * record_layout.h): how many images were published before there were formats for them. Files are those of data_files.h.
 */
#include "dataset/stream/fixed_dataset.h"
#include "dataset/stream/record_layout.h"

/* How many classes the labels of the training part need; 0: there is no such part. */
static int classes_of_training(const struct fixed_layout *layout, const char *directory,
                               const struct dataset_reading *how, struct error *e)
{
    struct error why = { 0 };
    struct data_files train;
    int rc = data_files_list(&train, directory, DATASET_TRAIN, how, &why);

    if (rc == OK)
        rc = fixed_dataset_classes(layout, &train, how, e);
    else
        rc = rc == ERR_ARG ? 0 : error_copy(e, &why);
    data_files_release(&train);
    return rc;
}

static int read_records(struct dataset_owned *o, const struct dataset_kind *kind, const char *directory,
                        enum dataset_split split, const struct shard *shard, const struct dataset_reading *how,
                        struct error *e)
{
    struct data_files files = { 0 };
    struct fixed_layout layout;
    int classes, rc;

    (void)kind;
    if ((rc = record_layout_parse(&layout, how->record, e)) == OK &&
        (rc = data_files_list(&files, directory, split, how, e)) == OK) {
        classes = how->classes || split == DATASET_TRAIN ? how->classes
                                                         : classes_of_training(&layout, directory, how, e);
        rc = classes < 0 ? classes : fixed_dataset_open(o, &layout, &files, classes, split, shard, how, e);
    }
    data_files_release(&files);
    return rc;
}

const struct dataset_kind dataset_kind_records = {
    .how_to_get = "it needs files of records that --record-fields describes",
    .takes = DATASET_TAKES_FILES | DATASET_TAKES_LABELS | DATASET_TAKES_RECORD,
    .read = read_records,
};
