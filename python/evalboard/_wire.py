"""TensorBoard's messages in protobuf's wire format, as PyTorch's and tensorboardX's writers make them.

Every function returns bytes. The numbers of the fields are those of tensorboard/compat/proto/{event,summary,tensor}.proto
and of the plugins' messages. Fields with their default value are left out, as protobuf does.
"""
from __future__ import annotations

import struct

DTYPES = {"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "complex64": 8, "int64": 9, "bool": 10,
          "bfloat16": 14, "uint16": 17, "complex128": 18, "float16": 19, "uint32": 22, "uint64": 23}
STRING = 7


def varint(n: int) -> bytes:
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number: int, content: bytes) -> bytes:
    """A field of bytes, present even when it is empty."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def text(number: int, content: str) -> bytes:
    """A field of type string; nothing for ""."""
    return field(number, content.encode()) if content else b""


def integer(number: int, n: int) -> bytes:
    return varint(number << 3) + varint(n) if n else b""


def double(number: int, x: float) -> bytes:
    """A double; nothing for 0, but for -0."""
    packed = struct.pack("<d", x)
    return varint(number << 3 | 1) + packed if packed != b"\0" * 8 else b""


def event(wall_time: float, step: int | None, body: bytes) -> bytes:
    return double(1, wall_time) + integer(2, int(step) if step is not None else 0) + body


def summary(*values: bytes) -> bytes:
    """The field of an event that holds these Summary.Values."""
    return field(5, b"".join(field(1, value) for value in values))


def metadata(plugin: str = "", content: bytes = b"", display_name: str = "", description: str = "") -> bytes:
    """The field `metadata` of a Summary.Value."""
    data = field(1, text(1, plugin) + (field(2, content) if content else b"")) if plugin else b""
    return field(9, data + text(2, display_name) + text(3, description))


def simple_value(tag: str, number: float, meta: bytes = b"") -> bytes:
    try:
        packed = struct.pack("<f", number)
    except OverflowError:  # a double beyond float's range
        packed = struct.pack("<f", float("inf") if number > 0 else float("-inf"))
    return text(1, tag) + b"\x15" + packed + meta


def histogram(tag, minimum, maximum, number, total, squares, limits, counts) -> bytes:
    """A HistogramProto; limits and counts are sequences of floats."""
    def packed(field_number, values):
        return field(field_number, struct.pack(f"<{len(values)}d", *values)) if len(values) else b""

    histo = double(1, minimum) + double(2, maximum) + double(3, number) + double(4, total) + double(5, squares) + \
        packed(6, limits) + packed(7, counts)
    return text(1, tag) + field(5, histo)


def image(tag, height, width, colorspace, encoded) -> bytes:
    content = integer(1, height) + integer(2, width) + integer(3, colorspace) + (field(4, encoded) if encoded else b"")
    return text(1, tag) + field(4, content)


def audio(tag, sample_rate, channels, frames, encoded) -> bytes:
    rate = struct.pack("<f", sample_rate)
    content = (b"\x0d" + rate if rate != b"\0" * 4 else b"") + integer(2, channels) + integer(3, frames) + \
        field(4, encoded) + text(5, "audio/wav")
    return text(1, tag) + field(6, content)


def shape(lengths) -> bytes:
    """A TensorShapeProto's fields."""
    return b"".join(field(2, integer(1, int(n))) for n in lengths)


def tensor(dtype: int, content: bytes, lengths=None) -> bytes:
    """The field `tensor` of a Summary.Value; content: its fields beside dtype and shape. lengths None: no shape."""
    return field(8, integer(1, dtype) + (field(2, shape(lengths)) if lengths is not None else b"") + content)


def floats(values) -> bytes:
    """float_val of a tensor, from a contiguous little-endian array of float32's bytes."""
    return field(5, values) if values else b""


def strings(values) -> bytes:
    return b"".join(field(8, value) for value in values)


# ---- hyperparameters ----------------------------------------------------------------------------------------------------
TYPE_STRING, TYPE_BOOL, TYPE_NUMBER = 1, 2, 3


def struct_value(kind: int, value) -> bytes:
    """A google.protobuf.Value, whose member is present even when it is 0."""
    if kind == TYPE_STRING:
        return field(3, value.encode())
    if kind == TYPE_BOOL:
        return b"\x20" + (b"\x01" if value else b"\0")
    return b"\x11" + struct.pack("<d", value)


def hparam_info(name: str, kind: int, domain=None) -> bytes:
    listed = field(5, b"".join(field(1, struct_value(kind, v)) for v in domain)) if domain is not None else b""
    return text(1, name) + integer(4, kind) + listed


def hparams_value(tag: str, content: bytes) -> bytes:
    return text(1, tag) + metadata("hparams", content)


def experiment(infos, metrics) -> bytes:
    """HParamsPluginData with an experiment."""
    metric = [field(5, field(1, text(2, tag))) for tag in metrics]
    return field(2, b"".join(field(4, info) for info in infos) + b"".join(metric))


def session_start(hparams) -> bytes:
    """HParamsPluginData with the start of a session; hparams: (name, kind, value) of each."""
    return field(3, b"".join(field(1, text(1, name) + field(2, struct_value(kind, value))) for name, kind, value in hparams))


def session_end(status: int = 1) -> bytes:
    return field(4, integer(1, status))


# ---- the layout of custom scalars ---------------------------------------------------------------------------------------
def layout(categories: dict) -> bytes:
    """A serialized Layout of {category: {chart: ["Multiline" or "Margin", tags]}}."""
    out = b""
    for category, charts in categories.items():
        content = text(1, category)
        for title, (kind, tags, *_) in charts.items():
            if kind == "Margin":
                if len(tags) != 3:
                    raise AssertionError(f"a margin chart has three tags: value, lower, upper; {title!r} has {len(tags)}")
                series = field(1, text(1, tags[0]) + text(2, tags[1]) + text(3, tags[2]))
                content += field(2, text(1, title) + field(3, series))
            else:
                content += field(2, text(1, title) + field(2, b"".join(field(1, tag.encode()) for tag in tags)))
        out += field(2, content)
    return out
