/* checkpoint convert: writes the same tensors in another format. */
#include "base/file.h"
#include "base/human.h"
#include "base/json.h"
#include "base/text.h"
#include "checkpoint/bundle_check.h"
#include "checkpoint/bundle_entry.h"
#include "checkpoint/tool/command.h"
#include "checkpoint/tool/convert_formats.h"

#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define FORMAT_ROW(name, end, when) { #name, end, convert_##name },
#define FORMAT_CHOICE(name, end, when) "|" #name
#define FORMAT_WHEN(name, end, when) when

static const struct {
    const char *name, *end;
    int (*write)(struct conversion *c, struct error *e);
} formats[] = { CONVERT_FORMATS(FORMAT_ROW) };

/* The bytes of a loose slice belong to an unknown tensor. */
static void leave_out_slice(void *context, const struct tensor_entry *slice)
{
    struct conversion *c = context;
    struct error e = { 0 };

    if (!selection_wants(&c->tensors, bundle_entry_label(slice)))
        return;
    error_set(&e, ERR_ARG, "%s: a slice of %s is left out: no variable lists it", c->source.path,
              bundle_entry_label(slice));
    output_fail(&c->out, &e);
    c->left_out++;
}

/* The format for the destination's name; NULL: a format that is not written here. A prefix may end in anything else, as
 * "model.ckpt-700" does. */
static const char *format_of(const char *to, struct error *e)
{
    static const char *const others[] = {
        ".pt",  ".pth", ".bin",  ".pkl", ".h5",  ".hdf5", ".keras", ".onnx", ".pb",
        ".npy", ".npz", ".json", ".csv", ".txt", ".zip",  ".gz",    ".tar",  ".index"
    };
    const char *ending = strrchr(file_base_name(to), '.');
    struct stat st;
    int directory = stat(to, &st) == 0 && S_ISDIR(st.st_mode);

    for (size_t i = 0, n = strlen(to); i < sizeof formats / sizeof *formats; i++) {
        const char *end = formats[i].end;
        size_t length = end ? strlen(end) : 0;

        if (end && ((length <= n && strcasecmp(to + n - length, end) == 0) || (directory && strcmp(end, "/") == 0)))
            return formats[i].name;
    }
    if (strcmp(to, "-") == 0) {
        error_set(e, ERR_ARG, "-: cannot write a checkpoint to standard output; name a file");
        return NULL;
    }
    for (size_t i = 0; ending && i < sizeof others / sizeof *others; i++)
        if (strcasecmp(ending, others[i]) == 0) {
            error_set(e, ERR_ARG,
                      "%s: unknown extension '%s'; use NAME.safetensors, DIR/ for .npy files or the prefix of a "
                      "TensorFlow checkpoint, or choose the format with --to",
                      to, ending);
            return NULL;
        }
    return "bundle";
}

static void print(struct conversion *c, const char *format)
{
    unsigned long long tensors = c->written, bytes = c->bytes, left_out = c->left_out;
    struct buffer *b = &c->out.text;
    char size[HUMAN_TEXT_MAX];

    if (!c->out.json) {
        text_append_safe(b, c->to, strlen(c->to));
        buffer_format(b, ": %llu tensor%s, %s, from ", tensors, tensors == 1 ? "" : "s", human_bytes(bytes, size));
        text_append_safe(b, c->source.path, strlen(c->source.path));
        buffer_append_byte(b, '\n');
        return;
    }
    buffer_append_text(b, "{\"type\":\"convert\",\"version\":1,\"source\":");
    json_text(b, c->source.path);
    buffer_append_text(b, ",\"output\":");
    json_text(b, c->to);
    buffer_format(b, ",\"format\":\"%s\",\"tensors\":%llu,\"bytes\":%llu,\"left_out\":%llu,\"shortened\":%llu}\n",
                  format, tensors, bytes, left_out, (unsigned long long)c->shortened);
}

static int convert(struct conversion *c, const char *from, const char *format, struct error *e)
{
    int rc = command_open(&c->source, from, 0, &c->out, e), wanted = 0;

    if (rc != OK)
        return rc;
    for (size_t i = 0; i < c->source.count; i++)
        wanted |= selection_wants(&c->tensors, c->source.tensors[i].name);
    if (c->source.bundle && (rc = bundle_loose_slices(c->source.bundle, leave_out_slice, c, e)) != OK)
        return rc;
    if (!wanted && c->tensors.patterns.count)
        return OK; /* which is reported at the end */
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].name, format) == 0)
            rc = formats[i].write(c, e);
    if (rc == OK)
        print(c, format);
    return rc;
}

int command_convert(int argc, char **argv)
{
    struct conversion c = { .force = 0 };
    const char *format = NULL;
    struct option table[] = {
        { OPTION_CHOICE, 0, "to", &format,
          .help = "Write this format (default: " CONVERT_FORMATS(FORMAT_WHEN) "else bundle, a TensorFlow checkpoint)",
          .choices = &CONVERT_FORMATS(FORMAT_CHOICE)[1] },
        COMMAND_TENSOR_OPTION(c.tensors),
        { OPTION_FLAG, 'f', "force", &c.force, .help = "Overwrite existing files" },
        OUTPUT_JSON_OPTION(c.out),
    };
    const struct options options = {
        .program = "checkpoint convert",
        .usage = "[OPTION...] SOURCE DESTINATION",
        .summary =
            "Convert a checkpoint to another format: a TensorFlow checkpoint (DESTINATION is its prefix), a "
            "safetensors file, or a directory with a NumPy file for each tensor ('/' in a name becomes '.'). Slices of "
            "partitioned variables are joined. Types that safetensors lacks are stored as bytes and named in its "
            "metadata, so that converting back restores them; in .npy files, bfloat16 and float8 become float32. "
            "Status 1: some tensors were left out, some strings lost trailing zero bytes, or --tensor matched nothing; "
            "2: usage, or an error while reading or writing: nothing was written, except perhaps some .npy files.",
        .examples = "  checkpoint convert ckpt/model.ckpt-700 model.safetensors\n"
                    "  checkpoint convert model.safetensors ckpt/model.ckpt-0\n"
                    "  checkpoint convert ckpt arrays/ --tensor '*/weights'\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 2,
        .most = 2,
        .wanted = "name a source and a destination;",
    };
    struct error e = { 0 };
    int count = 0, status, rc = options_parse(&options, argc, argv, &count, &e);

    c.out.program = options.program;
    if (rc == OPTIONS_DONE)
        return EXIT_DONE;
    if (rc == OK && (rc = output_open(&c.out, &e)) == OK) {
        c.to = argv[2];
        if (!format && !(format = format_of(argv[2], &e)))
            rc = ERR_ARG;
        else
            rc = convert(&c, argv[1], format, &e);
    }
    status = rc != OK ? output_fail(&c.out, &e) : c.left_out || c.shortened ? EXIT_NO : EXIT_DONE;
    status = output_close(&c.out, command_selected(&c.tensors, &c.out, status));
    source_close(&c.source);
    return status;
}
