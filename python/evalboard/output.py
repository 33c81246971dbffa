"""Event files that are no files: a function of the caller's opens what their bytes go to, or they stay in memory."""
from __future__ import annotations

import ctypes
import errno
import io
import os
import re
import threading
from collections.abc import Mapping
from typing import Any, Callable, Iterator, Protocol

from evalboard import _library
from evalboard._library import StrPath

__all__ = ["MemoryOutput", "Stream"]


class Stream(Protocol):
    """What an output opens: a binary file, or anything with these two. `flush()`, where there is one, is called after each
    write()."""

    def write(self, data: bytes, /) -> Any:
        """Takes the bytes: whole records. Returns how many were taken, or None for all."""

    def close(self) -> Any:
        """Nothing follows: the object is complete."""


Open = Callable[[str], Stream]

_newest: dict[str, int] = {}  # the seconds in the name of the newest object of this process, by directory


def is_url(directory: StrPath) -> bool:
    """Whether it is a place of fsspec's, such as s3://bucket/run, and no directory."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", str(directory)) is not None


def open_url(path: str) -> Stream:
    """The output of a log_dir such as s3://bucket/run."""
    try:
        import fsspec
    except ImportError:
        raise ImportError(f"{path} is no directory: install fsspec, and what it takes for this protocol (s3fs for s3://), or "
                          "pass output=, a function that opens paths") from None
    return fsspec.open(path, "wb").open()


class MemoryOutput(Mapping):
    """An output of SummaryWriter that keeps event files in memory: a mapping from path to bytes.

        memory = evalboard.MemoryOutput()
        with evalboard.SummaryWriter("runs/mine", output=memory) as writer:
            writer.add_scalar("loss", 0.5, 1)
        for path, data in memory.items():
            bucket.put(path, data)

    A path is log_dir/NAME. One object may serve several writers, from any thread. Call flush() before looking at a writer that
    is open. A forked child has a copy of its own."""

    def __init__(self) -> None:
        self._files: dict[str, bytearray] = {}
        self._lock = threading.Lock()

    def __call__(self, path: str) -> Stream:
        with self._lock:
            self._files[path] = bytearray()
        return _MemoryFile(self, path)

    def __getitem__(self, path: str) -> bytes:
        with self._lock:
            return bytes(self._files[path])

    def __iter__(self) -> Iterator[str]:
        with self._lock:
            return iter(list(self._files))

    def __len__(self) -> int:
        return len(self._files)

    def __getstate__(self) -> Any:
        return {**self.__dict__, "_lock": None}

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def take(self) -> dict[str, bytes]:
        """{path: the bytes since the last call} of the files that have grown: whole records. All of a path one after the other
        are its file. For services that take pieces; what was taken is no longer kept, so that __getitem__ has what is new."""
        with self._lock:  # without an `if`: what a signal handler raises there passes `with` by (cpython#130279)
            found = {path: bytes(data) for path, data in self._files.items()}
            for data in self._files.values():
                data.clear()
        return {path: data for path, data in found.items() if data}

    def _append(self, path: str, data: bytes) -> None:
        with self._lock:
            self._files.setdefault(path, bytearray()).extend(data)


class _MemoryFile:
    def __init__(self, output: MemoryOutput, path: str) -> None:
        self.output, self.path = output, path

    def write(self, data: bytes) -> int:
        self.output._append(self.path, data)
        return len(data)

    def close(self) -> None:
        pass


class _Object:
    """A stream, and how many of the bytes that come again after an error it has taken."""

    def __init__(self, stream: Stream) -> None:
        self.stream, self.taken = stream, 0

    def write(self, data: bytes) -> None:
        while self.taken < len(data):
            try:
                count = self.stream.write(data[self.taken:])
            except BlockingIOError as error:
                self.taken += error.characters_written
                raise
            if count is None and isinstance(self.stream, io.RawIOBase):
                raise BlockingIOError(errno.EAGAIN, "the stream does not take more now")
            self.taken = len(data) if count is None else self.taken + count
        flush = getattr(self.stream, "flush", None)
        if flush:  # or a forked child would write it again
            flush()
        self.taken = 0


class Output:
    """`struct eventlog_output` over a function that opens streams by their path below `directory`. One function is called at a
    time, by a thread of the library's. What a stream raises is kept for failure()."""

    def __init__(self, opener: Open, directory: str) -> None:
        self.opener, self.directory = opener, directory
        self.objects: dict[int, _Object] = {}
        self.count = 0
        self.path: str | None = None  # of the newest object
        self._ahead: int | None = None
        self._failure: BaseException | None = None
        self.struct = _library.Output(begin=_library.BEGIN(self._begin), write=_library.WRITE(self._write),
                                      end=_library.END(self._end))

    def failure(self) -> BaseException | None:
        """What was raised last, once."""
        failure, self._failure = self._failure, None
        return failure

    def _failed(self, error: BaseException) -> int:
        self._failure = error
        return getattr(error, "errno", None) or errno.EIO

    def _name(self, name: str) -> str:
        """The name, ahead of those of earlier writers of this process: the library sees that in a directory of files."""
        before, seconds, rest = re.fullmatch(r"(.*\.tfevents\.)(\d+)(.*)", name, re.DOTALL).groups()
        if self._ahead is None:
            self._ahead = max(0, _newest.get(self.directory, 0) + 1 - int(seconds))
        _newest[self.directory] = max(_newest.get(self.directory, 0), int(seconds) + self._ahead)
        return f"{before}{int(seconds) + self._ahead}{rest}"

    def _begin(self, context: Any, name: str, made: Any) -> int:
        try:
            path = os.path.join(self.directory, self._name(os.fsdecode(name)))
            opened = _Object(self.opener(path))
        except BaseException as error:  # noqa: BLE001, nothing may go through C
            return self._failed(error)
        self.count += 1
        self.path = path
        self.objects[self.count] = opened
        made[0] = self.count
        return 0

    def _write(self, number: Any, address: Any, count: Any) -> int:
        try:
            self.objects[number].write(ctypes.string_at(address, count))
        except BaseException as error:  # noqa: BLE001
            return self._failed(error)
        return 0

    def _end(self, number: Any) -> int:
        try:
            self.objects.pop(number).stream.close()
        except BaseException as error:  # noqa: BLE001
            return self._failed(error)
        return 0
