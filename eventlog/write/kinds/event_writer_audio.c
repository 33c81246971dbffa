#include "eventlog/write/event_writer.h"

#include "base/bytes.h"
#include "eventlog/eventlog.h"

#include <math.h>
#include <string.h>

/*
 * A value of the audio plugin has a row (WAV file, label) for each clip; TensorBoard drops the labels. A WAV file of
 * 16-bit samples: "RIFF", bytes that follow, "WAVE"; "fmt ", 16, format 1 (PCM), channels, rate, bytes a second, bytes
 * a frame, bits a sample; "data", its bytes, the samples, channels interleaved. All little-endian.
 */
enum { WAV_HEADER = 44, CHANNELS_MAX = 64, CLIPS_MAX = 1 << 16 };

static const uint8_t plugin_content[] = { 0x10, 11 }; /* AudioPluginData.encoding = WAV */

static void put_header(uint8_t *p, uint32_t data, unsigned channels, uint32_t rate)
{
    memcpy(p, "RIFF", 4);
    put_le32(p + 4, data + WAV_HEADER - 8);
    memcpy(p + 8, "WAVEfmt ", 8);
    put_le32(p + 16, 16);
    put_le16(p + 20, 1);
    put_le16(p + 22, (uint16_t)channels);
    put_le32(p + 24, rate);
    put_le32(p + 28, rate * channels * 2);
    put_le16(p + 32, (uint16_t)(channels * 2));
    put_le16(p + 34, 16);
    memcpy(p + 36, "data", 4);
    put_le32(p + 40, data);
}

/* As TensorFlow's encode_wav: times 32768, rounded away from 0, clamped to the range. */
static uint16_t sample(float x)
{
    float scaled = roundf(x * 32768);

    return (uint16_t)(scaled <= -32768 ? -32768 : scaled >= 32767 ? 32767 : (int)scaled);
}

static int put_wav(struct wire *member, const float *samples, size_t frames, unsigned channels, uint32_t rate,
                   struct error *e)
{
    size_t count = frames * channels, file = wire_begin(member, TENSOR_FIELD_STRING);
    uint8_t *p = (uint8_t *)buffer_reserve(&member->bytes, WAV_HEADER + count * 2);

    if (!p)
        return OK; /* member knows */
    put_header(p, (uint32_t)(count * 2), channels, rate);
    for (size_t i = 0; i < count; i++) {
        if (isnan(samples[i]))
            return error_set(e, ERR_ARG, "sample %zu of an audio clip is not a number", i);
        put_le16(p + WAV_HEADER + i * 2, sample(samples[i]));
    }
    member->bytes.length += WAV_HEADER + count * 2;
    wire_end(member, file);
    return OK;
}

static size_t audio_begin(struct wire *member, size_t clips)
{
    int64_t shape[] = { (int64_t)clips, 2 };

    return event_writer_value_tensor(member, EVENTLOG_DTYPE_STRING, shape, 2);
}

static int encode_samples(struct wire *member, const float *samples, size_t clips, size_t frames, unsigned channels,
                          uint32_t rate, struct error *e)
{
    size_t tensor;
    int rc = OK;

    if (!clips || clips > CLIPS_MAX || !channels || channels > CHANNELS_MAX)
        return error_set(e, ERR_ARG, "%zu audio clips of %u channels; 1 to %d clips of 1 to %d channels can be written",
                         clips, channels, CLIPS_MAX, CHANNELS_MAX);
    if (!rate || rate > UINT32_MAX / (channels * 2) || frames > ((size_t)1 << 29) / channels)
        return error_set(e, ERR_ARG, "cannot write an audio clip of %zu frames at %u Hz", frames, (unsigned)rate);
    tensor = audio_begin(member, clips);
    for (size_t i = 0; i < clips && rc == OK; i++) {
        rc = put_wav(member, samples + i * frames * channels, frames, channels, rate, e);
        wire_text_always(member, TENSOR_FIELD_STRING, "");
    }
    wire_end(member, tensor);
    return rc;
}

static int audio_encode_files(struct wire *member, const struct eventlog_bytes *clips, size_t n, struct error *e)
{
    size_t tensor;

    if (!n || n > CLIPS_MAX)
        return error_set(e, ERR_ARG, "%zu audio clips; 1 to %d can be written", n, CLIPS_MAX);
    tensor = audio_begin(member, n);
    for (size_t i = 0; i < n; i++) {
        const uint8_t *p = clips[i].data;

        if (clips[i].length < 12 || memcmp(p, "RIFF", 4) != 0 || memcmp(p + 8, "WAVE", 4) != 0)
            return error_set(e, ERR_ARG, "audio clip %zu is not a WAV file, the only kind that TensorBoard plays", i);
        wire_bytes(member, TENSOR_FIELD_STRING, p, clips[i].length);
        wire_text_always(member, TENSOR_FIELD_STRING, "");
    }
    wire_end(member, tensor);
    return OK;
}

static struct event_writer_value audio_value_of(const char *tag, int64_t step, double wall_time,
                                                const struct eventlog_value_options *options)
{
    return (struct event_writer_value){ .tag = tag,
                                        .step = step,
                                        .wall_time = wall_time,
                                        .plugin = "audio",
                                        .blob = 1,
                                        .content = plugin_content,
                                        .content_length = sizeof plugin_content,
                                        .options = options };
}

int eventlog_writer_audio(struct eventlog_writer *w, const char *tag, int64_t step, double wall_time,
                          const float *samples, size_t clips, size_t frames, unsigned channels, uint32_t sample_rate,
                          const struct eventlog_value_options *options, struct eventlog_error *error)
{
    struct event_writer_value value = audio_value_of(tag, step, wall_time, options);
    struct wire member = WIRE_EMPTY;
    struct error e = { 0 };
    int rc = encode_samples(&member, samples, clips, frames, channels, sample_rate, &e);

    return event_writer_finish(w, rc, &value, &member, &e, error);
}

int eventlog_writer_audio_encoded(struct eventlog_writer *w, const char *tag, int64_t step, double wall_time,
                                  const struct eventlog_bytes *clips, size_t n,
                                  const struct eventlog_value_options *options, struct eventlog_error *error)
{
    struct event_writer_value value = audio_value_of(tag, step, wall_time, options);
    struct wire member = WIRE_EMPTY;
    struct error e = { 0 };
    int rc = audio_encode_files(&member, clips, n, &e);

    return event_writer_finish(w, rc, &value, &member, &e, error);
}
