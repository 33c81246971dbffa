/*
 * Files of any names and contents as --data text, opened and read: the first bytes pick the part and the shard, then each
 * file takes a byte for what it is, one for its name, one for how many characters of its own the name has, those, two for
 * the length of its text, and the text.
 */
#include "tests/fuzz/decisions.h"
#include "tests/fuzz/fuzz_dataset.h"
#include "tests/fuzz/fuzz_directory.h"

#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { FILES_MOST = 6, NAME_MOST = 8, TEXT_MOST = 4096 };

static const char *const names[] = { "", "train", "test", "train.test", ".hidden" };

static void put_file(struct decisions *d, const char *root)
{
    const uint64_t what = decide(d, 5);
    const char *name = names[decide(d, sizeof names / sizeof *names)];
    char own[NAME_MOST + 1], path[256], first[256], text[TEXT_MOST];
    const size_t n = decide(d, NAME_MOST + 1);
    FILE *f;

    decide_bytes(d, own, n);
    own[n] = '\0';
    for (size_t i = 0; i < n; i++)
        own[i] = own[i] == '/' ? '_' : own[i];
    snprintf(path, sizeof path, "%s/%s%s", root, name, own);
    snprintf(first, sizeof first, "%s/train", root);
    if (!strcmp(path + strlen(root), "/") || !strcmp(path + strlen(root), "/.") || !strcmp(path + strlen(root), "/.."))
        return;
    switch (what) { /* something may be there already */
    case 1: mkdir(path, 0777); return;
    case 2:
        if (link(first, path) < 0)
            return;
        return;
    case 3:
        if (symlink("train", path) < 0)
            return;
        return;
    default: break;
    }
    if ((f = fopen(path, "wb"))) {
        const size_t length = decide(d, TEXT_MOST + 1);
        const size_t given = length < d->left ? length : d->left;

        decide_bytes(d, text, given);
        fwrite(text, 1, given, f);
        fclose(f);
    }
}

/* Words of a sample are numbers of classes. */
static void check_words(const struct dataset *d, const void *sample, size_t used)
{
    const int32_t *words = sample;

    (void)used;
    for (size_t i = 0; i < dataset_width(d); i++)
        if (words[i] < 0 || words[i] >= d->classes)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct decisions d = decisions_from_bytes(bytes, size);
    const uint64_t options = decide(&d, 8);
    struct shard shard = { .kind = options & 2 ? SHARD_FILES : SHARD_RECORDS, .count = 1 };
    struct dataset_reading how = { .height = 0 };
    char root[128];

    shard.rule = options & 4 ? SHARD_CONTIGUOUS : SHARD_MODULO;
    shard.count += (int)decide(&d, 4);
    shard.index = (int)decide(&d, (uint64_t)shard.count);
    snprintf(root, sizeof root, "%s/text", fuzz_directory());
    mkdir(root, 0777);
    for (int k = 0; k < FILES_MOST && d.left; k++)
        put_file(&d, root);
    fuzz_dataset_read("text", root, options & 1 ? DATASET_TEST : DATASET_TRAIN, &shard, &how, check_words);
    fuzz_directory_empty(root);
    return 0;
}
