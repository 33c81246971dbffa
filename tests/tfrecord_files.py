"""TFRecord files of tf.train.Example, without TensorFlow: framed and encoded by hand."""
import struct

TABLE = []
for value in range(256):
    for _ in range(8):
        value = value >> 1 ^ 0x82f63b78 * (value & 1)
    TABLE.append(value)


def masked_crc(data):
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    crc ^= 0xffffffff
    return struct.pack("<I", (crc >> 15 | crc << 17) + 0xa282ead8 & 0xffffffff)


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def example(parts):
    """parts: {key: bytes or int}."""
    entries = b""
    for key, value in parts.items():
        feature = field(1, field(1, value)) if isinstance(value, bytes) else field(3, field(1, varint(value)))
        entries += field(1, field(1, key.encode()) + field(2, feature))
    return field(1, entries)


def record(data):
    length = struct.pack("<Q", len(data))
    return length + masked_crc(length) + data + masked_crc(data)


def write_tfrecord(path, examples):
    """Returns where each record begins, and where the file ends."""
    places = [0]
    with open(path, "wb") as file:
        for parts in examples:
            file.write(record(example(parts)))
            places.append(file.tell())
    return places
