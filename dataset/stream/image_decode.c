#include "dataset/stream/image_decode.h"

#include <jerror.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* After stdio.h, which it needs. */
#include <jpeglib.h>

enum { SCANS_MAX = 200, SIGNATURE = 8 };

static const uint8_t png_signature[SIGNATURE] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' };

/* What both libraries' callbacks need. Locals that change between setjmp and longjmp would be lost, so all is here. */
struct decoding {
    const uint8_t *bytes;
    size_t n, at; /* at: PNG's place */
    const char *name;
    struct image image;
    png_bytep *rows;
    int size_only, out_of_memory;
    char problem[160];
    jmp_buf leave;
};

/* Checks the size, and makes room for the pixels unless only the size is wanted. 0: not possible. */
static int make_room(struct decoding *d, uint64_t height, uint64_t width)
{
    if (height == 0 || width == 0 || width > IMAGE_PIXELS_MAX || height > IMAGE_PIXELS_MAX / width) {
        snprintf(d->problem, sizeof d->problem, "%llux%llu pixels, but at most %d are read", (unsigned long long)height,
                 (unsigned long long)width, IMAGE_PIXELS_MAX);
        return 0;
    }
    d->image.height = (int)height;
    d->image.width = (int)width;
    if (!d->size_only && !(d->image.pixels = malloc(height * width * 3)))
        d->out_of_memory = 1;
    return !d->out_of_memory;
}

/* ---- JPEG -------------------------------------------------------------------------------------------------------- */

static _Noreturn void jpeg_leave(j_common_ptr jpeg)
{
    struct decoding *d = jpeg->client_data;
    char text[JMSG_LENGTH_MAX];

    jpeg->err->format_message(jpeg, text);
    snprintf(d->problem, sizeof d->problem, "%.150s", text);
    d->out_of_memory = jpeg->err->msg_code == JERR_OUT_OF_MEMORY;
    longjmp(d->leave, 1);
}

/* Warnings are about damage, but for bytes between two parts and odd marks of writers, which cost no pixel. */
static void jpeg_message(j_common_ptr jpeg, int level)
{
    const int code = jpeg->err->msg_code;

    if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_JFIF_MAJOR && code != JWRN_ADOBE_XFORM)
        jpeg_leave(jpeg);
}

/* A small file may have very many scans, each as much work as the whole picture. */
static void jpeg_progress(j_common_ptr jpeg)
{
    struct decoding *d = jpeg->client_data;

    if (((j_decompress_ptr)jpeg)->input_scan_number > SCANS_MAX) {
        snprintf(d->problem, sizeof d->problem, "more than %d scans", SCANS_MAX);
        longjmp(d->leave, 1);
    }
}

/* What is left of the light, of 255, behind an ink, of which files say 255 for none, as Adobe's programs began to write
 * them; rounded as in Pillow. */
static uint8_t light_behind(unsigned ink, unsigned light)
{
    return (uint8_t)(light - ((255 - ink) * light + 127) / 255);
}

/* (width, 4) inks, black last, to (width, 3) colours: Pillow's convert("RGB"), to the bit. */
static void colours_of_inks(const uint8_t *inks, uint8_t *colours, int width)
{
    for (int x = 0; x < width; x++, inks += 4, colours += 3)
        for (int c = 0; c < 3; c++)
            colours[c] = light_behind(inks[c], inks[3]);
}

/* inks: where a row has room that is not of three colours, otherwise NULL. */
static void read_rows(struct decoding *d, j_decompress_ptr jpeg, JSAMPARRAY inks)
{
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW row = d->image.pixels + (size_t)jpeg->output_scanline * (size_t)d->image.width * 3;

        jpeg_read_scanlines(jpeg, inks ? inks : &row, 1);
        if (inks)
            colours_of_inks(inks[0], row, d->image.width);
    }
}

static int decode_jpeg(struct decoding *d)
{
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress = { .progress_monitor = jpeg_progress };

    memset(&jpeg, 0, sizeof jpeg);
    jpeg.err = jpeg_std_error(&errors);
    errors.error_exit = jpeg_leave;
    errors.emit_message = jpeg_message;
    jpeg.client_data = d;
    if (setjmp(d->leave)) {
        jpeg_destroy_decompress(&jpeg);
        return 0;
    }
    jpeg_create_decompress(&jpeg);
    jpeg.progress = &progress;
    jpeg_mem_src(&jpeg, d->bytes, d->n);
    jpeg_read_header(&jpeg, TRUE);
    jpeg.out_color_space = jpeg.num_components == 4 ? JCS_CMYK : JCS_RGB;
    if (!make_room(d, jpeg.image_height, jpeg.image_width))
        longjmp(d->leave, 1);
    if (!d->size_only) {
        JSAMPARRAY inks = NULL;

        jpeg_start_decompress(&jpeg);
        if (jpeg.out_color_space == JCS_CMYK) /* which jpeg_destroy_decompress() gives back */
            inks = jpeg.mem->alloc_sarray((j_common_ptr)&jpeg, JPOOL_IMAGE, jpeg.output_width * 4, 1);
        read_rows(d, &jpeg, inks);
        jpeg_finish_decompress(&jpeg);
    }
    jpeg_destroy_decompress(&jpeg);
    return 1;
}

/* ---- PNG --------------------------------------------------------------------------------------------------------- */

static _Noreturn void png_leave(png_structp png, png_const_charp text)
{
    struct decoding *d = png_get_error_ptr(png);

    snprintf(d->problem, sizeof d->problem, "%s", text);
    longjmp(d->leave, 1);
}

static void png_message(png_structp png, png_const_charp text)
{
    (void)png; /* of chunks beside the pixels; damage to pixels is an error */
    (void)text;
}

static void png_take(png_structp png, png_bytep out, size_t n)
{
    struct decoding *d = png_get_io_ptr(png);

    if (n > d->n - d->at)
        png_leave(png, "the file ends early");
    memcpy(out, d->bytes + d->at, n);
    d->at += n;
}

static void read_png(struct decoding *d, png_structp png, png_infop info)
{
    png_set_read_fn(png, d, png_take);
    png_set_user_limits(png, IMAGE_PIXELS_MAX, IMAGE_PIXELS_MAX);
    png_set_chunk_malloc_max(png, 1 << 23);
    png_read_info(png, info);
    if (!make_room(d, png_get_image_height(png, info), png_get_image_width(png, info)))
        longjmp(d->leave, 1);
    if (d->size_only)
        return;
    if (!(d->rows = malloc((size_t)d->image.height * sizeof *d->rows))) {
        d->out_of_memory = 1;
        longjmp(d->leave, 1);
    }
    for (int y = 0; y < d->image.height; y++)
        d->rows[y] = d->image.pixels + (size_t)y * (size_t)d->image.width * 3;
    png_set_expand(png);
    png_set_strip_16(png);
    png_set_strip_alpha(png);
    png_set_gray_to_rgb(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    if (png_get_rowbytes(png, info) != (size_t)d->image.width * 3)
        png_leave(png, "not of 8-bit colours");
    png_read_image(png, d->rows);
    png_read_end(png, NULL);
}

static int decode_png(struct decoding *d)
{
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, d, png_leave, png_message);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    int done = 0;

    if (!info)
        d->out_of_memory = 1;
    else if (setjmp(d->leave) == 0) {
        read_png(d, png, info);
        png_destroy_read_struct(&png, &info, NULL);
        done = 1;
    }
    if (!done)
        png_destroy_read_struct(&png, &info, NULL);
    free(d->rows);
    return done;
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

static int decode(const uint8_t *bytes, size_t n, const char *name, int size_only, struct image *out, struct error *e)
{
    struct decoding d = { .bytes = bytes, .n = n, .name = name, .size_only = size_only };
    int done = 0;

    *out = (struct image){ 0 };
    if (n >= SIGNATURE && !memcmp(bytes, png_signature, SIGNATURE))
        done = decode_png(&d);
    else if (n >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff)
        done = decode_jpeg(&d);
    else
        snprintf(d.problem, sizeof d.problem, n ? "neither JPEG nor PNG" : "the file is empty");
    if (done) {
        *out = d.image;
        return OK;
    }
    free(d.image.pixels);
    if (d.out_of_memory)
        return error_memory(e, name, "for its pixels");
    return error_set(e, ERR_CORRUPT, "%s: broken image: %s", name, d.problem);
}

int image_decode(const uint8_t *bytes, size_t n, const char *name, struct image *out, struct error *e)
{
    return decode(bytes, n, name, 0, out, e);
}

int image_decode_size(const uint8_t *bytes, size_t n, const char *name, struct image *out, struct error *e)
{
    return decode(bytes, n, name, 1, out, e);
}
