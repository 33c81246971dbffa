/* argument.h - the values of a line of a model file as text: "5", "3x1", "same", "normal(0.1)". Pure. */
#ifndef MODEL_FILE_ARGUMENT_H
#define MODEL_FILE_ARGUMENT_H

#include "base/buffer.h"
#include "base/error.h"
#include "model/layer_call.h"

enum { ARGUMENT_TEXT_MAX = 160 };

/* ERR_ARG, and e says what is wrong with the value, without a name before it. */
int argument_parse(const struct call_parameter *p, const char *text, struct argument *out, struct error *e);
/* In the form that argument_parse() reads, which gives the same bits. out has ARGUMENT_TEXT_MAX bytes. */
void argument_text(const struct call_parameter *p, const struct argument *a, char *out);
/* What a value looks like, for documents: "N", "X", "valid|same|...". Static, or the parameter's own. */
const char *argument_form(const struct call_parameter *p);

#endif
