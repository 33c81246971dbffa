#include "eventlog/eventlog.h"
#include "eventlog/public.h"
#include "eventlog/write/kinds/image_png.h"

enum { SIDE_MAX = 1 << 16, PIXELS_MAX = 1 << 28 }; /* as of images in a log */

int eventlog_png(const uint8_t *pixels, size_t height, size_t width, size_t channels, void **bytes, size_t *n,
                 struct eventlog_error *error)
{
    struct error e = { 0 };
    int rc = OK;

    *bytes = NULL;
    *n = 0;
    if (channels < 1 || channels > 4)
        rc = error_set(&e, ERR_ARG, "a picture has 1 to 4 channels, not %zu", channels);
    else if (!height || !width || height > SIDE_MAX || width > SIDE_MAX || height * width > PIXELS_MAX)
        rc = error_set(&e, ERR_ARG, "a picture of %zu x %zu; at most %d a side and %d pixels can be packed", width,
                       height, SIDE_MAX, PIXELS_MAX);
    else
        rc = image_png(pixels, height, width, channels, 0, bytes, n, &e);
    return rc == OK ? EVENTLOG_OK : public_error(error, &e);
}
