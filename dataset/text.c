/*
 * text.c - plain text as a data set: the five words before each word, and the word. It is made of all files of a
 * directory, in the order of their names; hidden ones, folders and second names of the same file are left out.
 *
 * Parts. If the names of some files contain "train", these are the training part, and those that contain "test" are the
 * test part; others are not read. Else the lines of each file are cut into blocks of 10, and every tenth block, lines
 * 91 to 100 of each 100, is of the test part. What follows each other in a part and a file is a piece; behind the last
 * word of a piece is the word <end>.
 *
 * Numbers. The 10,000 classes are <unk>, <end> and the most frequent words of the training part (words.h,
 * vocabulary.h). Texts with fewer words leave the last numbers unused. All workers and the evaluator count the words
 * anew, from all files: d->vocabulary tells whether they found the same.
 */
#include "dataset/dataset_kind.h"

#include "base/array.h"
#include "base/buffer.h"
#include "dataset/vocabulary.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { CLASSES = 10000, CONTEXT = 5, BLOCK_LINES = 10, BLOCKS = 10 };

struct text_file {
    char name[NAME_MAX + 1];
    dev_t device;
    ino_t inode;
    int link, again; /* again: another name of a file that is here */
    struct buffer bytes;
};

struct text {
    struct text_file *files; /* in the order of their names */
    size_t count, room;
    int named; /* 1: names say what is of which part */
    struct vocabulary *vocabulary;
    int32_t *tokens;
    size_t token_count, token_room;
};

static void text_release(struct text *t)
{
    for (size_t i = 0; i < t->count; i++)
        buffer_release(&t->files[i].bytes);
    free(t->files);
    free(t->tokens);
    vocabulary_free(t->vocabulary);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct text_file *)a)->name, ((const struct text_file *)b)->name);
}

static int add_file(struct text *t, const char *directory, const char *name, struct error *e)
{
    struct text_file *f;
    char path[PATH_MAX];
    struct stat st, own;
    int rc;

    if (name[0] == '.')
        return OK;
    if ((rc = file_join(path, sizeof path, directory, name, e)) < 0)
        return rc;
    if (stat(path, &st) < 0 || lstat(path, &own) < 0)
        return error_system(e, "%s: cannot be read", path);
    if (!S_ISREG(st.st_mode))
        return OK;
    if (!ARRAY_ROOM(t->files, t->room, t->count + 1))
        return error_memory(e, directory, "for the names of its files");
    f = &t->files[t->count++];
    *f = (struct text_file){ .device = st.st_dev, .inode = st.st_ino, .link = S_ISLNK(own.st_mode) };
    snprintf(f->name, sizeof f->name, "%s", name);
    return OK;
}

/* Leaves out links to files that are here, too, and all but the first of several names. */
static void drop_second_names(struct text *t)
{
    size_t kept = 0;

    for (size_t i = 0; i < t->count; i++) {
        struct text_file *f = &t->files[i];

        for (size_t k = 0; k < t->count; k++)
            f->again |= t->files[k].device == f->device && t->files[k].inode == f->inode &&
                        (f->link > t->files[k].link || (f->link == t->files[k].link && k < i));
    }
    for (size_t i = 0; i < t->count; i++)
        if (!t->files[i].again)
            t->files[kept++] = t->files[i];
    t->count = kept;
}

static int list_files(struct text *t, const char *directory, const struct dataset_kind *kind, struct error *e)
{
    DIR *d = opendir(directory);
    const struct dirent *x;
    int rc = OK;

    if (!d)
        return error_system(e, "%s: cannot be read", directory);
    while (rc == OK && (x = readdir(d)))
        rc = add_file(t, directory, x->d_name, e);
    closedir(d);
    if (rc < 0)
        return rc;
    if (!t->count)
        return error_set(e, ERR_IO, "%s: no files here; %s", directory, kind->how_to_get);
    qsort(t->files, t->count, sizeof *t->files, by_name);
    drop_second_names(t);
    for (size_t i = 0; i < t->count; i++)
        t->named |= strstr(t->files[i].name, "train") != NULL;
    return OK;
}

static int has_part(const struct text *t, const struct text_file *f, enum dataset_split split)
{
    return !t->named || strstr(f->name, split == DATASET_TRAIN ? "train" : "test");
}

static int read_files(struct text *t, const char *directory, enum dataset_split split, struct error *e)
{
    char path[PATH_MAX];
    int rc = OK;

    for (size_t i = 0; i < t->count && rc == OK; i++) {
        struct text_file *f = &t->files[i];

        /* The training part has the vocabulary. */
        if ((has_part(t, f, DATASET_TRAIN) || has_part(t, f, split)) &&
            (rc = file_join(path, sizeof path, directory, f->name, e)) == OK)
            rc = file_read(path, SIZE_MAX / 2, &f->bytes, e);
    }
    return rc;
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

typedef int take_word(struct text *t, struct word w, struct error *e);

static int count_word(struct text *t, struct word w, struct error *e)
{
    return vocabulary_count(t->vocabulary, w, e);
}

static int add_token(struct text *t, int32_t number, struct error *e)
{
    if (t->token_count >= INT32_MAX || !ARRAY_ROOM(t->tokens, t->token_room, t->token_count + 1))
        return error_memory(e, NULL, "for more than %zu words", t->token_count);
    t->tokens[t->token_count++] = number;
    return OK;
}

static int number_word(struct text *t, struct word w, struct error *e)
{
    return add_token(t, vocabulary_find(t->vocabulary, w), e);
}

/* Hands on the words of bytes [*at, end) of a file, and moves *at to the end. Returns how many, or an error. */
static int take_piece(struct text *t, struct text_file *f, const char *directory, size_t *at, size_t end,
                      take_word *take, struct error *e)
{
    struct word w;
    int count = 0, rc;

    while ((rc = words_next(f->bytes.data, end, at, &w, e)) > 0) {
        if ((rc = take(t, w, e)) < 0)
            return rc;
        count = 1;
    }
    if (rc < 0)
        return error_prefix(e, "%s/%s", directory, f->name);
    *at = end;
    return count;
}

/* Hands on the words of this part of a file, piece by piece. */
static int take_part(struct text *t, struct text_file *f, const char *directory, enum dataset_split split,
                     take_word *take, struct error *e)
{
    const int cut = !t->named, test_first = BLOCK_LINES * (BLOCKS - 1);
    const size_t n = f->bytes.length;
    int rc = OK;

    for (size_t at = 0; at < n && rc >= 0;) {
        size_t end = cut ? words_skip_lines(f->bytes.data, n, at, test_first) : n;

        if (cut && split == DATASET_TEST) {
            at = end;
            end = words_skip_lines(f->bytes.data, n, at, BLOCK_LINES);
        }
        rc = take_piece(t, f, directory, &at, end, take, e);
        if (rc > 0 && take == number_word)
            rc = add_token(t, VOCABULARY_END, e);
        if (cut && split == DATASET_TRAIN)
            at = words_skip_lines(f->bytes.data, n, at, BLOCK_LINES);
    }
    return rc < 0 ? rc : OK;
}

static int make_vocabulary(struct text *t, const char *directory, struct error *e)
{
    int rc = vocabulary_new(&t->vocabulary, e);

    for (size_t i = 0; i < t->count && rc == OK; i++)
        if (has_part(t, &t->files[i], DATASET_TRAIN))
            rc = take_part(t, &t->files[i], directory, DATASET_TRAIN, count_word, e);
    return rc;
}

/* ---- the data set ------------------------------------------------------------------------------------------------ */

/* The numbers of the words of this worker's part. */
static int make_tokens(struct text *t, struct dataset_owned *o, const char *directory, enum dataset_split split,
                       const struct shard *shard, struct error *e)
{
    uint64_t files = 0;
    int rc = OK, file = 0;

    for (size_t i = 0; i < t->count; i++)
        files += (uint64_t)has_part(t, &t->files[i], split);
    for (size_t i = 0; i < t->count && rc == OK; i++)
        if (has_part(t, &t->files[i], split) && shard_has_file(shard, (uint64_t)file++, files)) {
            dataset_owned_add_file(o, t->files[i].name);
            rc = take_part(t, &t->files[i], directory, split, number_word, e);
        }
    if (rc == OK && shard->kind == SHARD_FILES && shard->index >= file)
        rc = error_set(e, ERR_ARG, "worker %d of %d has no file: %s has %d; use fewer workers, or share single records",
                       shard->index, shard->count, directory, file);
    if (rc == OK && t->token_count <= CONTEXT)
        rc = error_set(e, ERR_CORRUPT, "%s: %zu words of text for %s%s; needs at least %d", directory, t->token_count,
                       split == DATASET_TRAIN ? "training" : "testing",
                       split == DATASET_TRAIN ? ""
                       : t->named             ? " in files with \"test\" in their names"
                                              : " in lines 91 to 100 of each 100",
                       CONTEXT + 1);
    return rc;
}

/* The words of all classes; those of unused numbers are "". */
static int name_classes(struct dataset_owned *o, const struct text *t, int32_t used, struct error *e)
{
    size_t bytes = 1;
    const char **names;
    char *text;

    for (int32_t k = 0; k < used; k++)
        bytes += vocabulary_word(t->vocabulary, k).length + 1;
    if (!(names = o->names = malloc(CLASSES * sizeof *names + bytes)))
        return error_memory(e, NULL, "for %d words", (int)used);
    o->d.class_names = names;
    text = (char *)(names + CLASSES);
    *text++ = '\0';
    for (int32_t k = 0; k < CLASSES; k++) {
        const struct word w = k < used ? vocabulary_word(t->vocabulary, k) : (struct word){ "", 0 };

        names[k] = k < used ? text : text - 1;
        if (k >= used)
            continue;
        memcpy(text, w.text, w.length);
        text += w.length;
        *text++ = '\0';
    }
    return OK;
}

static int read_text(struct dataset_owned *o, const struct dataset_kind *kind, const char *directory,
                     enum dataset_split split, const struct shard *shard, const struct dataset_reading *how,
                     struct error *e)
{
    struct text t = { 0 };
    int rc;

    (void)how;
    if ((rc = list_files(&t, directory, kind, e)) == OK && (rc = read_files(&t, directory, split, e)) == OK &&
        (rc = make_vocabulary(&t, directory, e)) == OK &&
        (rc = name_classes(o, &t, vocabulary_choose(t.vocabulary, CLASSES), e)) == OK &&
        (rc = make_tokens(&t, o, directory, split, shard, e)) == OK) {
        o->input = t.tokens;
        o->d.element = o->d.labels.element = ELEMENT_INT32;
        o->d.stride = 1;
        o->d.labels.data = t.tokens + CONTEXT;
        o->d.count = t.token_count - CONTEXT;
        o->d.height = o->d.channels = 1;
        o->d.width = CONTEXT;
        o->d.vocabulary = vocabulary_hash(t.vocabulary);
        t.tokens = NULL;
    }
    text_release(&t);
    return rc;
}

const struct dataset_kind dataset_kind_text = {
    .usual_place = "/usr/share/common-licenses",
    .how_to_get =
        "it needs plain text in UTF-8, in any number of files; on Debian, leave the directory out to take the "
        "texts of common licenses",
    .classes = CLASSES,
    .read = read_text,
};
