"""What the tests of the tool `checkpoint` share: running it, and small checkpoints made without any framework."""
import json
import os
import pathlib
import re
import struct
import subprocess

from checksum import masked_crc32c
from waiting import DEADLINE

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
CODES = {"F32": "f", "F64": "d", "I64": "q", "I32": "i", "U8": "B"}


def version_1():
    """The file that TensorFlow wrote, as test_saved_slices.c has it: 7 tensors, step 700."""
    text = (pathlib.Path(__file__).parent / "checkpoint" / "test_saved_slices.c").read_text()
    return bytes.fromhex("".join(re.findall(r'"([0-9a-f]+)"', text[text.index("golden_hex[] ="):text.index("enum { GOLDEN")])))


def run(*words, columns=None, **environment):
    """As on a terminal of so many columns, or through a pipe."""
    # Readline, which pytest loads, exports COLUMNS behind Python's back: children would inherit it.
    variables = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    if columns:
        variables["COLUMNS"] = str(columns)
    return subprocess.run([BUILD / "bin/checkpoint", *map(str, words)], capture_output=True, timeout=DEADLINE, text=True,
                          env={**variables, **environment})


def checkpoint(*words, status=0):
    """Standard output; standard error where the status is 2."""
    done = run(*words)
    assert done.returncode == status, (done.returncode, done.stdout[-2000:], done.stderr)
    return done.stdout if status < 2 else done.stderr


def as_json(*words, status=0):
    return json.loads(checkpoint(*words, "--json", status=status))


def tensor(dtype, values, shape=None):
    """(dtype, shape, bytes) of numbers; shape: [] for a scalar, else by default one dimension."""
    values = list(values) if hasattr(values, "__iter__") else [values]
    return dtype, [len(values)] if shape is None else shape, struct.pack(f"<{len(values)}{CODES[dtype]}", *values)


def text(words):
    """Text as the trainer keeps it: a vector of bytes."""
    return tensor("U8", words.encode())


def write_safetensors(path, tensors, metadata=None):
    """A file of {name: tensor()}, in their order."""
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    head = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(head)) + head + data)
    return path


def write_bundle(prefix, tensors):
    """A TensorFlow checkpoint of {name: tensor()}."""
    file = write_safetensors(prefix.parent / f"{prefix.name}.tmp.safetensors", tensors)
    checkpoint("convert", "--force", "--to", "bundle", file, prefix)
    file.unlink()
    return prefix


def write_index(path, entries):
    """An index of one data block, with right CRCs whatever stands in it: {key: value}, both bytes, in their order."""
    def varint(n):
        return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)

    def block(items):
        return b"".join(b"\0" + varint(len(key)) + varint(len(value)) + key + value for key, value in items) + struct.pack("<II", 0, 1)

    def stored(data):
        return data + b"\0" + masked_crc32c(data + b"\0")

    data = block(entries.items())
    meta = block([])
    index = block([(b"\xff", varint(0) + varint(len(data)))])
    meta_at, index_at = len(data) + 5, len(data) + 5 + len(meta) + 5
    footer = varint(meta_at) + varint(len(meta)) + varint(index_at) + varint(len(index))
    path.write_bytes(stored(data) + stored(meta) + stored(index) + footer.ljust(40, b"\0") + struct.pack("<Q", 0xdb4775248b80fb57))
    return path
