#include "eventlog/tool/picture/picture_png.h"

#include "base/late_library.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PIXELS_MOST = 32767 /* of a line or column, in cairo */, ARGB32 = 0, SUCCESS = 0, WRITE_ERROR = 11 };

/* The functions called in librsvg 2.46 and later and in cairo and GObject, which it uses, as their headers declare
 * them. The interface is stable: sonames and these functions have been the same since 2019. */
struct rectangle {
    double x, y, width, height;
}; /* RsvgRectangle */
struct complaint {
    uint32_t domain;
    int code;
    char *text;
}; /* GError */
struct library {
    void *(*new_from_data)(const uint8_t *data, size_t n, struct complaint **complaint);
    int (*render_document)(void *handle, void *cairo, const struct rectangle *viewport, struct complaint **complaint);
    void (*unref)(void *object);
    void (*free_complaint)(struct complaint *complaint);
    void *(*surface_new)(int format, int width, int height);
    int (*surface_status)(void *surface);
    int (*surface_write)(void *surface, int (*write)(void *context, const uint8_t *data, unsigned n), void *context);
    void (*surface_free)(void *surface);
    void *(*cairo_new)(void *surface);
    void (*cairo_free)(void *cairo);
};

static const char *const names[] = {
    /* in the order of struct library */
    "rsvg_handle_new_from_data",
    "rsvg_handle_render_document",
    "g_object_unref",
    "g_error_free",
    "cairo_image_surface_create",
    "cairo_surface_status",
    "cairo_surface_write_to_png_stream",
    "cairo_surface_destroy",
    "cairo_create",
    "cairo_destroy",
};
enum { FUNCTIONS = sizeof names / sizeof *names };
_Static_assert(sizeof(struct library) == FUNCTIONS * sizeof(void *), "a name for each function");

static int load(struct library *l, struct error *e)
{
    struct error cause = { 0 };

    if (STATIC)
        return error_set(e, ERR_IO, "a static eventlog draws no PNG, as it cannot load librsvg; write a .svg");
    if (late_library_load("librsvg-2.so.2", names, FUNCTIONS, l, &cause) == OK)
        return OK;
    return error_set(e, ERR_IO,
                     "drawing a PNG needs librsvg: %.300s; install it (on Debian: librsvg2-2), or write a .svg",
                     cause.message);
}

static int append(void *context, const uint8_t *data, unsigned n)
{
    buffer_append(context, data, n);
    return buffer_ok(context) ? SUCCESS : WRITE_ERROR;
}

static int refused(const struct library *l, struct complaint *complaint, struct error *e)
{
    int rc = error_set(e, ERR_IO, "librsvg: %s", complaint ? complaint->text : "cannot draw the picture");

    if (complaint)
        l->free_complaint(complaint);
    return rc;
}

int picture_png_draw(struct buffer *out, const struct buffer *svg, struct picture_size size, double scale,
                     struct error *e)
{
    struct library l = { 0 };
    struct complaint *complaint = NULL;
    void *handle, *surface = NULL, *cairo = NULL;
    struct rectangle all = { 0, 0, 0, 0 };
    int rc = load(&l, e);

    if (rc != OK)
        return rc;
    scale = fmin(scale, fmin((double)PIXELS_MOST / size.width, (double)PIXELS_MOST / size.height));
    all.width = floor(size.width * scale);
    all.height = floor(size.height * scale);
    if (!(handle = l.new_from_data((const uint8_t *)buffer_text(svg), svg->length, &complaint)))
        return refused(&l, complaint, e);
    surface = l.surface_new(ARGB32, (int)all.width, (int)all.height);
    cairo = l.cairo_new(surface);
    if (l.surface_status(surface) != SUCCESS)
        rc = error_memory(e, NULL, "for a picture of %.0f x %.0f pixels", all.width, all.height);
    else if (!l.render_document(handle, cairo, &all, &complaint))
        rc = refused(&l, complaint, e);
    else if (l.surface_write(surface, append, out) != SUCCESS)
        rc = error_memory(e, NULL, "for a picture of %.0f x %.0f pixels", all.width, all.height);
    l.cairo_free(cairo);
    l.surface_free(surface);
    l.unref(handle);
    return rc;
}
