/*
 * comparison_text.h - a comparison as tables for people, and as CSV and JSON for programs. Pure.
 */
#ifndef TRAINER_COMPARE_COMPARISON_TEXT_H
#define TRAINER_COMPARE_COMPARISON_TEXT_H

#include "base/buffer.h"
#include "trainer/compare/comparison.h"

/* how wide lines may be (0: no limit), and whether only ASCII can be shown */
struct text_style {
    int columns, ascii;
};

/* Speed; what was sent, if anything was; precision, if it was evaluated; then what failed. */
void comparison_text(const struct comparison *c, const struct text_style *style, struct buffer *out);

/* A line of names, and one for each cell. */
void comparison_csv(const struct comparison *c, struct buffer *out);

/* {"type":"trainer-compare","version":1,...,"cells":[...]} */
void comparison_json(const struct comparison *c, const char *training, struct buffer *out);

/* A sentence or more, wrapped. */
void comparison_text_note(struct buffer *out, const struct text_style *style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
