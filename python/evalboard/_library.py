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

VERSION = "0.1.0"
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


# ---- structs, as eventlog.h has them (tests/python/test_python_library.py compares) ----------------------------------------
def _struct(name: str, **members) -> type[ctypes.Structure]:
    return type(name, (ctypes.Structure,), {"_fields_": list(members.items())})


Error = _struct("eventlog_error", code=c_int, system=c_int, message=ctypes.c_char * 480)
WriterOptions = _struct(
    "eventlog_writer_options", buffer_bytes=c_size_t, flush_seconds=c_double, suffix=c_char_p, source=c_char_p, sync=c_int,
    sync_seconds=c_double, rotate_bytes=c_uint64, rotate_seconds=c_double, resume=c_int, purge_step=c_int64, queue_bytes=c_size_t,
    when_full=c_int, leave_lost=c_int64)
WriterStatistics = _struct(
    "eventlog_writer_statistics", events=c_uint64, queued=c_uint64, dropped=c_uint64, bytes=c_uint64, files=c_uint64,
    writes=c_uint64, syncs=c_uint64, flushes=c_uint64, errors=c_uint64, last_error=Error, lost=c_uint64)
ReaderOptions = _struct(
    "eventlog_reader_options", runs=POINTER(c_char_p), run_count=c_size_t, tags=POINTER(c_char_p), tag_count=c_size_t,
    has_first_step=c_int, has_last_step=c_int, first_step=c_int64, last_step=c_int64, numbers_only=c_int, records_only=c_int)
Event = _struct(
    "eventlog_event", run=c_char_p, file=c_char_p, what=c_int, step=c_int64, wall_time=c_double, offset=c_uint64, data=c_void_p,
    length=c_size_t, payload=c_void_p, payload_length=c_size_t)
Damage = _struct("eventlog_damage", kind=c_int, offset=c_uint64, found=c_uint64, wanted=c_uint64, text=c_char_p)
Series = _struct(
    "eventlog_series", run=c_char_p, tag=c_void_p, tag_length=c_size_t, plugin=c_char_p, display_name=c_char_p,
    description=c_char_p, plugin_content=c_void_p, plugin_content_length=c_size_t)  # a tag may hold a NUL
Value = _struct(
    "eventlog_value", series=POINTER(Series), kind=c_int, step=c_int64, wall_time=c_double, number=c_double, stored=c_int,
    dtype=c_int, data=c_void_p, length=c_size_t)
Bytes = _struct("eventlog_bytes", data=c_void_p, length=c_size_t)
Tensor = _struct(
    "eventlog_tensor", dtype=c_int, rank=c_size_t, elements=c_size_t, shape=POINTER(c_int64), data=c_void_p, bytes=c_size_t,
    strings=POINTER(Bytes), string_count=c_size_t)
Blobs = _struct("eventlog_blobs", items=POINTER(Bytes), count=c_size_t, width=c_int64, height=c_int64)
Repair = _struct(
    "eventlog_repair", changed=c_int, size=c_uint64, records=c_uint64, bytes=c_uint64, places=c_uint64, refused=c_uint64,
    cut=c_uint64)
MergeOptions = _struct("eventlog_merge_options", overlap=c_int, prefix=c_int, join=c_int, force=c_int)
Merged = _struct(
    "eventlog_merged", files=c_uint64, records=c_uint64, values=c_uint64, bytes=c_uint64, restarts=c_uint64, restarted=c_uint64,
    doubled=c_uint64, repeated=c_uint64, interleaved=c_uint64, damaged=c_uint64, torn=c_uint64)
# What an output's functions are; an int that is not 0 is an errno.
BEGIN = ctypes.CFUNCTYPE(c_int, c_void_p, c_char_p, POINTER(c_void_p))
WRITE = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t)
END = ctypes.CFUNCTYPE(c_int, c_void_p)
Output = _struct("eventlog_output", context=c_void_p, begin=BEGIN, write=WRITE, sync=END, end=END)


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


def _check_version(library) -> None:
    """Until 1.0, structs may differ between versions."""
    library.eventlog_version.restype = c_char_p
    found = library.eventlog_version().decode()
    if found != VERSION:
        raise ImportError(f"{library._name} is libeventlog {found}, and this package is of {VERSION}; install libeventlog of the "
                          "same version")


def _declare(library, name: str, result, parameters) -> None:
    function = getattr(library, name, None)
    if function is None:
        raise ImportError(f"{library._name} has no {name}(); install libeventlog of the same version")
    function.restype, function.argtypes = result, parameters


lib = _load()
_check_version(lib)

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
