/* checkpoint inspect --all: lists the checkpoints of a directory and says which are whole. */
#include "checkpoint/tool/inspect.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/human.h"
#include "base/json.h"
#include "checkpoint/directory/checkpoint_directory.h"
#include "checkpoint/tool/command.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct file {
    char *name;
    uint64_t size;
    double written;
};

/* of the directory, sorted by name: read once, however many checkpoints there are */
struct files {
    const char *directory;
    struct file *items;
    size_t count, room;
};

static int compare_files(const void *a, const void *b)
{
    return strcmp(((const struct file *)a)->name, ((const struct file *)b)->name);
}

static void files_release(struct files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->items[i].name);
    free(files->items);
}

static int files_add(struct files *files, const char *name, const struct stat *st)
{
    if (!ARRAY_ROOM(files->items, files->room, files->count + 1))
        return ERR_NOMEM;
    files->items[files->count] = (struct file){ strdup(name), (uint64_t)st->st_size,
                                                (double)st->st_mtim.tv_sec + (double)st->st_mtim.tv_nsec * 1e-9 };
    if (!files->items[files->count].name)
        return ERR_NOMEM;
    files->count++;
    return OK;
}

static int files_read(struct files *files, const char *directory, struct error *e)
{
    DIR *d = opendir(directory);
    struct dirent *entry;
    struct stat st;
    int rc = OK;

    if (!d)
        return error_system(e, "%s: cannot open the directory", directory);
    while (rc == OK && (entry = readdir(d)))
        if (fstatat(dirfd(d), entry->d_name, &st, 0) == 0)
            rc = files_add(files, entry->d_name, &st);
    closedir(d);
    if (rc != OK)
        return error_set(e, rc, "%s: no memory to list it", directory);
    if (files->count)
        qsort(files->items, files->count, sizeof *files->items, compare_files);
    return OK;
}

static void pass_over(void *context, const struct error *e)
{
    (void)context;
    (void)e;
}

/* Bytes of the parts that are there; 0 of what is no index. */
static uint64_t parts_size(const char *path)
{
    struct safetensors *s;
    uint64_t bytes;

    if (!safetensors_is_index(path) || safetensors_open_damaged(&s, path, pass_over, NULL, NULL) != OK)
        return 0;
    bytes = safetensors_bytes(s);
    safetensors_close(s);
    return bytes;
}

/* The size and the time of a checkpoint: of NAME.index and all NAME.data-*, or of the file itself. */
static uint64_t files_size(const struct files *files, const struct checkpoint_name *item, double *written)
{
    const char *name = item->name;
    size_t low = 0, high = files->count, length = strlen(name);
    uint64_t size = 0;
    char path[PATH_MAX];
    struct stat st;

    if (strchr(name, '/') && file_join(path, sizeof path, files->directory, name, NULL) == OK && stat(path, &st) == 0) {
        *written = (double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec * 1e-9;
        return (uint64_t)st.st_size + parts_size(path);
    }
    while (low < high) { /* the first file that does not sort before NAME */
        size_t middle = low + (high - low) / 2;

        if (strcmp(files->items[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < files->count && strncmp(files->items[low].name, name, length) == 0; low++) {
        const char *rest = files->items[low].name + length;

        if (strcmp(rest, ".index") == 0 || (!*rest && item->format != CHECKPOINT_FORMAT_BUNDLE))
            *written = files->items[low].written;
        else if (item->format != CHECKPOINT_FORMAT_BUNDLE || strncmp(rest, ".data-", 6) != 0 ||
                 checkpoint_name_temporary(rest))
            continue;
        size += files->items[low].size;
    }
    return size;
}

/* Errors begin with the path of a file; here all are in one directory. */
static const char *without_directory(const char *sentence, const char *directory)
{
    size_t n = strlen(directory);

    if (strncmp(sentence, directory, n) != 0)
        return sentence;
    while (sentence[n] == '/')
        n++;
    return sentence + n;
}

/* why: what it lacks; NULL: it is whole. */
static void show_listed(struct inspect *x, const struct files *files, const struct checkpoint_name *item,
                        const char *why, double now)
{
    struct buffer *b = &x->out.text;
    double written = now;
    uint64_t size = files_size(files, item, &written);
    char text[HUMAN_TEXT_MAX];

    if (x->out.json) {
        buffer_append_text(b, x->first ? "\n{\"name\":" : ",\n{\"name\":");
        x->first = 0;
        json_text(b, item->name);
        buffer_format(b, item->step < 0 ? ",\"step\":null" : ",\"step\":%lld", (long long)item->step);
        buffer_format(b, ",\"whole\":%s,\"bytes\":%llu,\"age\":", why ? "false" : "true", (unsigned long long)size);
        json_double(b, now - written);
        if (why) {
            buffer_append_text(b, ",\"why\":");
            json_text(b, why);
        }
        buffer_append_byte(b, '}');
        output_put(&x->out);
        return;
    }
    table_text(&x->table, item->name, strlen(item->name));
    if (item->step >= 0)
        table_cell(&x->table, "%lld", (long long)item->step);
    else
        table_cell(&x->table, "-");
    table_cell(&x->table, "%s", human_bytes(size, text));
    table_cell(&x->table, "%s", human_duration(now - written, text));
    table_cell(&x->table, "%s", why ? why : "complete");
}

int inspect_directory(struct inspect *x, const char *directory, struct error *e)
{
    static const struct table_column columns[] = {
        { .title = "checkpoint", .cut = 16 }, { .title = "step", .right = 1 },
        { .title = "size", .right = 1 },      { .title = "age", .right = 1, .leave_out = 1 },
        { .title = "state", .cut = 12 },
    };
    struct checkpoint_list list = { NULL, 0 };
    struct files files = { directory, NULL, 0, 0 };
    size_t whole = 0;
    int rc;

    if ((rc = checkpoint_directory_list_all(directory, &list, e)) != OK ||
        (rc = files_read(&files, directory, e)) != OK) {
        checkpoint_list_release(&list);
        files_release(&files);
        return rc;
    }
    x->first = 1;
    table_init(&x->table, columns, sizeof columns / sizeof *columns);
    if (x->out.json) {
        buffer_append_text(&x->out.text, "{\"type\":\"checkpoints\",\"version\":1,\"directory\":");
        json_text(&x->out.text, directory);
        buffer_append_text(&x->out.text, ",\"checkpoints\":[");
    }
    for (size_t i = 0; i < list.count; i++) {
        struct error why = { 0 };
        int is_whole = checkpoint_listed_whole(directory, &list.items[i], &why);

        whole += (size_t)is_whole;
        show_listed(x, &files, &list.items[i], is_whole ? NULL : without_directory(why.message, directory),
                    clock_wall());
    }
    if (x->out.json) {
        buffer_append_text(&x->out.text, "\n]}\n");
    } else {
        command_table(&x->table, &x->out);
        buffer_format(&x->out.text, "total: %zu checkpoint%s, %zu complete\n", list.count, list.count == 1 ? "" : "s",
                      whole);
    }
    output_put(&x->out);
    checkpoint_list_release(&list);
    files_release(&files);
    return OK;
}
