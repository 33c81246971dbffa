#include "eventlog/write/event_writer.h"

#include "base/bytes.h"
#include "eventlog/eventlog.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A mesh is up to three series, <tag>_VERTEX, _FACE and _COLOR; each one's metadata names the mesh, its own part and,
 * as bits, all parts. */
enum part { PART_VERTEX = 1, PART_FACE = 2, PART_COLOR = 3 };

static const size_t NUMBERS_MAX = (size_t)1 << 28;

static int mesh_check(const struct eventlog_mesh *m, struct error *e)
{
    if (!m->vertices || !m->batch || !m->vertex_count || m->vertex_count > NUMBERS_MAX / 3 / m->batch)
        return error_set(e, ERR_ARG, "cannot write a batch of %zu meshes of %zu vertices", m->batch, m->vertex_count);
    if (m->faces && (!m->face_count || m->face_count > NUMBERS_MAX / 3 / m->batch))
        return error_set(e, ERR_ARG, "cannot write a batch of %zu meshes of %zu faces", m->batch, m->face_count);
    for (size_t i = 0; i < m->batch * m->vertex_count * 3; i++)
        if (!isfinite(m->vertices[i]))
            return error_set(e, ERR_ARG, "coordinate %zu of a mesh is %g, not a finite number", i,
                             (double)m->vertices[i]);
    for (size_t i = 0; m->faces && i < m->batch * m->face_count * 3; i++)
        if (m->faces[i] < 0 || (size_t)m->faces[i] >= m->vertex_count)
            return error_set(e, ERR_ARG, "corner %zu of a mesh's faces is vertex %d, but there are only %zu", i,
                             (int)m->faces[i], m->vertex_count);
    return OK;
}

/* MeshPluginData. shape's numbers are packed varints. */
static void encode_content(struct wire *content, const char *tag, const struct eventlog_mesh *m, enum part part,
                           const int64_t *shape)
{
    uint8_t packed[3 * VARINT_MAX];
    size_t n = 0;

    wire_text(content, 2, tag);
    wire_integer(content, 3, part);
    wire_text(content, 5, m->config ? m->config : "{}");
    for (size_t i = 0; i < 3; i++)
        n += (size_t)put_varint(packed + n, (uint64_t)shape[i]);
    wire_bytes(content, 6, packed, n);
    wire_integer(content, 7, 1 << PART_VERTEX | (m->faces ? 1 << PART_FACE : 0) | (m->colors ? 1 << PART_COLOR : 0));
}

static void encode_tensor(struct wire *member, const struct eventlog_mesh *m, enum part part, const int64_t *shape)
{
    static const int dtypes[] = {
        [PART_VERTEX] = EVENTLOG_DTYPE_FLOAT, [PART_FACE] = EVENTLOG_DTYPE_INT32, [PART_COLOR] = EVENTLOG_DTYPE_UINT8
    };
    size_t n = (size_t)(shape[0] * shape[1] * shape[2]);
    uint8_t *p = event_writer_value_room(member, dtypes[part], shape, 3, part == PART_COLOR ? n : n * 4);

    if (p && part == PART_COLOR)
        memcpy(p, m->colors, n);
    for (size_t i = 0; p && part != PART_COLOR && i < n; i++)
        put_le32(p + i * 4, part == PART_VERTEX ? float_bits(m->vertices[i]) : (uint32_t)m->faces[i]);
}

/* One part as a series of its own. */
static int put_part(struct eventlog_writer *w, int rc, const struct event_writer_value *mesh_value,
                    const struct eventlog_mesh *m, enum part part, struct error *e, struct eventlog_error *error)
{
    static const char *const suffixes[] = { "", "_VERTEX", "_FACE", "_COLOR" };
    int64_t shape[] = { (int64_t)m->batch, (int64_t)(part == PART_FACE ? m->face_count : m->vertex_count), 3 };
    struct event_writer_value value = *mesh_value;
    struct wire content = WIRE_EMPTY, member = WIRE_EMPTY;
    char *tag = NULL;

    if (rc == OK && asprintf(&tag, "%s%s", value.tag, suffixes[part]) < 0) {
        tag = NULL;
        rc = error_memory(e, NULL, "for a tag");
    }
    if (rc == OK) {
        encode_content(&content, value.tag, m, part, shape);
        if ((rc = wire_check(&content, "mesh", e)) == OK)
            encode_tensor(&member, m, part, shape);
    }
    value.tag = tag;
    value.content = content.bytes.data;
    value.content_length = content.bytes.length;
    rc = event_writer_finish(w, rc, &value, &member, e, error);
    wire_release(&content);
    free(tag);
    return rc;
}

int eventlog_writer_mesh(struct eventlog_writer *w, const char *tag, int64_t step, double wall_time,
                         const struct eventlog_mesh *mesh, const struct eventlog_value_options *options,
                         struct eventlog_error *error)
{
    struct event_writer_value value = {
        .tag = tag, .step = step, .wall_time = event_writer_time(wall_time), .plugin = "mesh", .options = options
    };
    struct error e = { 0 };
    int rc = tag && *tag ? mesh_check(mesh, &e) : error_set(&e, ERR_ARG, "a value needs a tag");

    rc = put_part(w, rc, &value, mesh, PART_VERTEX, &e, error);
    if (rc == EVENTLOG_OK && mesh->faces)
        rc = put_part(w, OK, &value, mesh, PART_FACE, &e, error);
    if (rc == EVENTLOG_OK && mesh->colors)
        rc = put_part(w, OK, &value, mesh, PART_COLOR, &e, error);
    return rc;
}
