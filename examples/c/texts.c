/*
 * texts DIRECTORY - notes in Markdown, and a table.
 * cc -o texts texts.c $(pkg-config --cflags --libs eventlog)
 */
#include <eventlog/eventlog.h>

#include <stdio.h>

int main(int argc, char **argv)
{
    static const char *const cells[] = { "**class**", "**right**", "**of**", "cat", "91", "100", "dog", "87", "100" };
    struct eventlog_error error;
    struct eventlog_writer *writer;
    int rc;

    if (argc != 2) {
        fprintf(stderr, "usage: texts DIRECTORY\n");
        return 2;
    }
    if ((rc = eventlog_writer_open(&writer, argv[1], NULL, &error)) != EVENTLOG_OK) {
        fprintf(stderr, "texts: %s\n", error.message);
        return 1;
    }
    rc = eventlog_writer_text(writer, "notes", 0, 0, "Second try, with a *smaller* learning rate.", NULL, &error);
    if (rc == EVENTLOG_OK)
        rc = eventlog_writer_text_table(writer, "by class", 0, 0, cells, 3, 3, NULL, &error);
    if (rc == EVENTLOG_OK)
        rc = eventlog_writer_close(writer, &error);
    else
        eventlog_writer_close(writer, NULL);
    if (rc != EVENTLOG_OK)
        fprintf(stderr, "texts: %s\n", error.message);
    return rc != EVENTLOG_OK;
}
