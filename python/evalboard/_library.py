"""libeventlog.so by ctypes: its functions, its structs, its errors as exceptions.

The library is the one in the package's folder `lib` (a wheel has it there), the one that EVALBOARD_LIBRARY names, or the
system's libeventlog.so.0, in this order. Calls release the interpreter's lock.
"""
from __future__ import annotations

import ctypes
import os
from ctypes import (POINTER, byref, c_char_p, c_double, c_float, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_uint8,
                    c_void_p)

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


class Error(ctypes.Structure):
    _fields_ = [("code", c_int), ("system", c_int), ("message", ctypes.c_char * 480)]


def exception(code: int, error: Error) -> EventLogError:
    """The exception for a result below 0."""
    text = error.message.decode("utf-8", "replace")
    if code == ERROR_IO:
        made = EventLogOSError(text)
        made.errno = error.system or None
        return made
    kinds = {ERROR_CORRUPT: EventLogCorruptError, ERROR_MEMORY: EventLogMemoryError, ERROR_ARGUMENT: EventLogArgumentError}
    return kinds.get(code, EventLogError)(text)


def call(function, *arguments) -> int:
    """Calls a function whose last parameter is the error. Returns its result, or raises what it says."""
    error = Error()
    result = function(*arguments, byref(error))
    if result < 0:
        raise exception(result, error)
    return result


class WriterOptions(ctypes.Structure):
    _fields_ = [("buffer_bytes", c_size_t), ("flush_seconds", c_double), ("suffix", c_char_p), ("source", c_char_p),
                ("sync", c_int), ("sync_seconds", c_double), ("rotate_bytes", c_uint64), ("rotate_seconds", c_double),
                ("resume", c_int), ("purge_step", c_int64), ("queue_bytes", c_size_t), ("when_full", c_int),
                ("leave_lost", c_int64), ("reserved", c_uint64 * 15)]


class WriterStatistics(ctypes.Structure):
    _fields_ = [(name, c_uint64) for name in ("events", "queued", "dropped", "bytes", "files", "writes", "syncs", "flushes",
                                              "errors")] + \
               [("last_error", Error), ("lost", c_uint64), ("reserved", c_uint64 * 7)]


class ReaderOptions(ctypes.Structure):
    _fields_ = [("runs", POINTER(c_char_p)), ("run_count", c_size_t), ("tags", POINTER(c_char_p)), ("tag_count", c_size_t),
                ("has_first_step", c_int), ("has_last_step", c_int), ("first_step", c_int64), ("last_step", c_int64),
                ("numbers_only", c_int), ("records_only", c_int), ("reserved", c_uint64 * 8)]


class Event(ctypes.Structure):
    _fields_ = [("run", c_char_p), ("file", c_char_p), ("what", c_int), ("step", c_int64), ("wall_time", c_double),
                ("offset", c_uint64), ("data", c_void_p), ("length", c_size_t), ("payload", c_void_p),
                ("payload_length", c_size_t)]


class Damage(ctypes.Structure):
    _fields_ = [("kind", c_int), ("offset", c_uint64), ("found", c_uint64), ("wanted", c_uint64), ("text", c_char_p)]


class Series(ctypes.Structure):
    _fields_ = [("run", c_char_p), ("tag", c_void_p), ("tag_length", c_size_t), ("plugin", c_char_p),
                ("display_name", c_char_p), ("description", c_char_p), ("plugin_content", c_void_p),
                ("plugin_content_length", c_size_t)]


class Value(ctypes.Structure):
    _fields_ = [("series", POINTER(Series)), ("kind", c_int), ("step", c_int64), ("wall_time", c_double),
                ("number", c_double), ("stored", c_int), ("dtype", c_int), ("data", c_void_p), ("length", c_size_t)]


class Bytes(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("length", c_size_t)]


class Tensor(ctypes.Structure):
    _fields_ = [("dtype", c_int), ("rank", c_size_t), ("elements", c_size_t), ("shape", POINTER(c_int64)),
                ("data", c_void_p), ("bytes", c_size_t), ("strings", POINTER(Bytes)), ("string_count", c_size_t),
                ("reserved", c_uint64 * 4)]


class Blobs(ctypes.Structure):
    _fields_ = [("items", POINTER(Bytes)), ("count", c_size_t), ("width", c_int64), ("height", c_int64),
                ("reserved", c_uint64 * 4)]


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
    "eventlog_writer_scalar": (c_int, [c_void_p, c_char_p, c_int64, c_double, c_float, _ERROR]),
    "eventlog_writer_scalars": (c_int, [c_void_p, c_void_p, c_size_t, c_char_p, c_size_t, POINTER(c_size_t), _ERROR]),
    "eventlog_writer_event": (c_int, [c_void_p, c_char_p, c_size_t, _ERROR]),
    "eventlog_writer_flush": (c_int, [c_void_p, _ERROR]),
    "eventlog_writer_sync": (c_int, [c_void_p, _ERROR]),
    "eventlog_writer_path": (c_char_p, [c_void_p]),
    "eventlog_writer_statistics": (c_int, [c_void_p, POINTER(WriterStatistics), _ERROR]),
    "eventlog_writer_close": (c_int, [c_void_p, _ERROR]),
    "eventlog_bucket_counts_range": (c_int, [c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, POINTER(c_double),
                                             POINTER(c_double), _ERROR]),
    "eventlog_png": (c_int, [c_void_p, c_size_t, c_size_t, c_size_t, POINTER(c_void_p), POINTER(c_size_t), _ERROR]),
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


def _load() -> ctypes.CDLL:
    tried = []
    for path in (os.path.join(HERE, "lib", "libeventlog.so.0"), os.environ.get("EVALBOARD_LIBRARY"), "libeventlog.so.0"):
        if not path or (path.startswith(HERE) and not os.path.exists(path)):
            continue
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            tried.append(str(error))
            continue
        for name, (result, parameters) in _FUNCTIONS.items():
            function = getattr(library, name, None)
            if function is None:
                raise ImportError(f"{path} is older than this package: it has no {name}(); install libeventlog "
                                  "of the same version")
            function.restype, function.argtypes = result, parameters
        return library
    raise ImportError("evalboard finds no libeventlog.so.0 (" + "; ".join(tried) + "); install the wheel, or the package "
                      "libeventlog0, or let EVALBOARD_LIBRARY name the file")


lib = _load()


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
