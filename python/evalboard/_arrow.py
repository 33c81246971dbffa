"""A table of points as a stream of Arrow's C data interface (https://arrow.apache.org/docs/format/CStreamInterface.html), by
ctypes alone: pyarrow, polars, DuckDB and others take it by __arrow_c_stream__().

What a struct refers to is kept in `_held` until the struct's release() is called, which may be in any thread.
"""
from __future__ import annotations

import ctypes
import errno
import itertools
from ctypes import POINTER, addressof, c_char_p, c_int, c_int64, c_void_p, pointer
from typing import Any, Iterator, Sequence

import numpy as np

Release = ctypes.CFUNCTYPE(None, c_void_p)
BATCH = 1 << 16  # points; a longer series is a batch of its own


class Schema(ctypes.Structure):
    pass


Schema._fields_ = [("format", c_char_p), ("name", c_char_p), ("metadata", c_char_p), ("flags", c_int64), ("n_children", c_int64),
                   ("children", POINTER(POINTER(Schema))), ("dictionary", POINTER(Schema)), ("release", Release),
                   ("private_data", c_void_p)]


class Array(ctypes.Structure):
    pass


Array._fields_ = [("length", c_int64), ("null_count", c_int64), ("offset", c_int64), ("n_buffers", c_int64),
                  ("n_children", c_int64), ("buffers", POINTER(c_void_p)), ("children", POINTER(POINTER(Array))),
                  ("dictionary", POINTER(Array)), ("release", Release), ("private_data", c_void_p)]

Fill = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p)
Words = ctypes.CFUNCTYPE(c_void_p, c_void_p)


class Stream(ctypes.Structure):
    _fields_ = [("get_schema", Fill), ("get_next", Fill), ("get_last_error", Words), ("release", Release),
                ("private_data", c_void_p)]


_held: dict[int, Any] = {}
_keys = itertools.count(1)


def _hold(struct, release, *objects) -> None:
    struct.private_data = next(_keys)
    struct.release = release
    _held[struct.private_data] = objects


def _release_of(kind):
    @Release
    def release(address):
        struct = kind.from_address(address)
        below = [struct.children[i].contents for i in range(struct.n_children)]
        if struct.dictionary:
            below.append(struct.dictionary.contents)
        for one in below:
            if one.release:  # not moved elsewhere
                one.release(addressof(one))
        struct.release = Release()
        _held.pop(struct.private_data, None)

    return release


_release_schema, _release_array = _release_of(Schema), _release_of(Array)


def _children(kind, children):
    return (POINTER(kind) * len(children))(*map(pointer, children))


def _schema(out: Schema, form: bytes, name: bytes, children: Sequence[Schema] = (), dictionary: Schema | None = None) -> Schema:
    below = _children(Schema, children)
    out.format, out.name, out.metadata, out.flags, out.n_children = form, name, None, 0, len(children)
    out.children = ctypes.cast(below, POINTER(POINTER(Schema)))
    out.dictionary = pointer(dictionary) if dictionary else None
    _hold(out, _release_schema, form, name, below, children, dictionary)
    return out


def _array(out: Array, length: int, buffers: Sequence, children: Sequence[Array] = (), dictionary: Array | None = None) -> Array:
    """buffers: NumPy arrays; the first, of validity, is always None."""
    below = _children(Array, children)
    addresses = (c_void_p * len(buffers))(*[None if b is None else b.ctypes.data for b in buffers])
    out.length, out.null_count, out.offset, out.n_buffers, out.n_children = length, 0, 0, len(buffers), len(children)
    out.buffers = ctypes.cast(addresses, POINTER(c_void_p))
    out.children = ctypes.cast(below, POINTER(POINTER(Array)))
    out.dictionary = pointer(dictionary) if dictionary else None
    _hold(out, _release_array, addresses, buffers, below, children, dictionary)
    return out


def _texts(values: list[str]) -> Array:
    data = [value.encode("utf-8", "replace") for value in values]
    offsets = np.cumsum([0, *map(len, data)], dtype=np.int32)
    return _array(Array(), len(data), [None, offsets, np.frombuffer(b"".join(data) or b"\0", np.uint8)])


def _batches(lengths: list[int]) -> Iterator[list[int]]:
    """Which series are in each batch."""
    batch: list[int] = []
    size = 0
    for i, length in enumerate(lengths):
        if batch and size + length > BATCH:
            yield batch
            batch, size = [], 0
        batch.append(i)
        size += length
    if batch:
        yield batch


class _Table:
    """What a stream gives: for each series its key (run, tag) and its points."""

    def __init__(self, keys: list[tuple[str, str]], points: list[np.ndarray]):
        self.keys, self.points = keys, points
        self.names = [sorted({key[i] for key in keys}) for i in (0, 1)]
        self.places = [{name: i for i, name in enumerate(names)} for names in self.names]
        self.batches = _batches(list(map(len, points)))

    def schema(self, address: int) -> None:
        names = [_schema(Schema(), b"i", name, dictionary=_schema(Schema(), b"u", b"")) for name in (b"run", b"tag")]
        numbers = [_schema(Schema(), form, name) for form, name in ((b"l", b"step"), (b"g", b"wall_time"), (b"g", b"value"))]
        _schema(Schema.from_address(address), b"+s", b"", [*names, *numbers])

    def next(self, address: int) -> None:
        batch = next(self.batches, None)
        out = Array.from_address(address)
        if batch is None:
            out.release = Release()
            return
        lengths = [len(self.points[i]) for i in batch]
        columns = []
        for which in (0, 1):
            places = np.array([self.places[which][self.keys[i][which]] for i in batch], np.int32)
            columns.append(_array(Array(), sum(lengths), [None, np.repeat(places, lengths)], dictionary=_texts(self.names[which])))
        for name in ("step", "wall_time", "value"):
            column = np.concatenate([self.points[i][name] for i in batch])
            columns.append(_array(Array(), len(column), [None, column]))
        _array(out, sum(lengths), [None], columns)


def _guarded(call) -> int:
    try:
        call()
    except MemoryError:
        return errno.ENOMEM
    except Exception:  # noqa: BLE001, C has no other way to hear of it
        return errno.EIO
    return 0


@Fill
def _get_schema(stream, out):
    return _guarded(lambda: _held[Stream.from_address(stream).private_data][0].schema(out))


@Fill
def _get_next(stream, out):
    return _guarded(lambda: _held[Stream.from_address(stream).private_data][0].next(out))


@Words
def _get_last_error(stream):
    return None


@Release
def _release_stream(address):
    stream = Stream.from_address(address)
    stream.release = Release()
    _held.pop(stream.private_data, None)


NAME = b"arrow_array_stream"
_python = ctypes.PyDLL(None)  # not ctypes.pythonapi, whose functions' parameters are everybody's to set
_new = _python.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [c_void_p, c_char_p, c_void_p]
_address_in = _python.PyCapsule_GetPointer
_address_in.restype, _address_in.argtypes = c_void_p, [c_void_p, c_char_p]
_streams: dict[int, Stream] = {}  # those in capsules


@ctypes.PYFUNCTYPE(None, c_void_p)
def _end_of_capsule(capsule):
    address = _address_in(capsule, NAME)
    stream = _streams.pop(address)
    if stream.release:
        stream.release(address)


def stream(keys: list[tuple[str, str]], points: list[np.ndarray]):
    """A capsule with the stream of a table of run and tag (dictionaries of texts), step, wall_time and value; each of the points
    is an array of evalboard.reader.POINT, whose columns are copied batch by batch."""
    made = Stream(_get_schema, _get_next, _get_last_error)
    _hold(made, _release_stream, _Table(keys, points))
    _streams[addressof(made)] = made
    return _new(addressof(made), NAME, ctypes.cast(_end_of_capsule, c_void_p))


class Table:
    """A log as a table and nothing else, for libraries that take the log itself for a dict of columns."""

    def __init__(self, log):
        self._log = log

    def __arrow_c_stream__(self, requested_schema=None):
        return self._log.__arrow_c_stream__(requested_schema)
