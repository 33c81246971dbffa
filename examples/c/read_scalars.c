/*
 * read_scalars DIRECTORY [TAG] [--follow] - prints the points of scalar series as they stand in the files; with
 * --follow goes on with those that come. TAG is a pattern, as in a shell.
 * cc -o read_scalars read_scalars.c $(pkg-config --cflags --libs eventlog)
 */
#include <eventlog/eventlog.h>

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    struct eventlog_reader_options options = { .numbers_only = 1 }; /* pictures and texts are passed over */
    struct eventlog_error error;
    struct eventlog_reader *reader;
    const struct eventlog_value *value;
    int follow = argc > 2 && !strcmp(argv[argc - 1], "--follow"), result;
    const char *tag = argc - follow == 3 ? argv[2] : "*";

    if (argc < 2 || argc - follow > 3) {
        fprintf(stderr, "usage: read_scalars DIRECTORY [TAG] [--follow]\n");
        return 2;
    }
    options.tags = &tag;
    options.tag_count = 1;
    if (eventlog_reader_open(&reader, argv[1], &options, &error) != EVENTLOG_OK) {
        fprintf(stderr, "read_scalars: %s\n", error.message);
        return 1;
    }
    do {
        /* Until the end for now: what is not whole yet comes in a later round. */
        while ((result = eventlog_reader_next(reader, &error)) != EVENTLOG_READ_END) {
            const struct eventlog_event *event = eventlog_reader_event(reader);

            if (result < 0)
                fprintf(stderr, "read_scalars: %s\n", error.message); /* this file; reading goes on with the next */
            else if (result == EVENTLOG_READ_DAMAGE)
                fprintf(stderr, "read_scalars: %s:%llu: %s\n", event->file,
                        (unsigned long long)eventlog_reader_damage(reader)->offset,
                        eventlog_reader_damage(reader)->text);
            else if (result == EVENTLOG_READ_RESTARTED)
                printf("# run %s begins again\n", event->run);
            else
                while ((value = eventlog_reader_value(reader)) != NULL)
                    printf("%s\t%s\t%lld\t%.9g\n", value->series->run, value->series->tag, (long long)value->step,
                           value->number);
        }
        fflush(stdout);
    } while (follow && eventlog_reader_wait(reader, 1.0, &error) >= 0); /* looks at least once a second */
    eventlog_reader_close(reader);
    return 0;
}
