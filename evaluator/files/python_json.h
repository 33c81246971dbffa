/*
 * python_json.h - parses JSON as Python writes it: with bare NaN, Infinity and -Infinity, which JSON does not allow.
 * They become the texts "NaN", "Infinity" and "-Infinity". Pure.
 */
#ifndef EVALUATOR_FILES_PYTHON_JSON_H
#define EVALUATOR_FILES_PYTHON_JSON_H

#include <jansson.h>
#include <stddef.h>

/* The value of all n bytes, yours: json_decref() it. NULL: invalid, and why says where; or no memory, and why->text is
 * empty. flags: as for json_loadb(). */
json_t *python_json_parse(const char *bytes, size_t n, size_t flags, json_error_t *why);

#endif
