"""One event file: libeventlog's writer with its queue, and before it a buffer of points in Python.

A call into C costs a microsecond or two, most of it in ctypes, so points of scalar series wait as packed structs and are
passed on together: HOLD_POINTS of them, or all that wait when another kind of value comes, at flush and close, and at the
latest after HOLD_SECONDS, by a thread that all writers share. The call that passes them on writes them to the file, so that
a process that is killed loses less than HOLD_POINTS. Every method may be called from any thread.

A signal handler may raise, or call the writer again, between any two steps of a method here. So what must not happen by
halves is one step: an append, one slice assigned, one call into C. Points are numbered, and the library counts in
`EventFile.done` those that it is done with, in the call that takes them: taken twice, a point is written once.

A writer belongs to the process that made it. In a forked child (a worker of a DataLoader, multiprocessing) it starts empty,
and makes a file of its own with the first value; what the parent had not written yet stays the parent's.
"""
from __future__ import annotations

import _thread
import atexit
import ctypes
import os
import struct
import sys
import threading
import time
import weakref
from ctypes import byref, c_char_p
from typing import Any

from evalboard import _library, _wire
from evalboard._library import StrPath, call, lib

POINT = struct.Struct("=Qqdd")  # struct eventlog_scalar
HOLD_POINTS, HOLD_SECONDS, FLUSH_SECONDS = 10, 0.5, 2.0
KEEP_POINTS = 1 << 20  # of those that cannot be written
QUEUE_BYTES = 16 << 20

_scalars_once = lib.eventlog_writer_scalars_once
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
        # The number of the first point that waits, and the points. They are only ever appended, and cut with the number.
        self.points: list[Any] = [0]
        self.append = self.points.append
        self.done = ctypes.c_uint64()     # points below this number are the library's
        self.asked = -1                   # the round in which the shared thread was asked to look here
        self._names: list[bytes] = []
        self._tags = (c_char_p * 0)(), 0  # the same for C, and how many are filled in
        self._error: Exception | None = None  # what the shared thread met
        self._words = _library.Error()
        self._places = byref(self.done), byref(self._words)
        self._handle = ctypes.c_void_p()
        self._closing: Any = None  # the handle that is to be closed, what gives it once, and its target
        self._target: Any = None  # where the bytes of the handle go, but for a file
        self._lock = threading.RLock()
        _files.add(self)

    def _alone(self, work: Any, *arguments: Any) -> Any:
        """Calls work with the lock. A signal handler that comes here within another method of this thread goes on inside.
        The lock is released twice over, for what is raised while it is released."""
        lock = self._lock
        if lock._is_owned():
            return work(*arguments)
        try:
            try:
                lock.acquire()
                if self._closing is not None:
                    self._end_closing()
                return work(*arguments)
            finally:
                if lock._is_owned():
                    self._leave()
        finally:
            if lock._is_owned():
                lock.release()

    def _leave(self) -> None:
        try:
            self._cut()
            if self._closing is not None:  # of a handler
                self._end_closing()
        finally:
            self._lock.release()

    # ---- the library's writer -------------------------------------------------------------------------------------------
    def open(self) -> Any:
        """Makes the file, unless there is one. Returns the library's writer."""
        return self._alone(self._open)

    def _open(self) -> Any:
        handle = self._handle
        if not handle:
            options = _library.WriterOptions(flush_seconds=self.flush_seconds, suffix=self.suffix.encode(),
                                             queue_bytes=self.queue_bytes, rotate_bytes=self.rotate_bytes,
                                             rotate_seconds=self.rotate_seconds)
            if self.purge_step is not None:
                options.resume, options.purge_step = _library.RESUME_PURGE, int(self.purge_step)
            if self.output is None:
                call(lib.eventlog_writer_open, byref(handle), os.fsencode(self.directory), byref(options))
            else:
                from evalboard.output import Output

                self._target = Output(self.output, self.directory)
                self._call(lib.eventlog_writer_open_output, byref(handle), byref(self._target.struct),
                           byref(options))
        self.purge_step = None
        return handle

    def _call(self, function: Any, *arguments: Any) -> int:
        return call(function, *arguments, cause=self._target.failure if self._target else None)

    @property
    def path(self) -> str | None:
        """Of the file; None before there is one."""
        return self._alone(self._path)

    def _path(self) -> str | None:
        if self._handle and self._target:
            return self._target.path
        return os.fsdecode(lib.eventlog_writer_path(self._handle)) if self._handle else None

    def statistics(self) -> dict:
        """What the library's writer has counted, by name; see eventlog_writer_statistics(3)."""
        return self._alone(self._statistics)

    def _statistics(self) -> dict:
        self._drain()
        counts = _library.WriterStatistics()
        call(lib.eventlog_writer_statistics, self._open(), byref(counts))
        return {name: getattr(counts, name) for name, kind in counts._fields_ if kind is ctypes.c_uint64}

    # ---- points ---------------------------------------------------------------------------------------------------------
    def number_of(self, tag: str) -> int:
        """The number of a tag that is not in `series` yet."""
        if not isinstance(tag, str):
            raise TypeError(f"a tag is a str, not a {type(tag).__name__}")
        name = tag.encode()
        if b"\0" in name or not name:
            raise ValueError(f"the tag {tag!r} is empty or has a NUL")
        names = self._names
        names.append(name)
        number = len(names) - 1
        while names[number] is not name:  # another thread was quicker
            number -= 1
        return self.series.setdefault(tag, number)

    def drain(self) -> None:
        """Passes the points that wait to the library. Raises what it says, or what the shared thread met before."""
        self._alone(self._drain)
        if self._error:
            self._raise_error()

    def _raise_error(self) -> None:
        error, self._error = self._error, None
        if error:
            raise error

    def _drain_loudly(self) -> None:
        self._drain()
        self._raise_error()

    def _drain(self) -> None:
        waiting = self.points[:]
        first, count = waiting[0], len(waiting) - 1
        if not count:
            return
        table, filled = self._tags
        names = len(self._names)
        if filled < names:
            if len(table) < names:
                table = (c_char_p * max(64, 2 * names))(*self._names[:names])
            table[filled:names] = self._names[filled:names]
            self._tags = table, names
        handle, data, refused = self._handle or self._open(), b"".join(waiting[1:]), None
        before, end, done_at, error_at = self.done.value, first + count, *self._places
        while before < end:
            code = _scalars_once(handle, table, names, data, count, first, done_at, error_at)
            done = self.done.value
            if code == _library.ERROR_ARGUMENT and done > before:
                refused = refused or _library.exception(code, self._words)
            elif code < 0:
                raise _library.exception(code, self._words) from (self._target.failure() if self._target else None)
            before = done
        if refused:
            raise refused

    def _cut(self) -> None:
        """Takes out the points that are done with, and on a disk that stays full the oldest. Not within another method."""
        points, done = self.points, self.done
        if len(points) > KEEP_POINTS:
            done.value = max(done.value, points[0] + len(points) - 1 - KEEP_POINTS)
        gone = done.value - points[0]
        if gone > 0:
            points[:1 + gone] = (points[0] + gone,)

    def drain_quietly(self) -> None:
        """For the shared thread: an error waits for the next call of a user's."""
        try:
            self._alone(self._drain)
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
        self._alone(self._put_event, event)

    def _put_event(self, event: bytes) -> None:
        self._drain_loudly()
        self._call(lib.eventlog_writer_event, self._open(), event, len(event))
        self._call(lib.eventlog_writer_scalars_once, self._handle, None, 0, None, 0, 0, byref(self.done))

    def flush(self) -> None:
        self._alone(self._flush)

    def _flush(self) -> None:
        self._drain_loudly()
        if self._handle:
            self._call(lib.eventlog_writer_flush, self._handle)

    def close(self) -> None:
        self._alone(self._close, self._lock._is_owned())

    def _close(self, within: bool) -> None:
        """within: another method of this thread, which may still use the handle, and closes when it ends."""
        try:
            self._drain_loudly()
        finally:
            if self._handle and self._closing is None:
                self._closing = self._handle, iter((self._handle,)), self._target
            if self._closing is not None and not within:
                self._end_closing()

    def _end_closing(self) -> None:
        """map() takes the handle and closes it in one step: whatever is raised around it, it is closed once."""
        handle, once, target = self._closing
        if self._handle is handle:
            self._target = None
            self._handle = ctypes.c_void_p()
        error = _library.Error()
        code = next(map(lib.eventlog_writer_close, once, (byref(error),)), 0)
        self._closing = None
        if code < 0:
            raise _library.exception(code, error) from (target.failure() if target else None)

    def forget(self) -> None:
        """In a forked child: nothing of the parent's is this process's."""
        self._lock = threading.RLock()
        self.points[:] = (self.done.value,)
        self.asked, self._error, self._closing = -1, None, None
        handle, self._handle = self._handle, ctypes.c_void_p()
        if handle:
            lib.eventlog_writer_close(handle, None)
        self._target = None

    def __del__(self) -> None:
        for _ in range(2):  # what a signal handler raises here Python drops
            try:
                return self.close()
            except BaseException:  # noqa: BLE001, nobody is there to hear it
                pass


# ---- the thread that passes on what waits -------------------------------------------------------------------------------
class Passer:
    """Looks at the files HOLD_SECONDS after it was asked to, and again while points wait; else it sleeps. A lock and a thread
    of _thread's are made in one step each; those of `threading` hang for ever if a signal handler raises within."""

    def __init__(self) -> None:
        self.round = 0  # counted up before it looks
        self.running = False
        self._idle = _thread.allocate_lock()
        self._idle.acquire()

    def want(self, file: EventFile) -> None:
        """Points wait in this file now; the next call comes once `file.asked` is no longer the round."""
        _close_at_end_of_child()
        current = self.round
        if not self.running:
            try:
                _thread.start_new_thread(self._run, ())
            except RuntimeError:  # too many threads, or the interpreter ends; a later call tries again
                file.drain()
                return
        self._wake()
        file.asked = current

    def _wake(self) -> None:
        try:
            self._idle.release()
        except RuntimeError:  # it is awake
            pass

    def _run(self) -> None:
        if self.running:
            return
        self.running = True
        try:
            while True:
                self._idle.acquire()
                time.sleep(HOLD_SECONDS)
                self.round += 1
                for file in list(_files):
                    if len(file.points) > 1:
                        file.drain_quietly()
                    if len(file.points) > 1:
                        self._wake()
        finally:
            self.running = False
            self.round += 1


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
