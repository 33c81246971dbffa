"""One event file: libeventlog's writer with its queue, and before it a buffer of points in Python.

A call into C costs a microsecond or two, most of it in ctypes, so points of scalar series wait as packed structs and are
passed on together: 512 of them, or all that wait when another kind of value comes, at flush and close, and at the latest
after HOLD_SECONDS, by a thread that all writers share. Then the library's queue has them, which writes within
FLUSH_SECONDS. Every method may be called from any thread.

A writer belongs to the process that made it. In a forked child (a worker of a DataLoader, multiprocessing) it starts empty,
and makes a file of its own with the first value; what the parent had not written yet stays the parent's.
"""
from __future__ import annotations

import atexit
import ctypes
import os
import struct
import sys
import threading
import time
import weakref
from typing import Any

from evalboard import _library, _wire
from evalboard._library import StrPath, call, lib

POINT = struct.Struct("=Qqdd")  # struct eventlog_scalar
HOLD_POINTS, HOLD_SECONDS, FLUSH_SECONDS = 512, 0.5, 2.0
KEEP_POINTS = 1 << 20  # of those that cannot be written
QUEUE_BYTES = 16 << 20

_files: "weakref.WeakSet[EventFile]" = weakref.WeakSet()


class EventFile:
    """An event file in `directory`, made with the first value or by open(). suffix: added to its name. purge_step: hide the
    points of older files of the run from this step on, for a training that restarts from a checkpoint. output: opens what the
    bytes go to instead of a file, by its path. rotate_bytes, rotate_seconds: begin another file at this size or age; 0: never.
    """

    def __init__(self, directory: StrPath, suffix: Any = "", flush_seconds: Any = FLUSH_SECONDS,
                 purge_step: Any = None, queue_bytes: Any = QUEUE_BYTES,
                 output: Any = None, rotate_bytes: Any = 0, rotate_seconds: Any = 0.0) -> None:
        self.directory = os.fspath(directory)
        if not hasattr(flush_seconds, "__float__"):
            raise TypeError(f"flush_secs is a number of seconds, not {flush_seconds!r}")
        self.suffix, self.flush_seconds, self.queue_bytes = suffix, min(flush_seconds, FLUSH_SECONDS), queue_bytes
        self.purge_step, self.output = purge_step, output
        self.rotate_bytes, self.rotate_seconds = rotate_bytes, rotate_seconds
        self.series: dict[str, int] = {}  # numbers of tags
        self.points: list[bytes] = []     # waiting; only ever appended to, and cut at its start by drain()
        self.append = self.points.append
        self.due = 0.0                    # when points that wait should be passed on
        self._names: list[bytes] = []
        self._table = None                # the same for C, as long as _names was when it was made
        self._error: Exception | None = None  # what the shared thread met
        self._handle = None
        self._target: Any = None  # where the bytes of the handle go, but for a file
        self._lock = threading.RLock()
        _files.add(self)

    # ---- the library's writer -------------------------------------------------------------------------------------------
    def open(self) -> Any:
        """Makes the file, unless there is one. Returns the library's writer."""
        with self._lock:
            if self._handle is None:
                options = _library.WriterOptions(flush_seconds=self.flush_seconds, suffix=self.suffix.encode(),
                                                 queue_bytes=self.queue_bytes, rotate_bytes=self.rotate_bytes,
                                                 rotate_seconds=self.rotate_seconds)
                if self.purge_step is not None:
                    options.resume, options.purge_step = _library.RESUME_PURGE, int(self.purge_step)
                handle = ctypes.c_void_p()
                if self.output is None:
                    call(lib.eventlog_writer_open, ctypes.byref(handle), os.fsencode(self.directory), ctypes.byref(options))
                else:
                    from evalboard.output import Output

                    self._target = Output(self.output, self.directory)
                    self._call(lib.eventlog_writer_open_output, ctypes.byref(handle), ctypes.byref(self._target.struct),
                               ctypes.byref(options))
                self._handle, self.purge_step = handle, None
            return self._handle

    def _call(self, function: Any, *arguments: Any) -> int:
        return call(function, *arguments, cause=self._target.failure if self._target else None)

    @property
    def path(self) -> str | None:
        """Of the file; None before there is one."""
        with self._lock:
            if self._handle and self._target:
                return self._target.path
            return os.fsdecode(lib.eventlog_writer_path(self._handle)) if self._handle else None

    def statistics(self) -> dict:
        """What the library's writer has counted, by name; see eventlog_writer_statistics(3)."""
        with self._lock:
            self._drain()
            counts = _library.WriterStatistics()
            call(lib.eventlog_writer_statistics, self.open(), ctypes.byref(counts))
            return {name: getattr(counts, name) for name, kind in counts._fields_ if kind is ctypes.c_uint64}

    # ---- points ---------------------------------------------------------------------------------------------------------
    def number_of(self, tag: str) -> int:
        """The number of a tag that is not in `series` yet."""
        if not isinstance(tag, str):
            raise TypeError(f"a tag is a str, not a {type(tag).__name__}")
        name = tag.encode()
        if b"\0" in name or not name:
            raise ValueError(f"the tag {tag!r} is empty or has a NUL")
        with self._lock:
            if tag not in self.series:
                self._names.append(name)
                self.series[tag] = len(self._names) - 1
            return self.series[tag]

    def drain(self) -> None:
        """Passes the points that wait to the library. Raises what it says, or what the shared thread met before."""
        with self._lock:
            self._drain()
            error, self._error = self._error, None
        if error:
            raise error

    def _drain(self) -> None:
        count = len(self.points)
        self.due = time.time() + HOLD_SECONDS
        if not count:
            return
        if self._table is None or len(self._table) < len(self._names):
            room = max(64, 2 * len(self._names))
            self._table = (ctypes.c_char_p * room)(*self._names)
            self._filled = len(self._names)
        while self._filled < len(self._names):
            self._table[self._filled] = self._names[self._filled]
            self._filled += 1
        refused = None
        try:
            handle = self.open()
            while count:
                accepted, error = ctypes.c_size_t(), _library.Error()
                code = lib.eventlog_writer_scalars(handle, self._table, self._filled, b"".join(self.points[:count]), count,
                                                   ctypes.byref(accepted), ctypes.byref(error))
                done = accepted.value + (code == _library.ERROR_ARGUMENT)  # such a point is never taken
                del self.points[:done]
                count -= done
                if code == _library.ERROR_ARGUMENT:
                    refused = refused or _library.exception(code, error)
                elif code < 0:
                    raise _library.exception(code, error) from (self._target.failure() if self._target else None)
        finally:
            if len(self.points) > KEEP_POINTS:  # a disk that stays full
                del self.points[:len(self.points) - KEEP_POINTS]
        if refused:
            raise refused

    def drain_quietly(self) -> None:
        """For the shared thread: an error waits for the next call of a user's."""
        with self._lock:
            try:
                self._drain()
            except Exception as error:  # noqa: BLE001, whatever it is belongs to the user
                self._error = error

    # ---- other events ---------------------------------------------------------------------------------------------------
    def put(self, body: bytes, step: int | None = None, wall_time: Any = None) -> None:
        """Writes an event with these fields beside wall time and step."""
        now = time.time() if wall_time is None else float(wall_time)
        self.put_event(_wire.event(now, step, body))

    def put_event(self, event: bytes) -> None:
        """Writes a serialized Event."""
        _close_at_end_of_child()
        with self._lock:
            self.drain()
            self._call(lib.eventlog_writer_event, self.open(), event, len(event))

    def flush(self) -> None:
        with self._lock:
            self.drain()
            if self._handle:
                self._call(lib.eventlog_writer_flush, self._handle)

    def close(self) -> None:
        with self._lock:
            try:
                self.drain()
            finally:
                handle, self._handle = self._handle, None
                try:
                    if handle:
                        self._call(lib.eventlog_writer_close, handle)
                finally:
                    self._target = None

    def forget(self) -> None:
        """In a forked child: nothing of the parent's is this process's."""
        self._lock = threading.RLock()
        self.points.clear()
        self._error = None
        handle, self._handle = self._handle, None
        if handle:
            lib.eventlog_writer_close(handle, None)
        self._target = None

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:  # noqa: BLE001, nobody is there to hear it
            pass


# ---- the thread that passes on what waits -------------------------------------------------------------------------------
class Passer:
    """Wakes up every HOLD_SECONDS while points wait, and sleeps while none do."""

    def __init__(self) -> None:
        self.wanted = threading.Event()
        self.thread = None

    def want(self) -> None:
        """Points wait now."""
        _close_at_end_of_child()
        if self.thread is None:
            self.thread = threading.Thread(target=self._run, name="evalboard", daemon=True)
            self.thread.start()
        self.wanted.set()

    def _run(self) -> None:
        while True:
            self.wanted.wait()
            self.wanted.clear()
            time.sleep(HOLD_SECONDS)
            for file in list(_files):
                if file.points:
                    file.drain_quietly()
                if file.points:
                    self.wanted.set()


passer = Passer()


def _close_all() -> None:
    for file in list(_files):
        try:
            file.close()
        except Exception as error:  # noqa: BLE001
            print(f"evalboard: {error}", file=sys.stderr)


def _after_fork() -> None:
    global passer
    passer = Passer()
    for file in list(_files):
        file.forget()


_finalizer = None


def _close_at_end_of_child() -> None:
    """A child of multiprocessing ends without atexit, but with finalizers of its own, which it clears when it begins."""
    global _finalizer
    util = sys.modules.get("multiprocessing.util")
    if util and (_finalizer is None or not _finalizer.still_active()):
        if sys.modules["multiprocessing"].parent_process() is not None:
            _finalizer = util.Finalize(None, _close_all, exitpriority=10)


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
