"""Checkpoints as NumPy arrays, without TensorFlow: TensorFlow's V2 bundles (as of tf.train.Saver and Keras) and safetensors,
with the names of tf.train.load_checkpoint().

    reader = evalboard.checkpoint.load("ckpt/model.ckpt-700")      # or a directory: the newest complete one
    reader.get_variable_to_shape_map()
    reader.get_tensor("conv1/weights")

save() writes a safetensors file of arrays or tensors, which `evaluator` may watch for.

The work is done by the program `checkpoint`, which the wheel has: it checks every length and CRC, in a process of its own. A
tensor is written to a safetensors file by it, which is then mapped, not copied. Programs and this module so have one reader of
the format, and no second public C interface to keep.
"""
from __future__ import annotations

import json
import mmap
import os
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from evalboard._library import EventLogArgumentError, EventLogCorruptError, EventLogError, EventLogOSError, StrPath, program

__all__ = ["Checkpoint", "CheckpointError", "latest", "list_variables", "load", "load_checkpoint", "load_variable",
           "save"]

# safetensors' names of types; what NumPy lacks is handed out as raw numbers of that size, bfloat16 as float32.
DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U64": "<u8",
          "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?", "C64": "<c8", "F8_E4M3": "u1", "F8_E5M2": "u1"}
HEADER_MAX = 100 << 20


class CheckpointError(EventLogError, ValueError):
    """What the program `checkpoint` refuses; the text is its own sentence."""


def _run(*arguments: str) -> str:
    run = subprocess.run([program("checkpoint"), *arguments], capture_output=True, text=True)
    if run.returncode:
        lines = [line for line in run.stderr.splitlines() if line.strip()]
        raise CheckpointError("\n".join(lines) or f"checkpoint {arguments[0]} ended with status {run.returncode}")
    return run.stdout


def _exact(name: str) -> str:
    """A pattern of the shell that matches this name alone."""
    return "".join(f"[{c}]" if c in "*?[" else "\\\\" if c == "\\" else c for c in name)


def _system_error(path: str, what: str, error: OSError) -> EventLogOSError:
    failure = EventLogOSError(f"{path}: cannot be {what}: {error.strerror or error}")
    failure.errno = error.errno
    return failure


class _Safetensors:
    """A safetensors file, mapped. Only what lies within the file is handed out."""

    def __init__(self, path: StrPath) -> None:
        self.path = os.fspath(path)
        try:
            file = open(path, "rb")
        except OSError as error:
            raise _system_error(self.path, "opened", error) from error
        with file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(8)
            length = struct.unpack("<Q", head)[0] if len(head) == 8 else 0
            if not 2 <= length <= min(HEADER_MAX, size - 8):
                raise EventLogCorruptError(f"{self.path}: not a safetensors file: its header would have {length} of {size} bytes")
            try:
                self.tensors = json.loads(file.read(length))
                self.metadata = self.tensors.pop("__metadata__", {})
            except (ValueError, AttributeError) as error:
                raise EventLogCorruptError(f"{self.path}: not a safetensors file: its header is not JSON: {error}") from None
            self.start = 8 + length
            self.map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def array(self, name: str) -> np.ndarray:
        """Read-only, in the mapped file."""
        entry = self.tensors[name]
        dtype, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        size = 2 if dtype == "BF16" else np.dtype(DTYPES[dtype]).itemsize if dtype in DTYPES else 0
        if not size:
            raise EventLogCorruptError(f"{self.path}: {name}: elements of type {dtype} have no place in NumPy")
        count = 1
        for n in shape:
            count *= n
        if min([0, *shape]) < 0 or not 0 <= begin <= end <= len(self.map) - self.start or end - begin != count * size:
            raise EventLogCorruptError(f"{self.path}: {name}: shape {shape} of {dtype} does not match bytes {begin} to {end}")
        if dtype == "BF16":
            raw = np.frombuffer(self.map, "<u2", count, self.start + begin)
            return (raw.astype("<u4") << 16).view("<f4").reshape(shape)
        return np.frombuffer(self.map, DTYPES[dtype], count, self.start + begin).reshape(shape)


def _strings(data: bytes, shape: list[int], where: str) -> np.ndarray:
    """A bundle's tensor of strings: a varint of each length, four bytes of a CRC over these (which `checkpoint` has checked),
    then the strings."""
    count = 1
    for n in shape:
        count *= n
    lengths, at = [], 0
    while len(lengths) < count:
        length = shift = 0
        while True:
            if at >= len(data) or shift > 63:
                raise EventLogCorruptError(f"{where}: the lengths of its strings are damaged")
            byte, at = data[at], at + 1
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        lengths.append(length)
    at += 4
    if at + sum(lengths) != len(data):
        raise EventLogCorruptError(f"{where}: its strings do not fill its {len(data)} bytes")
    array = np.empty(count, object)
    for i, length in enumerate(lengths):
        array[i], at = data[at:at + length], at + length
    return array.reshape(shape)


class Checkpoint(Mapping):
    """The tensors of one checkpoint: a mapping from names to arrays, which are read when they are asked for.

    path: prefix of a TensorFlow checkpoint, a safetensors file, or a directory, of which the newest complete checkpoint is
    taken. Arrays are read-only. bfloat16 becomes float32; strings become arrays of bytes objects."""

    def __init__(self, path: StrPath) -> None:
        self.path = os.fspath(path)
        self._file = _Safetensors(path) if self.path.endswith(".safetensors") else None
        if self._file:
            self._listed = {name: (e["dtype"], list(e["shape"])) for name, e in self._file.tensors.items()}
        else:
            found = json.loads(_run("inspect", "--no-statistics", "--json", self.path))
            self._listed = {t["name"]: (t["dtype"], t["shape"]) for t in found["tensors"]}
            self.path = found["path"]

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._listed:
            raise KeyError(f"{self.path} has no tensor {name!r}")
        return self.read([name])[name]

    def read(self, names: Any = None) -> dict[str, np.ndarray]:
        """{name: array} of these tensors, or of all, in one go."""
        names = list(self._listed) if names is None else list(names)
        if self._file:
            return {name: self._file.array(name) for name in names}
        if not names:
            return {}
        chosen = [] if len(names) == len(self._listed) else [w for name in names for w in ("--tensor", _exact(name))]
        with tempfile.TemporaryDirectory(prefix="evalboard-") as directory:
            path = os.path.join(directory, "tensors.safetensors")
            _run("convert", *chosen, self.path, path)
            file = _Safetensors(path)  # stays mapped when its name is gone
        return {name: self._restored(file, name) for name in names}

    def _restored(self, file: _Safetensors, name: str) -> np.ndarray:
        """What safetensors has no type for, as `checkpoint convert` kept it."""
        array, kept = file.array(name), file.metadata.get(f"tensorflow.dtype/{name}", "")
        if kept == "complex128":
            return array.view("<c16").reshape(array.shape[:-1])
        if kept.startswith("string["):
            shape = [int(n) for n in kept[len("string["):-1].split(",") if n.strip()]
            return _strings(array.tobytes(), shape, f"{self.path}: {name}")
        return array

    # ---- as tf.train.load_checkpoint() ----------------------------------------------------------------------------------
    def get_tensor(self, name: str) -> np.ndarray:
        """The tensor of this name."""
        return self[name]

    def has_tensor(self, name: str) -> bool:
        """Whether there is a tensor of this name."""
        return name in self._listed

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """{name: shape} of all tensors."""
        return {name: list(shape) for name, (_, shape) in self._listed.items()}

    def get_variable_to_dtype_map(self) -> dict[str, str]:
        """{name: type} of all tensors, as the format names it: "float32" or "DT_FLOAT", "F32"."""
        return {name: dtype for name, (dtype, _) in self._listed.items()}


def load(path: StrPath) -> Checkpoint:
    """Opens a checkpoint; see Checkpoint."""
    return Checkpoint(path)


load_checkpoint = load


def load_variable(path: StrPath, name: str) -> np.ndarray:
    """One tensor of a checkpoint."""
    return Checkpoint(path)[name]


def list_variables(path: StrPath) -> list[tuple[str, list[int]]]:
    """[(name, shape)] of the tensors of a checkpoint, by name."""
    return sorted(Checkpoint(path).get_variable_to_shape_map().items())


def latest(directory: StrPath) -> str | None:
    """The path of the newest complete checkpoint in a directory, None if it has none."""
    try:
        return json.loads(_run("inspect", "--no-statistics", "--json", os.fspath(directory)))["path"]
    except CheckpointError as error:
        if "no checkpoint in this directory" in str(error) or "no complete checkpoint" in str(error):
            return None
        raise


def _stored(name: str, value: Any) -> tuple[str, list[int], bytes]:
    """(type, shape, bytes) of a tensor as safetensors has it."""
    from evalboard._values import as_array

    if str(getattr(value, "dtype", "")) == "torch.bfloat16":  # NumPy has none
        import torch

        raw = value.detach().cpu().contiguous().view(torch.int16).numpy()
        return "BF16", list(raw.shape), raw.astype("<i2", copy=False).tobytes()
    try:
        array = as_array(value).reshape(()) if np.isscalar(value) else as_array(value)
    except (NotImplementedError, TypeError) as error:
        raise EventLogArgumentError(f"{name}: cannot be saved: {error}") from None
    if array.dtype.name == "bfloat16":  # of ml_dtypes, as JAX has it
        return "BF16", list(array.shape), np.ascontiguousarray(array).view("<u2").tobytes()
    for dtype, code in DTYPES.items():
        if not dtype.startswith("F8") and array.dtype.newbyteorder("<") == np.dtype(code):
            return dtype, list(array.shape), array.astype(code, copy=False).tobytes()
    raise EventLogArgumentError(f"{name}: has type {array.dtype}, which a safetensors file cannot hold")


def save(path: str | os.PathLike[str], tensors: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> None:
    """Writes a safetensors file of {name: array or tensor}. It is renamed into place when it is whole and on disk, so whoever
    watches its directory never sees half of it. The directory is made.

    metadata: {"format": "pt"} says that kernels have PyTorch's order of dimensions, {"global_step": "700"} names the step."""
    path = os.fspath(path)
    stored = {name: _stored(name, value) for name, value in tensors.items()}
    header: dict[str, Any] = {"__metadata__": {str(k): str(v) for k, v in metadata.items()}} if metadata else {}
    order, at = sorted(stored, key=lambda name: (-_size(stored[name][0]), name)), 0
    for name in order:
        dtype, shape, data = stored[name]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    directory, base = os.path.split(path)
    temporary = os.path.join(directory, f".{base}.{os.getpid()}.tmp")
    try:
        os.makedirs(directory or ".", exist_ok=True)
        with open(temporary, "wb") as file:
            file.write(struct.pack("<Q", len(head)) + head)
            for name in order:
                file.write(stored[name][2])
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        try:
            os.unlink(temporary)
        except OSError:
            pass
        raise _system_error(path, "written", error) from error


def _size(dtype: str) -> int:
    return 2 if dtype == "BF16" else np.dtype(DTYPES[dtype]).itemsize
