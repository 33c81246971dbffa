#include "eventlog/check/log_finding.h"

#define STOPS_BOTH "stops there, nothing behind it is ever read", "stops there for good"

static const struct log_finding_text texts[LOG_KINDS] = {
    [LOG_LENGTH_CRC] = { "length_crc", LOG_DAMAGE, "the CRC of the record's length is wrong", STOPS_BOTH },
    [LOG_DATA_CRC] = { "data_crc", LOG_DAMAGE, "the CRC of the record's data is wrong",
                       "shows the wrong value, or gives the file up if it is no event", "stops there for good" },
    [LOG_TOO_LONG] = { "too_long", LOG_DAMAGE, "the record's length is over protobuf's limit",
                       "aborts: allocation failed", "dies, or waits for ever" },
    [LOG_NO_LOG] = { "no_log", LOG_DAMAGE, "the file is no event file at all", "reads nothing", "reads nothing" },
    [LOG_STREAM] = { "stream", LOG_DAMAGE,
                     "the compressed file is damaged or cut: nothing after this point can be read",
                     "reads nothing of it", "reads nothing of it" },
    [LOG_PROTOBUF] = { "protobuf", LOG_DAMAGE, "the record is no Event message", "gives the file up",
                       "an exception ends all loading" },
    [LOG_GROUP_END] = { "group_end", LOG_DAMAGE, "an end-group tag that closes nothing", "gives the file up",
                        "accepts it" },
    [LOG_WIRE_TYPE] = { "wire_type", LOG_DAMAGE, "a known field has another wire type", "gives the file up",
                        "skips the field" },
    [LOG_UTF8] = { "utf8", LOG_DAMAGE, "a tag or another string is not UTF-8", "gives the file up",
                   "an exception ends all loading" },
    [LOG_WALL_NAN] = { "wall_nan", LOG_DAMAGE, "the wall time is NaN", "gives the file up", "keeps the event" },

    [LOG_COMPRESSED] = { "compressed", LOG_HIDDEN, "the file is compressed", "reads nothing", "reads nothing" },
    [LOG_PARTIAL] = { "partial", LOG_HIDDEN, "the last record is not whole: being written, or cut",
                      "waits for the rest", "waits for the rest" },
    [LOG_EMPTY_FILE] = { "empty_file", LOG_NOTE, "the file is empty", "does not list a run without an event",
                         "lists the run" },
    [LOG_NO_VERSION] = { "no_version", LOG_NOTE, "the first record is no file_version", "does not care",
                         "drops steps that go back instead of heeding session starts" },
    [LOG_NAME_ORDER] = { "name_order", LOG_HIDDEN,
                         "this file's number comes before the former's, its name sorts behind",
                         "reads it too late: points of later steps vanish", "reads the points out of order" },
    [LOG_DIRECTORY_NAME] = { "directory_name", LOG_HIDDEN, "a directory with 'tfevents' in its name",
                             "reads it as a run", "takes it for an event file: an exception ends all loading" },
    [LOG_RUN_NAME] = { "run_name", LOG_HIDDEN, "the run's name is not UTF-8",
                       "replaces the bytes by U+FFFD, and may merge two runs", "an exception, nothing is loaded" },
    [LOG_BACKUP_NAME] = { "backup_name", LOG_HIDDEN, "the name is that of a copy, but has 'tfevents' in it",
                          "reads it as a part of the run", "reads it as a part of the run" },
    [LOG_HIDDEN_DIRECTORY] = { "hidden_directory", LOG_NOTE, "the run is in a hidden directory", "reads it",
                               "reads it" },

    [LOG_WALL_INFINITE] = { "wall_infinite", LOG_HIDDEN, "the wall time is infinite", "drops the event", "keeps it" },
    [LOG_WALL_ZERO] = { "wall_zero", LOG_HIDDEN, "an event without wall time, such as a record of 0 bytes",
                        "lets the run start in 1970", "lets the run start in 1970 if it is the first" },
    [LOG_WALL_UNIT] = { "wall_unit", LOG_NOTE, "the wall time is after the year 5000: not in seconds?", "shows it so",
                        "shows it so" },
    [LOG_START_AGAIN] = { "start_again", LOG_NOTE, "a second session start, below steps that were logged",
                          "ignores it", "drops the points from its step on, of all tags" },
    [LOG_START_FIRST] = { "start_first", LOG_NOTE, "the run's first session start, below steps that were logged",
                          "ignores it", "ignores it, as the first one of a run" },

    [LOG_SCALAR_FORM] = { "scalar_form", LOG_HIDDEN, "a scalar that is not a float32 of rank 0", "drops the point",
                          "shows it" },
    [LOG_SCALAR_VALUE] = { "scalar_value", LOG_HIDDEN, "a scalar of a type or size that is no number",
                           "drops the point", "an exception: no scalar of any run is shown" },
    [LOG_NO_VALUE] = { "no_value", LOG_HIDDEN, "a value without content", "drops the point, or shows an empty tensor",
                       "an exception: nothing of this plugin is shown" },
    [LOG_SCALAR_CHANGED] = { "scalar_changed", LOG_HIDDEN, "a tag that was a scalar before holds something else",
                             "drops the point", "an exception: no scalar of any run is shown" },
    [LOG_KIND_CHANGED] = { "kind_changed", LOG_HIDDEN, "a tag holds another kind of data than before",
                           "drops the point", "cannot read the series" },
    [LOG_BLOB_FORM] = { "blob_form", LOG_HIDDEN, "not a list of byte strings, as this plugin wants",
                        "drops the point", "cannot read it" },
    [LOG_BLOB_SHAPE] = { "blob_shape", LOG_HIDDEN, "byte strings of a shape that Python takes only without data class",
                         "shows it", "cannot read it" },
    [LOG_BLOB_TAG] = { "blob_tag", LOG_HIDDEN, "a quote, a backslash or a newline in the tag of blobs",
                       "cannot read them: INVALID_ARGUMENT", "shows them" },
    [LOG_NO_CLASS] = { "no_class", LOG_HIDDEN, "a plugin that TensorBoard does not know, or none, and no data class",
                       "neither lists nor shows it", "lists the plugin, not the data" },
    [LOG_DATA_CLASS] = { "data_class", LOG_HIDDEN, "a data class that does not exist", "does not show it",
                         "does not show it" },
    [LOG_LEGACY_CLASS] = { "legacy_class", LOG_HIDDEN, "a value of the old kind, with the data class of another",
                           "lists the tag without points", "goes by the value and ignores the class" },
    [LOG_TENSOR_COUNT] = { "tensor_count", LOG_HIDDEN, "a tensor whose elements do not fill its shape, or of a type "
                           "that has no array", "answers with an error 500", "answers with an error" },
    [LOG_HISTOGRAM_LENGTHS] = { "histogram_lengths", LOG_HIDDEN, "a histogram with more limits than counts, or fewer",
                                "drops the point", "uses the shorter length" },
    [LOG_HISTOGRAM_EDGES] = { "histogram_edges", LOG_NOTE, "a histogram with empty outer buckets",
                              "shows a bucket whose left edge is right of its right one", "leaves them out" },
    [LOG_HPARAMS] = { "hparams", LOG_HIDDEN, "hyperparameters whose content is missing or of another version",
                      "shows none", "shows none" },
    [LOG_MESH_SHAPE] = { "mesh_shape", LOG_HIDDEN, "a mesh whose metadata has no shape",
                         "answers with an error 500: no mesh of any run is shown", "the same" },
    [LOG_LAYOUT_TAG] = { "layout_tag", LOG_HIDDEN, "a custom scalars layout under another tag than "
                         "custom_scalars__config__", "does not look for it", "does not look for it" },
    [LOG_IMAGE_TYPE] = { "image_type", LOG_HIDDEN, "an image that is not PNG, JPEG, GIF or BMP",
                         "sends it as unknown bytes", "sends it as unknown bytes" },
    [LOG_NO_PICTURE] = { "no_picture", LOG_HIDDEN, "an images tensor without a picture", "shows nothing at that step",
                         "shows nothing at that step" },
    [LOG_GRAPH] = { "graph", LOG_HIDDEN, "a graph that is no GraphDef message, or has no node",
                    "says that it is malformed or empty", "says that it is malformed or empty" },
    [LOG_TEXT_LOST] = { "text_lost", LOG_HIDDEN, "a display name or description with a value of the old kind",
                        "shows neither", "shows them" },
    [LOG_TEXT_LATE] = { "text_late", LOG_HIDDEN,
                        "a display name or description other than that of the tag's first value",
                        "keeps those of the first value", "keeps those of the first value" },
    [LOG_METADATA_ONCE] = { "metadata_once", LOG_HIDDEN, "metadata is not repeated in this file of the run",
                            "remembers it", "cannot read the values of this file" },
    [LOG_INTERLEAVED] = { "interleaved", LOG_HIDDEN, "this file and one before it were written at the same time, and "
                          "their steps interleave", "points of the earlier file vanish", "shows all, out of order" },
    [LOG_STEP_TWICE] = { "step_twice", LOG_NOTE, "a step twice in a row", "shows the later one", "shows both" },
    [LOG_STEP_BACK] = { "step_back", LOG_NOTE, "a step below the one before",
                        "drops the earlier points from that step on", "keeps them, if the file has a version" },
    [LOG_STALE_TAIL] = { "stale_tail", LOG_NOTE, "not logged again since the session start at a lower step",
                         "goes on showing the points from that step on", "drops them if that start was not the first" },
};

const struct log_finding_text *log_finding_text(enum log_finding_kind kind)
{
    return &texts[kind];
}

const char *log_level_word(enum log_level level)
{
    static const char *const words[] = { "note", "hidden", "damage" };

    return words[level];
}
