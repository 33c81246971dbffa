/* dataset vocabulary: the words of captions or of texts with their counts, in im2txt's format (caption_set.h). */
#include "dataset/vocabulary.h"

#include "base/array.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/program/log.h"
#include "base/program/options.h"
#include "base/program/subcommand.h"
#include "dataset/captions/caption_set.h"
#include "dataset/tool/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct count {
    int64_t least, most;
    const char *output;
    int force;
    struct vocabulary *words;
    struct buffer *texts; /* which words point into */
    size_t text_count, text_room;
    struct caption_file captions;
    uint64_t sentences, all;
};

/* Counts the words of one sentence; none: it is no sentence. */
static int count_sentence(struct count *c, char *text, size_t n, struct error *e)
{
    const uint64_t before = c->all;
    struct word w;
    size_t at = 0;
    int rc;

    while ((rc = words_next(text, n, &at, &w, e)) > 0) {
        if ((rc = vocabulary_count(c->words, w, e)) < 0)
            return rc;
        c->all++;
    }
    c->sentences += c->all > before;
    return rc;
}

static int count_captions(struct count *c, const char *directory, struct error *e)
{
    struct caption_paths paths;
    int rc = caption_paths_find(&paths, directory, DATASET_TRAIN, e);

    if (rc < 0 || (rc = caption_file_read(&c->captions, paths.annotations, e)) < 0)
        return rc;
    for (size_t i = 0; i < c->captions.count && rc == OK; i++)
        if ((rc = count_sentence(c, c->captions.captions[i].text, strlen(c->captions.captions[i].text), e)) < 0)
            error_prefix(e, "%s: caption %zu", paths.annotations, i);
    return rc;
}

/* Each line is a sentence. */
static int count_file(struct count *c, const char *path, struct error *e)
{
    struct buffer *text;
    int rc;

    if (!ARRAY_ROOM(c->texts, c->text_room, c->text_count + 1))
        return error_memory(e, path, "to read it");
    text = &c->texts[c->text_count++];
    buffer_init(text);
    rc = file_read(path, SIZE_MAX / 2, text, e);
    for (size_t at = 0; rc == OK && at < text->length;) {
        const size_t end = words_skip_lines(text->data, text->length, at, 1);

        if ((rc = count_sentence(c, text->data + at, end - at, e)) < 0)
            error_prefix(e, "%s: line at byte %zu", path, at);
        at = end;
    }
    return rc;
}

static int is_directory(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* <S> and </S> occur once in each sentence, and are among the words where their count puts them. */
static void append_special(struct count *c, struct buffer *out, int64_t *written)
{
    buffer_format(out, "%s %" PRIu64 "\n%s %" PRIu64 "\n", WORD_LIST_END, c->sentences, WORD_LIST_START, c->sentences);
    *written += 2;
}

/* Returns how many lines. */
static int64_t append_words(struct count *c, struct buffer *out)
{
    const int32_t used = vocabulary_choose(c->words, INT32_MAX);
    int64_t written = 0;
    int special = 0;

    for (int32_t k = VOCABULARY_FIRST; k < used && (!c->most || written + !special * 2 < c->most); k++) {
        const struct word w = vocabulary_word(c->words, k);
        const uint64_t n = vocabulary_frequency(c->words, k);

        if (n < (uint64_t)c->least)
            break;
        if (!special && n < c->sentences) {
            append_special(c, out, &written);
            special = 1;
        }
        buffer_format(out, "%.*s %" PRIu64 "\n", (int)w.length, w.text, n);
        written++;
    }
    if (!special)
        append_special(c, out, &written);
    return written;
}

static int write_words(struct count *c, const char *path, struct error *e)
{
    struct buffer out = BUFFER_EMPTY;
    const int64_t written = append_words(c, &out);
    int rc = OK;

    if (!buffer_ok(&out))
        rc = error_memory(e, path, "to write it");
    else if (written > WORD_LIST_WORDS_MAX)
        rc = error_set(e, ERR_ARG, "%" PRId64 " words are too many: at most %d; give a larger --min-count, or --most",
                       written, WORD_LIST_WORDS_MAX);
    else if (!path)
        fwrite(out.data, 1, out.length, stdout);
    else if (!c->force && access(path, F_OK) == 0)
        rc = error_set(e, ERR_ARG, "%s exists, and checkpoints may be trained with it; --force replaces it", path);
    else
        rc = file_replace(NULL, path, out.data, out.length, e);
    if (rc == OK && path)
        printf("%s: %" PRId64 " words; %" PRIu64 " sentences of %" PRIu64 " words in all\n", path, written,
               c->sentences, c->all);
    buffer_release(&out);
    return rc;
}

static int run(struct count *c, char **paths, int count, struct error *e)
{
    const int captions = is_directory(paths[0]);
    const char *output = c->output;
    char own[PATH_MAX];
    int rc;

    if (captions && count > 1)
        return error_set(e, ERR_ARG, "%s: a directory of captions must be alone", paths[0]);
    if ((rc = vocabulary_new(&c->words, e)) < 0)
        return rc;
    if (captions)
        rc = count_captions(c, paths[0], e);
    for (int i = 0; i < count && !captions && rc == OK; i++)
        rc = count_file(c, paths[i], e);
    if (rc == OK && !c->sentences)
        rc = error_set(e, ERR_ARG, "%s: has no words", paths[0]);
    if (rc == OK && captions && !output) {
        rc = file_join(own, sizeof own, paths[0], CAPTION_SET_VOCABULARY, e);
        output = own;
    }
    return rc == OK ? write_words(c, output && strcmp(output, "-") != 0 ? output : NULL, e) : rc;
}

int command_vocabulary(int argc, char **argv)
{
    struct count c = { .least = 4 };
    struct option table[] = {
        { OPTION_INT, 0, "min-count", &c.least, "N",
          .help = "Leave out words that occur fewer than N times; they become <UNK> (default: 4).", .minimum = 1,
          .maximum = (double)INT32_MAX },
        { OPTION_INT, 0, "most", &c.most, "N", .help = "Keep only the N most frequent words (default: 0, all).",
          .minimum = 0, .maximum = WORD_LIST_WORDS_MAX },
        { OPTION_TEXT, 'o', "output", &c.output, "FILE",
          .help = "Write to FILE (default: DIR/word_counts.txt of captions, standard output, -, of texts)." },
        { OPTION_FLAG, 'f', "force", &c.force, .help = "Replace an existing FILE." },
    };
    const struct options options = {
        .program = "dataset vocabulary",
        .usage = "[OPTION...] DIR|FILE...",
        .summary =
            "Count the words of the training captions in DIR, laid out as COCO is, or of texts, whose lines are "
            "sentences. Write a line for each word with its count, the most frequent first, as im2txt does: the "
            "number of a word is that of its line. <S> and </S>, which begin and end a sentence, are among them. "
            "Words are lower case; a mark such as a comma is a word.",
        .examples = "  dataset vocabulary captions\n  dataset vocabulary --min-count 1 a.txt b.txt -o words.txt\n",
        .table = table,
        .count = sizeof table / sizeof *table,
        .least = 1,
        .wanted = "name a directory of captions, or text files;",
    };
    struct error e = { 0 };
    int count = 0, rc = options_parse(&options, argc, argv, &count, &e);

    if (rc == OPTIONS_DONE)
        return EXIT_DONE;
    if (rc == OK)
        rc = run(&c, argv + 1, count, &e);
    vocabulary_free(c.words);
    caption_file_release(&c.captions);
    for (size_t i = 0; i < c.text_count; i++)
        buffer_release(&c.texts[i]);
    free(c.texts);
    return rc < 0 ? command_fail(options.program, &e) : EXIT_DONE;
}
