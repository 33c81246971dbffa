/*
 * python_json.h - JSON as Python writes it: NaN, Infinity and -Infinity may stand bare in it, where JSON knows no such
 * numbers. They become the texts "NaN", "Infinity" and "-Infinity". Pure.
 */
#ifndef EVALUATOR_FILES_PYTHON_JSON_H
#define EVALUATOR_FILES_PYTHON_JSON_H

#include <jansson.h>
#include <stddef.h>

/* The value of all n bytes, yours: json_decref() it. NULL: no such text, why says where; or no memory, and why->text is
 * empty. flags: as for json_loadb(). */
json_t *python_json_parse(const char *bytes, size_t n, size_t flags, json_error_t *why);

#endif
