/* model_lines.h - the text of a model file as statements: comments and blanks removed, continued lines joined. Pure. */
#ifndef MODEL_FILE_MODEL_LINES_H
#define MODEL_FILE_MODEL_LINES_H

#include "base/error.h"

#include <stddef.h>

struct model_line {
    size_t text; /* in model_lines.text: words with one blank between them, and a NUL */
    int number;  /* of its first line, from 1 */
};

struct model_lines {
    char *text;
    struct model_line *items;
    size_t count, room;
};

/* ERR_ARG: "line 3: ..."; ERR_NOMEM. Release the lines in any case. */
int model_lines_read(struct model_lines *out, const char *text, size_t length, struct error *e);
void model_lines_release(struct model_lines *l);
const char *model_lines_text(const struct model_lines *l, size_t k);

#endif
