/*
 * model_file.h - a model as a text file: its layers by the calls of network_builder.h, one a line, and how it is
 * trained. docs/model-files.md is for those who write such files.
 *
 *   file      = lines of at most 4096 bytes, UTF-8, that end with LF or CRLF; '#' begins a comment, and '\' at the end
 *               of a line continues it
 *   setting   = WORD VALUE...                    of the model or of its recipe (model_settings.h), once, in no block
 *   layer     = [VALUE '='] LAYER [NAME] [PARAMETER[=VALUE]]... [of=VALUE] [with=VALUE,...]
 *               of: the first input, by default what the layer before gives; with: the others
 *   default   = 'default' LAYER PARAMETER=VALUE...   for the lines after it
 *   repeat    = 'repeat' (NAME=FIRST..LAST | NAME=WORD,WORD...)... lines 'end': once for each value of the names, which
 *               all have as many; {NAME} stands for the value
 *
 * Reading is pure, and its work is bounded: see the limits below.
 */
#ifndef MODEL_FILE_MODEL_FILE_H
#define MODEL_FILE_MODEL_FILE_H

#include "base/error.h"
#include "model/file/model_description.h"

#include <stddef.h>

/* path: for errors, and its last part is the model's name. The text is copied. ERR_ARG: the sentence names the line;
 * ERR_NOMEM. On OK *out is yours until model_file_free(). */
int model_file_parse(struct model_file **out, const char *path, const char *text, size_t length, struct error *e);
/* The same of a file. ERR_IO: it cannot be read. */
int model_file_open(struct model_file **out, const char *path, struct error *e);
void model_file_free(struct model_file *f); /* NULL is fine */

/* Sets what the file leaves open; 0: it stays. What it has stays, too. */
void model_file_complete(struct model_file *f, int height, int width, int channels, int classes);
/* ERR_ARG: the shape of the input or the classes are still open. */
int model_file_check_complete(const struct model_file *f, struct error *e);

/* Whether two texts describe the same network: comments, blanks and the recipe do not count. 1: they do. 0: `line` (of
 * the first) and e say which line differs. Neither need be sound. */
int model_file_same(const char *a, size_t a_length, const char *b, size_t b_length, struct error *e);

/* 1 if the argument of --model is a path, not the name of a built-in model: it has a '/' or a '.'. */
int model_file_is_path(const char *name);

#endif
