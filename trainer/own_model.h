/*
 * own_model.h - the model file of a training: its copy beside the checkpoints, CKPT/net.model, from which an evaluator
 * knows the model, and by which a resumed training knows that it has the same one.
 */
#ifndef TRAINER_OWN_MODEL_H
#define TRAINER_OWN_MODEL_H

#include "base/error.h"
#include "model/file/model_file.h"

/* Before a training goes on from a checkpoint in `checkpoint_directory`: ERR_ARG if what was trained there is another
 * model, and the sentence says which line differs. file NULL: a built-in model of that name. */
int own_model_check(const struct model_file *file, const char *name, const char *checkpoint_directory, struct error *e);

/* Makes the copy, by rename, before the first checkpoint. file NULL: none, and ERR_ARG if there is one although no
 * checkpoint was resumed from. */
int own_model_keep(const struct model_file *file, const char *name, const char *checkpoint_directory, struct error *e);

#endif
