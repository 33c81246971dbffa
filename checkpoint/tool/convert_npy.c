/*
 * One .npy file per tensor: "\x93NUMPY", version 1.0, uint16 length of the header, a Python dictionary padded with
 * blanks to a multiple of 64 and ended by a newline, then the values, little-endian and row-major.
 */
#include "checkpoint/tool/convert_formats.h"

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/io.h"
#include "base/unfinished.h"
#include "checkpoint/tensor_value.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STRINGS_MAX = 1 << 30 }; /* the most bytes of an array of strings of one width */

struct convert_npy_writing {
    int fd, widen; /* widen: elements become float32, or int8 */
    const char *path;
    const struct source_tensor *tensor;
};

/* NumPy's name for a type; NULL: it has none. *widen: values are converted, to float32 ('<f4') or one byte. */
static const char *description(int type, int *widen)
{
    static const char *const names[] = {
        [1] = "<f4",  [2] = "<f8",  [3] = "<i4",           [4] = "|u1",  [5] = "<i2",  [6] = "|i1",  [8] = "<c8",
        [9] = "<i8",  [10] = "|b1", [11] = "|i1",          [12] = "|u1", [13] = "<i4", [14] = "<f4", [15] = "<i2",
        [16] = "<u2", [17] = "<u2", [18] = "<c16",         [19] = "<f2", [22] = "<u4", [23] = "<u8", [24] = "<f4",
        [25] = "<f4", [26] = "<f4", [27] = "<f4",          [28] = "<f4", [29] = "|i1", [30] = "|u1", [31] = "|i1",
        [32] = "|u1", [33] = "<f4", [TENSOR_E8M0] = "<f4",
    };

    *widen = type == TENSOR_BFLOAT16 || (type >= 24 && type <= TENSOR_E8M0);
    return type > 0 && type < (int)(sizeof names / sizeof *names) ? names[type] : NULL;
}

/* The name of a tensor's file: '/' becomes '.', and characters that a file name should not have become %XX. */
static void file_name(struct buffer *out, const struct source_tensor *tensor)
{
    for (size_t i = 0; i < tensor->name_length; i++) {
        unsigned char byte = (unsigned char)tensor->name[i];

        if (byte < 0x20 || byte == 0x7f || byte == '%' || byte == '\\')
            buffer_format(out, "%%%02X", byte);
        else
            buffer_append_byte(out, byte == '/' ? '.' : byte);
    }
    buffer_append_text(out, ".npy");
}

static int put(struct convert_npy_writing *x, const void *bytes, size_t n, struct error *e)
{
    if (n && io_write_full(&io_real, x->fd, bytes, n) < 0)
        return error_system(e, "%s: cannot write", x->path);
    return OK;
}

static int write_header(struct convert_npy_writing *x, const char *descr, struct error *e)
{
    static const char magic[8] = "\x93NUMPY\x01";
    struct buffer head = BUFFER_EMPTY;
    int rc;

    buffer_append(&head, magic, sizeof magic);
    buffer_append(&head, "\0\0", 2);
    buffer_format(&head, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int d = 0; d < x->tensor->rank; d++)
        buffer_format(&head, d ? " %lld," : "%lld,", (long long)x->tensor->shape[d]);
    buffer_append_text(&head, "), }");
    while (buffer_ok(&head) && (head.length + 1) % 64)
        buffer_append_byte(&head, ' ');
    buffer_append_byte(&head, '\n');
    if (buffer_ok(&head)) {
        head.data[8] = (char)((head.length - 10) & 0xff);
        head.data[9] = (char)((head.length - 10) >> 8);
        rc = put(x, head.data, head.length, e);
    } else {
        rc = error_memory(e, x->path, "for its header");
    }
    buffer_release(&head);
    return rc;
}

static int take_piece(void *context, const void *bytes, size_t n, struct error *e)
{
    struct convert_npy_writing *x = context;
    size_t size = tensor_type_size(x->tensor->type);
    double values[256];
    uint8_t out[sizeof values / sizeof *values * 4];
    int rc = OK;

    if (!x->widen)
        return put(x, bytes, n, e);
    for (size_t at = 0, count; at < n / size && rc == OK; at += count) {
        size_t each = tensor_kind(x->tensor->type) == TENSOR_KIND_FLOAT ? 4 : 1;

        count = n / size - at < 256 ? n / size - at : 256;
        tensor_values(x->tensor->type, (const char *)bytes + at * size, count, values);
        for (size_t i = 0; i < count; i++) {
            if (each == 4)
                put_le32(out + 4 * i, float_bits((float)values[i]));
            else
                out[i] = (uint8_t)(int)values[i];
        }
        rc = put(x, out, count * each, e);
    }
    return rc;
}

/* NumPy takes zeros after a string for padding: strings that end in one come back shorter. */
static void tell_shortened(struct conversion *c, const struct source_tensor *tensor,
                           const struct tensor_string *strings)
{
    struct error e = { 0 };
    size_t ending = 0;

    for (size_t i = 0; i < tensor->elements; i++)
        ending += strings[i].length && !strings[i].bytes[strings[i].length - 1];
    if (!ending)
        return;
    error_set(
        &e, ERR_ARG,
        "%s: tensor %s: %zu of %llu strings end in zero bytes, which NumPy drops; convert to safetensors to keep them",
        c->source.path, tensor->name, ending, (unsigned long long)tensor->elements);
    output_fail(&c->out, &e);
    c->shortened++;
}

/* Strings, all as wide as the longest, padded with zeros. */
static int write_strings(struct conversion *c, struct convert_npy_writing *x, struct error *e)
{
    size_t count = (size_t)x->tensor->elements, width = 1;
    struct tensor_string *strings;
    char *cell = NULL, descr[32];
    int rc = source_strings(&c->source, x->tensor, &strings, e);

    if (rc != OK)
        return rc;
    for (size_t i = 0; i < count; i++)
        width = strings[i].length > width ? strings[i].length : width;
    if (count && width > STRINGS_MAX / count)
        rc = error_set(e, ERR_ARG,
                       "%s: tensor %s: %zu strings of up to %zu bytes are too large for one array; select other "
                       "tensors with --tensor",
                       c->source.path, x->tensor->name, count, width);
    else if (!(cell = malloc(width)))
        rc = error_memory(e, c->source.path, "for tensor %s", x->tensor->name);
    snprintf(descr, sizeof descr, "|S%zu", width);
    if (rc == OK)
        rc = write_header(x, descr, e);
    for (size_t i = 0; i < count && rc == OK; i++) {
        memset(cell, 0, width);
        memcpy(cell, strings[i].bytes, strings[i].length);
        rc = put(x, cell, width, e);
    }
    if (rc == OK)
        tell_shortened(c, x->tensor, strings);
    free(cell);
    free(strings);
    return rc;
}

static int write_tensor(struct conversion *c, const struct source_tensor *tensor, const char *name, const char *descr,
                        int widen, struct error *e)
{
    struct convert_npy_writing x = { .widen = widen, .tensor = tensor };
    char path[PATH_MAX], temporary[PATH_MAX];
    struct unfinished *unfinished;
    int rc;

    if ((rc = file_join(path, sizeof path, c->to, name, e)) != OK || (rc = conversion_check_free(c, path, e)) != OK)
        return rc;
    if (snprintf(temporary, sizeof temporary, "%s/checkpoint.tmp%ld", c->to, (long)getpid()) >= (int)sizeof temporary)
        return error_set(e, ERR_ARG, "%s: path too long", path);
    x.path = path;
    unfinished = unfinished_begin(AT_FDCWD, temporary);
    unlink(temporary); /* left by a killed process with our process id */
    if ((x.fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) < 0)
        rc = error_system(e, "%s: cannot create a file beside it", path);
    else if (tensor->type == TENSOR_STRING)
        rc = write_strings(c, &x, e);
    else if ((rc = write_header(&x, descr, e)) == OK)
        rc = source_pieces(&c->source, tensor, take_piece, &x, e);
    if (x.fd >= 0 && close(x.fd) < 0 && rc == OK)
        rc = error_system(e, "%s: cannot close", path);
    if (rc == OK && rename(temporary, path) < 0)
        rc = error_system(e, "%s: cannot rename into place", path);
    if (rc != OK)
        unlink(temporary);
    unfinished_end(unfinished);
    return rc;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Checks that no two tensors become the same file. */
static int check_names(struct conversion *c, struct error *e)
{
    char **names = calloc(c->source.count + 1, sizeof *names);
    size_t count = 0;
    int rc = names ? OK : ERR_NOMEM;

    for (size_t i = 0; i < c->source.count && rc == OK; i++) {
        struct buffer name = BUFFER_EMPTY;

        if (!selection_wants(&c->tensors, c->source.tensors[i].name))
            continue;
        file_name(&name, &c->source.tensors[i]);
        if (!buffer_ok(&name)) {
            buffer_release(&name);
            rc = ERR_NOMEM;
        } else {
            names[count++] = name.data;
        }
    }
    if (rc != OK)
        error_set(e, rc, "%s: no memory for the names of its tensors", c->source.path);
    if (count)
        qsort(names, count, sizeof *names, compare_texts);
    for (size_t i = 1; i < count && rc == OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            rc = error_set(e, ERR_ARG, "%s: two tensors would both be written to %s; select one with --tensor",
                           c->source.path, names[i]);
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return rc;
}

int convert_npy(struct conversion *c, struct error *e)
{
    int rc = check_names(c, e);

    if (rc == OK)
        rc = file_make_directories(c->to, e);
    for (size_t i = 0; i < c->source.count && rc == OK; i++) {
        const struct source_tensor *tensor = &c->source.tensors[i];
        struct buffer name = BUFFER_EMPTY;
        const char *descr;
        int widen;

        if (!conversion_takes(c, tensor))
            continue;
        if (!(descr = description(tensor->type, &widen)) && tensor->type != TENSOR_STRING) {
            conversion_leave_out(c, tensor, "NumPy");
            continue;
        }
        file_name(&name, tensor);
        rc = buffer_ok(&name) ? write_tensor(c, tensor, buffer_text(&name), descr, widen, e)
                              : error_memory(e, NULL, "for the name of a file");
        buffer_release(&name);
        c->written++;
        c->bytes += tensor->bytes;
    }
    return rc;
}
