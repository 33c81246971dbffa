/*
 * A tree of any names as --data folder, opened and read: the first byte picks the options, then each file or folder takes
 * a byte for where it is, one for what it is, one for the length of its name, and the name.
 */
#include "tests/fuzz/decisions.h"
#include "tests/fuzz/fuzz_dataset.h"
#include "tests/fuzz/fuzz_directory.h"

#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { ENTRIES_MOST = 24, NAME_MOST = 12 };

/* A whole grey PNG of 2x1, written by Python's zlib. */
static const uint8_t image[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00,
    0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x00, 0x00, 0x00, 0xd1, 0x49, 0x20, 0x56, 0x00,
    0x00, 0x00, 0x0b, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0x60, 0xf8, 0x0f, 0x00, 0x01, 0x02, 0x01,
    0x00, 0x42, 0xbe, 0xbc, 0x68, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
};
static const char *const places[] = { "", "train", "test", "val", "train/a", "train/b", "test/a", "val/b", "a", "b" };

static void put(const char *path, uint64_t what)
{
    const size_t length = what == 1 ? 0 : what == 2 ? sizeof image / 2 : sizeof image;
    FILE *f;

    switch (what) {
    case 3: mkdir(path, 0777); return;
    case 4:
    case 5:
        if (symlink(what == 4 ? ".." : "nothing", path) < 0)
            return; /* something is there */
        return;
    case 6: mkdir(path, 0500); return; /* root may write in it, others not */
    default: break;
    }
    if ((f = fopen(path, "wb"))) { /* it may be a folder already, or have a name that cannot be */
        fwrite(image, 1, length, f);
        fclose(f);
    }
}

static void make_tree(struct decisions *d, const char *root)
{
    char folder[256], path[512], name[NAME_MOST + 1];

    for (int entry = 0; entry < ENTRIES_MOST && d->left; entry++) {
        const char *place = places[decide(d, sizeof places / sizeof *places)];
        const uint64_t what = decide(d, 8);
        const size_t n = decide(d, NAME_MOST + 1);
        const int ending = what != 3 && what != 6;

        decide_bytes(d, name, n);
        name[n] = '\0';
        for (size_t i = 0; i < n; i++)
            name[i] = name[i] == '/' ? '_' : name[i];
        snprintf(folder, sizeof folder, "%s/%s", root, place);
        for (char *end = folder + strlen(root) + 1; end; end = strchr(end + 1, '/')) {
            const char kept = *end;

            *end = '\0';
            mkdir(folder, 0777);
            *end = kept;
            if (!kept)
                break;
        }
        mkdir(folder, 0777);
        snprintf(path, sizeof path, "%s/%s%s", folder, name, !ending ? "" : what == 7 ? ".jpg" : ".png");
        if (*name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
            put(path, what);
    }
}

static void check_class(const struct dataset *d, const void *sample, size_t used)
{
    (void)sample;
    if (!d->class_names[field_integer(&d->labels, used)][0])
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct decisions d = decisions_from_bytes(bytes, size);
    const uint64_t options = decide(&d, 8);
    struct dataset_reading how = { .skip_bad = options & 1 };
    char root[128];

    if (options & 2)
        how.height = how.width = 3;
    snprintf(root, sizeof root, "%s/tree", fuzz_directory());
    mkdir(root, 0777);
    make_tree(&d, root);
    fuzz_dataset_read("folder", root, options & 4 ? DATASET_TEST : DATASET_TRAIN, NULL, &how, check_class);
    fuzz_directory_empty(root);
    return 0;
}
