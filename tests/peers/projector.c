/* projector DIRECTORY: a run with a scalar and two embeddings, for the test that asks TensorBoard for them. Point i of
 * "words" has the coordinates i / 7, -i, i * 1e-20; "digits \"0\" \\" has labels of two columns and pictures of one
 * colour each, 3 x 2, (10 i, 20 i, 255).
 */
#include "eventlog/eventlog.h"

#include <stdio.h>
#include <stdlib.h>

enum { WORDS = 50, DIGITS = 5, WIDTH = 3, HEIGHT = 2 };

static int failed(const struct eventlog_error *e)
{
    fprintf(stderr, "projector: %s\n", e->message);
    return 1;
}

int main(int argc, char **argv)
{
    static float words[WORDS][3], digits[DIGITS][2];
    static uint8_t pictures[DIGITS][HEIGHT * WIDTH][3];
    static char texts[WORDS][20];
    const char *labels[WORDS];
    static const char *const names[] = { "digit", "größe" };
    static const char *const cells[] = { "0", "null", "1", "eins", "2", "zwei", "3", "", "4", "vier" };
    struct eventlog_embedding embeddings[] = {
        { .name = "words", .values = words[0], .points = WORDS, .dimensions = 3, .labels = labels, .columns = 1 },
        { .name = "digits \"0\" \\",
          .values = digits[0],
          .points = DIGITS,
          .dimensions = 2,
          .labels = cells,
          .columns = 2,
          .column_names = names,
          .sprites = pictures[0][0],
          .sprite_height = HEIGHT,
          .sprite_width = WIDTH,
          .sprite_channels = 3 },
    };
    struct eventlog_writer *w;
    struct eventlog_error e;

    for (int i = 0; i < WORDS; i++) {
        words[i][0] = (float)i / 7;
        words[i][1] = (float)-i;
        words[i][2] = (float)i * 1e-20f;
        snprintf(texts[i], sizeof texts[i], "wörd %d", i);
        labels[i] = texts[i];
    }
    for (int i = 0; i < DIGITS; i++) {
        digits[i][0] = digits[i][1] = (float)i;
        for (int k = 0; k < HEIGHT * WIDTH; k++) {
            pictures[i][k][0] = (uint8_t)(10 * i);
            pictures[i][k][1] = (uint8_t)(20 * i);
            pictures[i][k][2] = 255;
        }
    }
    if (argc != 2)
        return 2;
    if (eventlog_writer_open(&w, argv[1], NULL, &e) != EVENTLOG_OK ||
        eventlog_writer_scalar(w, "loss", 1, 0, 1, &e) != EVENTLOG_OK ||
        eventlog_writer_projector(w, embeddings, 2, &e) != EVENTLOG_OK ||
        eventlog_writer_projector(w, embeddings, 2, &e) != EVENTLOG_OK) /* the second replaces the first */
        return failed(&e);
    return eventlog_writer_close(w, &e) == EVENTLOG_OK ? 0 : failed(&e);
}
