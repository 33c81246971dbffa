"""libeventlog.so by ctypes: its functions, its structs, its errors as exceptions.

The library is the one in the package's folder `lib` (a wheel has it there), the one that EVALBOARD_LIBRARY names, or the
system's libeventlog.so.0, in this order. Calls release the interpreter's lock.
"""
from __future__ import annotations

import ctypes
import os
from ctypes import (POINTER, byref, c_char_p, c_double, c_float, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_uint8,
                    c_void_p)
from typing import Union

# What names a file or directory.
StrPath = Union[str, "os.PathLike[str]"]

HERE = os.path.dirname(os.path.abspath(__file__))

OK, ERROR_IO, ERROR_CORRUPT, ERROR_MEMORY, ERROR_ARGUMENT = 0, -1, -2, -3, -4


class EventLogError(Exception):
    """What libeventlog refuses; the text is the library's own sentence. Subclasses say of which sort it is."""


class EventLogOSError(EventLogError, OSError):
    """The operating system refused a call; `errno` has its number."""


class EventLogCorruptError(EventLogError, ValueError):
    """A file or a value breaks its format."""


class EventLogMemoryError(EventLogError, MemoryError):
    """No memory."""


class EventLogArgumentError(EventLogError, ValueError):
    """An argument that TensorBoard would hide or stumble over: a text that is not UTF-8, a wall time that is NaN, ..."""


def exception(code: int, error: Error) -> EventLogError:
    """The exception for a result below 0."""
    text = error.message.decode("utf-8", "replace")
    if code == ERROR_IO:
        made = EventLogOSError(text)
        made.errno = error.system or None
        return made
    kinds = {ERROR_CORRUPT: EventLogCorruptError, ERROR_MEMORY: EventLogMemoryError, ERROR_ARGUMENT: EventLogArgumentError}
    return kinds.get(code, EventLogError)(text)


def call(function, *arguments, cause=None) -> int:
    """Calls a function whose last parameter is the error. Returns its result, or raises what it says, from what cause() says
    where a function of Python's was called and failed."""
    error = Error()
    result = function(*arguments, byref(error))
    if result < 0:
        failure = cause() if cause and result == ERROR_IO else None
        if failure and not isinstance(failure, Exception):
            raise failure  # Ctrl-C
        raise exception(result, error) from failure
    return result


# ---- structs, as the library itself describes them ----------------------------------------------------------------------
_TYPES = {("i", 4): ctypes.c_int32, ("i", 8): c_int64, ("u", 1): c_uint8, ("u", 4): c_uint32, ("u", 8): c_uint64,
          ("f", 4): c_float, ("f", 8): c_double, **dict.fromkeys([("t", 4), ("t", 8)], c_char_p),
          **dict.fromkeys([("p", 4), ("p", 8)], c_void_p)}


def _members(library) -> dict[str, list[tuple[str, int, int, str]]]:
    """{struct: [(member, offset, size, kind)]}, of which the first, without a name, is the struct itself: what
    eventlog_member() says."""
    tell = library.eventlog_member
    offset, size, kind = c_size_t(), c_size_t(), ctypes.c_char()
    words = byref(offset), byref(size), byref(kind)
    found: dict[str, list[tuple[str, int, int, str]]] = {}
    index = 0
    while (name := tell(index, *words)) is not None:
        struct, _, member = name.decode().partition(".")
        found.setdefault(struct, []).append((member, offset.value, size.value, kind.value.decode()))
        index += 1
    return found


def _struct(name: str, **kinds) -> type[ctypes.Structure]:
    """The struct of this name. kinds: what pointers that are looked into point to, and structs inside."""
    (_, _, whole, _), *members = _LAYOUT[name]
    fields: list[tuple[str, type]] = []
    for member, _, size, kind in members:
        if kind == "c":
            made: type = ctypes.c_char * size
        elif kind == "r":
            made = c_uint64 * (size // 8)
        else:
            made = kinds.get(member) or _TYPES[kind, size]
        fields.append((member, made))
    struct = type(name, (ctypes.Structure,), {"_fields_": fields})
    if ctypes.sizeof(struct) < whole:  # of a later library, with members at the end
        struct = type(name, (ctypes.Structure,), {"_fields_": [*fields, ("_more", c_uint8 * (whole - ctypes.sizeof(struct)))]})
    for member, offset, size, _ in members:
        place = getattr(struct, member)
        if (place.offset, place.size) != (offset, size):
            raise ImportError(f"struct {name} of this libeventlog has {member} at {offset}, ctypes at {place.offset}; report it")
    return struct


def _load() -> ctypes.CDLL:
    tried = []
    for path in (os.path.join(HERE, "lib", "libeventlog.so.0"), os.environ.get("EVALBOARD_LIBRARY"), "libeventlog.so.0"):
        if not path or (path.startswith(HERE) and not os.path.exists(path)):
            continue
        try:
            return ctypes.CDLL(path)
        except OSError as error:
            tried.append(str(error))
    raise ImportError("evalboard finds no libeventlog.so.0 (" + "; ".join(tried) + "); install the wheel, or the package "
                      "libeventlog0, or let EVALBOARD_LIBRARY name the file")


def _declare(library, name: str, result, parameters) -> None:
    function = getattr(library, name, None)
    if function is None:
        raise ImportError(f"{library._name} is older than this package: it has no {name}(); install libeventlog of the same "
                          "version")
    function.restype, function.argtypes = result, parameters


lib = _load()
_declare(lib, "eventlog_member", c_char_p, [c_size_t, POINTER(c_size_t), POINTER(c_size_t), POINTER(ctypes.c_char)])
_LAYOUT = _members(lib)

Error = _struct("eventlog_error")
WriterOptions = _struct("eventlog_writer_options")
WriterStatistics = _struct("eventlog_writer_statistics", last_error=Error)
ReaderOptions = _struct("eventlog_reader_options", runs=POINTER(c_char_p), tags=POINTER(c_char_p))
Event = _struct("eventlog_event")
Damage = _struct("eventlog_damage")
Series = _struct("eventlog_series", tag=c_void_p)  # may hold a NUL
Value = _struct("eventlog_value", series=POINTER(Series))
Bytes = _struct("eventlog_bytes")
Tensor = _struct("eventlog_tensor", shape=POINTER(c_int64), strings=POINTER(Bytes))
Blobs = _struct("eventlog_blobs", items=POINTER(Bytes))
Repair = _struct("eventlog_repair")
MergeOptions = _struct("eventlog_merge_options")
Merged = _struct("eventlog_merged")
# What an output's functions are; an int that is not 0 is an errno.
BEGIN = ctypes.CFUNCTYPE(c_int, c_void_p, c_char_p, POINTER(c_void_p))
WRITE = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t)
END = ctypes.CFUNCTYPE(c_int, c_void_p)
Output = _struct("eventlog_output", begin=BEGIN, write=WRITE, sync=END, end=END)

KIND_OTHER, KIND_SCALAR, KIND_HISTOGRAM, KIND_IMAGE, KIND_AUDIO, KIND_TEXT, KIND_TENSOR = range(7)
READ_END, READ_EVENT, READ_DAMAGE, READ_RESTARTED = range(4)
VIEW_ALL, VIEW_TENSORBOARD, VIEW_SESSION = range(3)
RESUME_NEW, RESUME_APPEND, RESUME_PURGE = range(3)

_ERROR = POINTER(Error)
# function: (result, parameters); of those with an error the result is a c_int.
_FUNCTIONS = {
    "eventlog_version": (c_char_p, []),
    "eventlog_free": (None, [c_void_p]),
    "eventlog_writer_open": (c_int, [POINTER(c_void_p), c_char_p, POINTER(WriterOptions), _ERROR]),
    "eventlog_writer_open_output": (c_int, [POINTER(c_void_p), POINTER(Output), POINTER(WriterOptions), _ERROR]),
    "eventlog_writer_scalar": (c_int, [c_void_p, c_char_p, c_int64, c_double, c_float, _ERROR]),
    "eventlog_writer_scalars": (c_int, [c_void_p, c_void_p, c_size_t, c_char_p, c_size_t, POINTER(c_size_t), _ERROR]),
    "eventlog_writer_scalars_once": (c_int, [c_void_p, c_void_p, c_size_t, c_char_p, c_size_t, c_uint64, POINTER(c_uint64),
                                             _ERROR]),
    "eventlog_writer_event": (c_int, [c_void_p, c_char_p, c_size_t, _ERROR]),
    "eventlog_writer_flush": (c_int, [c_void_p, _ERROR]),
    "eventlog_writer_sync": (c_int, [c_void_p, _ERROR]),
    "eventlog_writer_path": (c_char_p, [c_void_p]),
    "eventlog_writer_statistics": (c_int, [c_void_p, POINTER(WriterStatistics), _ERROR]),
    "eventlog_writer_close": (c_int, [c_void_p, _ERROR]),
    "eventlog_bucket_counts_range": (c_int, [c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, POINTER(c_double),
                                             POINTER(c_double), _ERROR]),
    "eventlog_png": (c_int, [c_void_p, c_size_t, c_size_t, c_size_t, POINTER(c_void_p), POINTER(c_size_t), _ERROR]),
    "eventlog_repair": (c_int, [c_char_p, c_char_p, c_int, POINTER(Repair), _ERROR]),
    "eventlog_merge": (c_int, [POINTER(c_char_p), c_size_t, c_char_p, POINTER(MergeOptions), POINTER(Merged), _ERROR]),
    "eventlog_downsample": (c_int, [c_void_p, c_void_p, c_size_t, c_size_t, c_void_p, _ERROR]),
    "eventlog_reader_open": (c_int, [POINTER(c_void_p), c_char_p, POINTER(ReaderOptions), _ERROR]),
    "eventlog_reader_close": (None, [c_void_p]),
    "eventlog_reader_next": (c_int, [c_void_p, _ERROR]),
    "eventlog_reader_wait": (c_int, [c_void_p, c_double, _ERROR]),
    "eventlog_reader_event": (POINTER(Event), [c_void_p]),
    "eventlog_reader_damage": (POINTER(Damage), [c_void_p]),
    "eventlog_reader_value": (POINTER(Value), [c_void_p]),
    "eventlog_reader_tensor": (c_int, [c_void_p, POINTER(Tensor), _ERROR]),
    "eventlog_reader_histogram": (c_int, [c_void_p, POINTER(c_void_p), POINTER(c_size_t), _ERROR]),
    "eventlog_reader_blobs": (c_int, [c_void_p, POINTER(Blobs), _ERROR]),
    "eventlog_points_read": (c_int, [POINTER(c_void_p), c_char_p, c_int, POINTER(ReaderOptions), _ERROR]),
    "eventlog_points_free": (None, [c_void_p]),
    "eventlog_points_run": (c_char_p, [c_void_p, c_size_t]),
    "eventlog_points_series": (POINTER(Series), [c_void_p, c_size_t]),
    "eventlog_points_of": (c_void_p, [c_void_p, c_size_t, POINTER(c_size_t)]),
    "eventlog_points_damaged": (c_uint64, [c_void_p]),
}
for _name, (_result, _parameters) in _FUNCTIONS.items():
    _declare(lib, _name, _result, _parameters)


def program(name: str) -> str:
    """The path of the program `eventlog` or `checkpoint`: the package's, else the one in EVALBOARD_BIN, else in PATH."""
    import shutil

    for folder in (os.path.join(HERE, "bin"), os.environ.get("EVALBOARD_BIN")):
        if folder and os.access(os.path.join(folder, name), os.X_OK):
            return os.path.join(folder, name)
    found = shutil.which(name)
    if not found:
        raise FileNotFoundError(f"the program {name} is neither in this package nor in PATH; install evalboard")
    return found
