/*
 * confusion: the confusion matrix.
 *   confusion_matrix        image; rows are labels, columns predictions
 *   confusion_matrix/table  text: the same as a table in Markdown, with precision and recall of each class
 */
#include "evaluator/score/metrics/metric.h"

#include "base/buffer.h"
#include "evaluator/score/classification.h"
#include "evaluator/score/confusion_image.h"

#include <math.h>
#include <string.h>

static int write_image(const struct classification *c, const char *const *names, struct eventlog_writer *writer,
                       int64_t step, double wall_time, struct eventlog_error *error)
{
    static const struct eventlog_value_options options = {
        .description = "Rows are labels, columns what was predicted; the darker, the larger the share of its row.",
    };
    struct confusion_image image;
    int rc;

    if (confusion_image_draw(&image, c->confusion, c->classes, names, NULL) != OK)
        return metric_no_memory(error);
    rc = eventlog_writer_image(writer, "confusion_matrix", step, wall_time, image.pixels, 1, image.height, image.width,
                               3, &options, error);
    confusion_image_release(&image);
    return rc;
}

/* A table cell with a name as Markdown shows it: markup characters are escaped with a backslash. */
static void put_name(struct buffer *b, const char *name)
{
    buffer_append_text(b, "| ");
    for (; *name; name++) {
        if (strchr("\\`*_{}[]()#+!|<>~", *name))
            buffer_append_byte(b, '\\');
        buffer_append_byte(b, *name);
    }
    buffer_append_byte(b, ' ');
}

static void put_share(struct buffer *b, double share)
{
    if (isnan(share))
        buffer_append_text(b, "| - ");
    else
        buffer_format(b, "| %.4f ", share);
}

/* One Markdown text, which all readers of texts show; for them, a table of texts would be a two-dimensional array. */
static void put_table(const struct classification *c, const char *const *names, struct buffer *b)
{
    put_name(b, "label / predicted");
    for (int k = 0; k < c->classes; k++)
        put_name(b, names[k]);
    buffer_append_text(b, "| precision | recall |\n| --- ");
    for (int k = 0; k < c->classes; k++)
        buffer_append_text(b, "| ---: ");
    buffer_append_text(b, "| ---: | ---: |\n");
    for (int i = 0; i < c->classes; i++) {
        put_name(b, names[i]);
        for (int k = 0; k < c->classes; k++)
            buffer_format(b, "| %lld ", (long long)c->confusion[(size_t)i * (size_t)c->classes + (size_t)k]);
        put_share(b, classification_precision(c, i));
        put_share(b, classification_recall(c, i));
        buffer_append_text(b, "|\n");
    }
}

static int write_table(const struct classification *c, const char *const *names, struct eventlog_writer *writer,
                       int64_t step, double wall_time, struct eventlog_error *error)
{
    struct buffer b = BUFFER_EMPTY;
    int rc;

    put_table(c, names, &b);
    rc = buffer_ok(&b)
             ? eventlog_writer_text(writer, "confusion_matrix/table", step, wall_time, buffer_text(&b), NULL, error)
             : metric_no_memory(error);
    buffer_release(&b);
    return rc;
}

static int confusion_write(const struct classification *c, const int64_t *cells, const char *const *names,
                           struct eventlog_writer *writer, int64_t step, double wall_time, struct eventlog_error *error)
{
    int rc = write_image(c, names, writer, step, wall_time, error);

    (void)cells;
    return rc == EVENTLOG_OK ? write_table(c, names, writer, step, wall_time, error) : rc;
}

const struct metric metric_confusion = { .of_classes = 1, .write = confusion_write };
