"""What the tests of the tool `checkpoint` share: running it, and small checkpoints made without any framework."""
import json
import os
import pathlib
import struct
import subprocess

from waiting import DEADLINE

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
CODES = {"F32": "f", "F64": "d", "I64": "q", "I32": "i", "U8": "B"}


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
